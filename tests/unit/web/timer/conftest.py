import pytest

from tests.unit.web.timer.timer_bench import TimerBench


@pytest.fixture
async def bench() -> TimerBench:
    return await TimerBench().open()
