"""A fault in the counting must neither lose a timer nor repeat it."""

from typing import Any

import pytest

from duetime.domain.timer import TimerStatus
from duetime.engine.meters import EngineMeters
from duetime.engine.wait_log import WaitLog
from duetime.testing import on_virtual_time
from tests.unit.engine.engine_bench import EngineBench


@pytest.mark.parametrize(
    ("counting", "method"),
    [(EngineMeters, "attempt_made"), (WaitLog, "take_waits"), (WaitLog, "got_claims")],
)
@on_virtual_time
async def test_each_timer_fires_once(
    counting: type, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = EngineBench()
    await bench.start()
    faults: list[str] = []

    def broken_once(*values: Any, **named: Any) -> Any:
        if not faults:
            faults.append(method)
            raise RuntimeError("a fault in the counting")
        return working(*values, **named)

    working = getattr(counting, method)
    monkeypatch.setattr(counting, method, broken_once)
    bench.store.claim_seconds = 0.2
    for timer_id in ("late", "soon"):
        await bench.create(timer_id, 30 if timer_id == "soon" else 0.01)
    await bench.clock.sleep(600)
    assert faults == [method]
    for timer_id in ("late", "soon"):
        assert await bench.status(timer_id) is TimerStatus.COMPLETED
        assert len(bench.destination.attempts_of(timer_id)) == 1
