import pytest

from tests.unit.web.timers.timers_bench import TimersBench


@pytest.fixture
async def bench() -> TimersBench:
    return await TimersBench().open()
