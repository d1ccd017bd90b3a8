"""NATS callbacks of a process that is paused for a while."""

import asyncio

from duetime.clock import SystemClock
from duetime.delivery.nats import NatsDestination
from duetime.domain.callback import NatsCallback
from duetime.domain.outcome import Completed, Outcome
from duetime.nats import NatsConnection, NatsOptions
from duetime.testing.virtual_clock import VirtualClock
from tests.brokers.nats_fixtures import MakeNats
from tests.integration.delivery.http_client.servers import let_the_loop_turn
from tests.pausing_loop import PausingSelector
from tests.unit.delivery.claims import always, claim_of


def test_an_answer_that_came_during_a_pause_counts(make_nats: MakeNats) -> None:
    server = make_nats()
    selector = PausingSelector()

    async def publish() -> Outcome:
        connection = NatsConnection(NatsOptions(url=server.url), SystemClock())
        await connection.connect()
        destination = NatsDestination(connection, VirtualClock(), default_timeout_ms=500)
        server.pause()
        claim = claim_of(NatsCallback(topic="orders"))
        attempt = asyncio.create_task(destination.deliver(claim, always))
        for _ in range(5):
            # The library writes the message and its PING some turns later.
            await let_the_loop_turn()
        server.resume()
        selector.pause(seconds=0.7)
        try:
            return await attempt
        finally:
            await connection.close()

    with asyncio.Runner(loop_factory=selector.new_loop) as runner:
        assert isinstance(runner.run(publish()), Completed)
