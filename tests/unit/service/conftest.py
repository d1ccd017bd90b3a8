import pytest

from tests.unit.service.service_bench import ServiceBench


@pytest.fixture
async def bench() -> ServiceBench:
    return await ServiceBench().open()
