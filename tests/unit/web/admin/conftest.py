import pytest

from tests.unit.web.admin.admin_bench import AdminBench
from tests.unit.web.sessions.session_bench import Browser


@pytest.fixture
async def bench() -> AdminBench:
    bench = AdminBench()
    await bench.open()
    return bench


@pytest.fixture
async def admin(bench: AdminBench) -> Browser:
    """Signed in with the key of the settings."""
    return await bench.signed_in()
