"""The NATS connection against servers that misbehave."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from duetime.clock import SystemClock
from duetime.nats import NatsConnection, NatsFailure, NatsOptions, session, session_keeper
from tests.brokers.nats_fixtures import MakeNats

PATIENCE_SECONDS = 10
AT_ONCE_SECONDS = 3

NO_PUBLISHING = """
authorization {
  users = [{ user: "duetime", password: "secret", permissions: { publish: { deny: ["no.>"] } } }]
}
"""

NO_CAPITALS = NO_PUBLISHING.replace("no.>", "orders.A")

RENAMING = 'mappings = { "renamed": "no.entry" }' + NO_PUBLISHING
"""The server refuses messages on `renamed` with a subject that we never named."""

ESCAPED = ['a"b', "a\\b", "'q'", "\u200bz", "\ue000", "\U000e0001", "\\u200b", "ü😀"]


class FleetingServer:
    """Greets every client, and closes the connection once it is established."""

    def __init__(self, connect_urls: list[str]) -> None:
        self._greeting = {"server_id": "fleeting", "max_payload": 1_000, "headers": True}
        self._greeting["connect_urls"] = connect_urls
        self._connections: asyncio.Queue[float] = asyncio.Queue()
        self.url = ""

    async def next_connection(self) -> float:
        """The event loop's time of the connection."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self._connections.get()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["FleetingServer"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"INFO %b\r\n" % json.dumps(self._greeting).encode())
        await reader.readuntil(b"PING\r\n")
        writer.write(b"PONG\r\n")
        # The first command on an established connection.
        await reader.readuntil(b"SUB")
        self._connections.put_nowait(asyncio.get_running_loop().time())
        writer.close()


async def test_a_missing_server_is_reported_at_once() -> None:
    connection = NatsConnection(NatsOptions(url="nats://127.0.0.1:1"), SystemClock())

    async with asyncio.timeout(AT_ONCE_SECONDS):
        with pytest.raises(
            NatsFailure, match=r"^cannot connect to nats://127\.0\.0\.1:1: connection refused$"
        ):
            await connection.connect()


async def test_a_server_that_drops_connections_floods_neither_itself_nor_the_log() -> None:
    with capture_logs() as logs:
        async with FleetingServer([]).running() as server:
            connection = NatsConnection(NatsOptions(url=server.url), SystemClock())
            await connection.connect()
            made_at = [await server.next_connection() for _ in range(4)]
            await connection.close()

    pauses = [after - before for before, after in pairwise(made_at)]
    assert all(pause >= least for pause, least in zip(pauses, (0.19, 0.39, 0.79), strict=True))
    assert [entry["event"] for entry in logs] == ["nats.disconnected", "nats.reconnected"]


async def test_callers_do_not_hurry_a_server_that_drops_connections() -> None:
    async with FleetingServer([]).running() as server:
        connection = NatsConnection(NatsOptions(url=server.url), SystemClock())
        await connection.connect()
        first = await server.next_connection()

        async def want() -> None:
            while True:
                await connection.connect()
                with pytest.raises(NatsFailure):
                    await connection.flush(PATIENCE_SECONDS)

        wanting = asyncio.ensure_future(want())
        await server.next_connection()
        third = await server.next_connection()
        wanting.cancel()
        await connection.close()

    assert third - first >= 0.59


async def test_many_announced_servers_do_not_displace_the_configured_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_keeper, "MAX_ADDRESSES", 3)
    nobody = [f"127.0.0.1:{port}" for port in range(1, 60)]
    async with FleetingServer(nobody).running() as server:
        kept = NatsConnection(NatsOptions(url=server.url), SystemClock())
        await kept.connect()
        await server.next_connection()

        async with asyncio.timeout(AT_ONCE_SECONDS):
            await server.next_connection()
        await kept.close()


async def test_a_hanging_server_is_abandoned(make_nats: MakeNats) -> None:
    server = make_nats()
    hung = NatsConnection(NatsOptions(url=server.url, ping_interval_seconds=0.05), SystemClock())
    await hung.connect()
    server.pause()

    async with asyncio.timeout(AT_ONCE_SECONDS):
        with pytest.raises(NatsFailure, match="the server has stopped answering"):
            await hung.flush(PATIENCE_SECONDS)
    assert not hung.is_connected

    server.resume()
    await hung.connect()
    await hung.close()


