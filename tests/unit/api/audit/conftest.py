import pytest

from tests.unit.api.audit.audit_bench import AuditBench


@pytest.fixture
async def bench() -> AuditBench:
    bench = AuditBench()
    await bench.open()
    return bench
