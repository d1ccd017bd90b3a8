import pytest

from tests.unit.api.v1.v1_bench import V1Bench


@pytest.fixture
async def bench() -> V1Bench:
    return await V1Bench().open()