def test_a_hanging_server_is_abandoned_within_fifteen_seconds() -> None:
    pings = session.MAX_UNANSWERED_PINGS + 1
    assert pings * NatsOptions(url="nats://localhost").ping_interval_seconds <= 15


async def test_refused_subjects_are_logged_once_and_boundedly(
    make_nats: MakeNats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "MAX_REFUSED_KINDS", 5)
    url = make_nats(configuration=NO_PUBLISHING).url
    async with connected_as_user(url) as refused:
        with capture_logs() as logs:
            for number in range(20):
                with pytest.raises(NatsFailure, match="refuses to let us publish"):
                    await refused.publish_flushed(f"no.{number // 2}", b"", None, PATIENCE_SECONDS)

    told = [entry["subject"] for entry in logs if entry["event"] == "nats.refused"]
    assert told == [f"no.{number}" for number in range(5)]


async def test_a_refusal_concerns_only_the_subject_as_it_is_spelt(make_nats: MakeNats) -> None:
    async with connected_as_user(make_nats(configuration=NO_CAPITALS).url) as connection:
        permitted, refused = await asyncio.gather(
            connection.publish_flushed("orders.a", b"", None, PATIENCE_SECONDS),
            connection.publish_flushed("orders.A", b"", None, PATIENCE_SECONDS),
            return_exceptions=True,
        )

    assert permitted is None
    assert isinstance(refused, NatsFailure)
    assert "refuses to let us publish on orders.A" in refused.message


async def test_a_refusal_reaches_subjects_that_the_server_writes_in_escapes(
    make_nats: MakeNats,
) -> None:
    subjects = [f"no.{part}" for part in ESCAPED]
    async with connected_as_user(make_nats(configuration=NO_PUBLISHING).url) as connection:
        publishing = [
            connection.publish_flushed(subject, b"", None, PATIENCE_SECONDS)
            for subject in [*subjects, *(f"yes.{subject}" for subject in subjects)]
        ]
        answers = await asyncio.gather(*publishing, return_exceptions=True)

    refusals = [str(answer) for answer in answers[: len(subjects)]]
    assert refusals == [
        f"the server refuses to let us publish on {subject}: permissions violation"
        for subject in subjects
    ]
    assert set(answers[len(subjects) :]) == {None}


async def test_no_message_counts_as_taken_after_a_refusal_of_an_unknown_subject(
    make_nats: MakeNats,
) -> None:
    async with connected_as_user(make_nats(configuration=RENAMING).url) as connection:
        with pytest.raises(NatsFailure, match=r"refuses .* publish on no\.entry") as refused:
            await connection.publish_flushed("renamed", b"", None, PATIENCE_SECONDS)
        await connection.publish_flushed("other", b"", None, PATIENCE_SECONDS)

    assert not refused.value.blames_server


async def test_a_refused_acknowledgement_fails_no_message(make_nats: MakeNats) -> None:
    configuration = NO_PUBLISHING.replace("no.>", "$JS.ACK.>")
    async with connected_as_user(make_nats(configuration=configuration).url) as connection:
        await connection.publish("$JS.ACK.stream.consumer.1", b"+ACK")
        with capture_logs() as logs:
            await connection.publish_flushed("other", b"", None, PATIENCE_SECONDS)

    assert [entry["event"] for entry in logs] == ["nats.refused"]


@asynccontextmanager
async def connected_as_user(url: str) -> AsyncIterator[NatsConnection]:
    options = NatsOptions(url=url, user="duetime", password="secret")
    connection = NatsConnection(options, SystemClock())
    await connection.connect()
    try:
        yield connection
    finally:
        await connection.close()


async def test_closing_does_not_wait_for_a_step_that_does_not_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    freed = asyncio.Event()
    stuck: list[asyncio.Task[None] | None] = []

    async def never_canceled(self: session_keeper.SessionKeeper) -> None:
        stuck.append(asyncio.current_task())
        while not freed.is_set():
            with suppress(asyncio.CancelledError):
                await freed.wait()

    monkeypatch.setattr(session_keeper.SessionKeeper, "step", never_canceled)
    async with FleetingServer([]).running() as server:
        connection = NatsConnection(NatsOptions(url=server.url), SystemClock())
        await connection.connect()
        await server.next_connection()
        try:
            async with asyncio.timeout(AT_ONCE_SECONDS):
                await connection.close()
        finally:
            freed.set()
    (task,) = stuck
    assert task is not None
    await task
