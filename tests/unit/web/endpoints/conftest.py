import pytest

from tests.unit.web.endpoints.endpoints_bench import EndpointsBench


@pytest.fixture
async def bench() -> EndpointsBench:
    return await EndpointsBench().open()
