import pytest

from tests.unit.api.asgi_client import ApiBench


@pytest.fixture
async def api() -> ApiBench:
    bench = ApiBench()
    await bench.open()
    return bench
