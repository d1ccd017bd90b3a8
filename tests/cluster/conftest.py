"""A receiver for the callbacks of clusters that each test starts itself."""

from collections.abc import AsyncIterator

import pytest

from tests.real_server.callback_receiver import CallbackReceiver


@pytest.fixture
async def receiver() -> AsyncIterator[CallbackReceiver]:
    async with CallbackReceiver() as receiver:
        yield receiver
