"""Creates are recorded as the setting says, and replaced timers always."""

import pytest

from duetime.service.security.audit_log import Sampling
from tests.unit.api.asgi_client import API_KEY
from tests.unit.api.audit.audit_bench import AuditBench
from tests.unit.api.v1.v1_bench import create_body


@pytest.mark.parametrize("share", [None, 0.2, 1.0])
async def test_creates_are_recorded_as_the_setting_says(share: float | None) -> None:
    bench = AuditBench(audited_creates=None if share is None else Sampling(share))
    await bench.open()
    for number in range(200):
        assert (await bench.create_v1(f"t{number}")).status == 200
    await bench.create()
    entries = await bench.entries()
    assert {entry.action for entry in entries} <= {"timer.create"}
    low, high = {None: (0, 0), 0.2: (10, 80), 1.0: (201, 201)}[share]
    assert low <= len(entries) <= high
    assert all(entry.target for entry in entries)


async def test_the_fast_path_leaves_picked_creates_to_the_usual_one() -> None:
    content = b"{}"
    headers = [
        (b"x-api-key", API_KEY.encode()),
        (b"host", b"timers.example"),
        (b"content-length", b"%d" % len(content)),
    ]
    admitted = {}
    for name, creates in {"off": None, "all": Sampling(1), "some": Sampling(0.3)}.items():
        bench = AuditBench(audited_creates=creates)
        await bench.open()
        admitted[name] = 0
        for _ in range(500):
            if bench.app.fast_create.admit(b"POST", b"/timers", headers) is not None:
                admitted[name] += 1
            else:
                await bench.create()
        assert len(await bench.entries()) == 500 - admitted[name]
    assert (admitted["off"], admitted["all"]) == (500, 0)
    assert 250 <= admitted["some"] <= 450


async def test_creates_say_whether_the_timer_was_there() -> None:
    bench = AuditBench(audited_creates=Sampling(1))
    await bench.open()
    await bench.create_v1("one")
    await bench.create_v1("one")
    await bench.post("/create", create_body("one", executeAt="2030-01-03T00:00:00Z"))
    await bench.post("", create_body("one"))
    shown = [(e.action, e.result, e.details) for e in reversed(await bench.entries())]
    assert shown == [
        ("timer.create", "ok", None),
        ("timer.create", "ok", "existing"),
        ("timer.replace", "ok", "replaced"),
        ("timer.create", "TIMER_CONFLICT", None),
    ]


@pytest.mark.parametrize("share", [None, 1e-9, 1.0])
async def test_a_replaced_timer_is_always_recorded(share: float | None) -> None:
    bench = AuditBench(audited_creates=None if share is None else Sampling(share))
    await bench.open()
    body = create_body("one", executeAt="2030-01-03T00:00:00Z")
    assert (await bench.post("/create", create_body("one"))).status == 200
    assert (await bench.post("/create", body)).status == 200
    assert (await bench.post("/create", {**body, "callbackUrl": 7})).status == 400
    (entry,) = [entry for entry in await bench.entries() if entry.action == "timer.replace"]
    assert (entry.actor, entry.namespace, entry.target) == ("API_KEY", "default", "one")
    assert (entry.result, entry.details) == ("ok", "replaced")
    assert len(await bench.entries()) == (3 if share == 1 else 1)
