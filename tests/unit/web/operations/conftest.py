import pytest

from tests.unit.web.operations.operations_bench import OperationsBench


@pytest.fixture
async def bench() -> OperationsBench:
    return await OperationsBench().open()
