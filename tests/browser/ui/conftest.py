"""A server with something on every page."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.browser.ui.seeding import seed
from tests.real_server.callback_receiver import CallbackReceiver
from tests.real_server.server_process import ServerProcess


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def seeded(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServerProcess]:
    async with (
        CallbackReceiver() as receiver,
        ServerProcess(tmp_path_factory.mktemp("server")) as server,
    ):
        await seed(server, receiver)
        yield server
