"""A NATS connection that cannot be made again because this process lacks descriptors."""

import asyncio
import errno

import pytest

from duetime.clock import SystemClock
from duetime.delivery.nats import NatsDestination
from duetime.domain.callback import NatsCallback
from duetime.domain.errors import LocalShortage
from duetime.domain.outcome import Failed
from duetime.nats import NatsConnection, NatsOptions
from tests.brokers.nats_fixtures import MakeNats
from tests.polling import poll
from tests.unit.delivery.claims import claim_of


async def test_a_shortage_of_this_process_is_no_attempt(
    make_nats: MakeNats, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = make_nats()
    connection = NatsConnection(NatsOptions(url=server.url), SystemClock())
    destination = NatsDestination(connection, SystemClock(), default_timeout_ms=30_000)
    await connection.connect()

    async def none_left(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    async def attempt() -> str:
        try:
            outcome = await destination.deliver(
                claim_of(NatsCallback(topic="orders")), lambda: True
            )
        except LocalShortage as shortage:
            return shortage.message
        assert isinstance(outcome, Failed)
        return outcome.error

    monkeypatch.setattr(asyncio, "open_connection", none_left)
    server.kill()
    assert await poll(attempt, lambda told: told.startswith("out of")) == "out of file descriptors"
    await connection.close()
