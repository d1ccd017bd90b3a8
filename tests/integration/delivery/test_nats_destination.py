"""One attempt against a real NATS server."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import chain
from pathlib import Path
from typing import Any

import nats
import pytest
import trustme
from msgspec import UNSET, Raw
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import DiscardPolicy, StreamConfig
from structlog.testing import capture_logs

from duetime.clock import SystemClock
from duetime.delivery.nats import NatsDestination
from duetime.domain.callback import NatsCallback, Payload
from duetime.domain.outcome import Completed, Failed, Outcome
from duetime.nats import NatsConnection, NatsFailure, NatsOptions
from duetime.telemetry.current_work import CURRENT_WORK, CurrentWork
from duetime.testing.virtual_clock import START_AT, VirtualClock
from tests.brokers.nats_credentials import make_identity
from tests.brokers.nats_fixtures import MakeNats
from tests.brokers.nats_server import NatsServer
from tests.unit.delivery.claims import always, claim_of

PATIENCE_SECONDS = 10
AT_ONCE_SECONDS = 2
"""Much less than the timeout of an attempt in these tests."""

ATTEMPT_MS = 30_000

PERMISSIONS = """
authorization {
  users = [{
    user: "duetime", password: "secret",
    permissions: { publish: { deny: ["Forbidden.>"] } }
  }, { user: "other", password: "secret" }]
}
"""

Connect = Callable[..., Awaitable[NatsDestination]]


@pytest.fixture
def server(make_nats: MakeNats) -> NatsServer:
    return make_nats()


@pytest.fixture
async def client(server: NatsServer) -> AsyncIterator[Client]:
    """The receiver of the messages."""
    client = await nats.connect(server.url)
    yield client
    await client.close()


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    made: list[NatsConnection] = []

    async def connect_to(url: str, **options: Any) -> NatsDestination:
        connection = NatsConnection(NatsOptions(url=url, **options), SystemClock())
        made.append(connection)
        await connection.connect()
        return NatsDestination(connection, VirtualClock(), ATTEMPT_MS)

    yield connect_to
    for connection in made:
        await connection.close()


@pytest.fixture
async def connection(server: NatsServer) -> AsyncIterator[NatsConnection]:
    connection = NatsConnection(NatsOptions(url=server.url), SystemClock())
    await connection.connect()
    yield connection
    await connection.close()


@pytest.fixture
def destination(connection: NatsConnection) -> NatsDestination:
    return NatsDestination(connection, VirtualClock(), ATTEMPT_MS)


async def deliver(
    destination: NatsDestination,
    topic: str = "orders",
    *,
    key: str | None = None,
    headers: dict[str, str] | None = None,
    payload: Payload = UNSET,
    timeout_ms: int | None = None,
    ack: bool = False,
    attempt: int = 1,
) -> Outcome:
    callback = NatsCallback(
        topic=topic, key=key, headers=headers, payload=payload, timeout_ms=timeout_ms, ack=ack
    )
    destination.check(callback)
    return await destination.deliver(claim_of(callback, attempt=attempt), always)


def failure_of(outcome: Outcome) -> Failed:
    assert isinstance(outcome, Failed)
    return outcome


async def known_to_server(client: Client) -> None:
    """Return when the server knows the client's subscriptions. The first PING may overtake them
    inside the library; the second does not."""
    await client.flush()
    await client.flush()


async def receive_one(client: Client, subject: str, send: Callable[[], Awaitable[Outcome]]) -> Msg:
    subscription = await client.subscribe(subject)
    await known_to_server(client)
    assert isinstance(await send(), Completed)
    return await subscription.next_msg(timeout=PATIENCE_SECONDS)


async def test_the_payload_is_published_with_the_clients_headers_and_ours(
    destination: NatsDestination, client: Client
) -> None:
    async def send() -> Outcome:
        headers = {"X-Tag": "größe", "Webhook-Id": "mine", "TIMER-ATTEMPT": "99"}
        return await deliver(destination, headers=headers, payload=Raw(b'{ "a": 1.0 }'), attempt=3)

    message = await receive_one(client, "orders", send)

    assert message.data == b'{ "a": 1.0 }'
    assert message.headers == {
        "X-Tag": "größe",
        "Nats-Msg-Id": "01980000-0000-7000-8000-00000000abcd",
        "webhook-id": "01980000-0000-7000-8000-00000000abcd",
        "webhook-timestamp": str(START_AT // 1_000_000),
        "Timer-Attempt": "3",
    }


async def test_the_trace_context_of_an_attempt_replaces_the_clients(
    destination: NatsDestination, client: Client
) -> None:
    traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    async def send() -> Outcome:
        CURRENT_WORK.set(CurrentWork(None, traceparent, is_attempt=True))
        return await deliver(destination, headers={"Traceparent": "x", "tracestate": "a=b"})

    headers = (await receive_one(client, "orders", send)).headers or {}
    assert headers["traceparent"] == traceparent
    assert headers.keys().isdisjoint({"Traceparent", "tracestate"})


async def test_the_key_ends_the_subject_and_a_missing_payload_is_empty(
    destination: NatsDestination, client: Client
) -> None:
    message = await receive_one(client, "orders.>", lambda: deliver(destination, key="eu.42"))

    assert (message.subject, message.data) == ("orders.eu.42", b"")


async def test_many_at_once_all_arrive(destination: NatsDestination, client: Client) -> None:
    subscription = await client.subscribe("orders.*")
    await known_to_server(client)

    outcomes = await asyncio.gather(*(deliver(destination, key=str(n)) for n in range(2_000)))

    assert all(isinstance(outcome, Completed) for outcome in outcomes)
    subjects = {
        (await subscription.next_msg(timeout=PATIENCE_SECONDS)).subject for _ in range(2_000)
    }
    assert len(subjects) == 2_000


@pytest.mark.parametrize("ack", [False, True])
async def test_a_dead_server_fails_the_attempt_at_once(
    destination: NatsDestination, connection: NatsConnection, server: NatsServer, ack: bool
) -> None:
    assert connection.is_connected
    server.kill()

    async with asyncio.timeout(AT_ONCE_SECONDS):
        first = failure_of(await deliver(destination, ack=ack))
        second = failure_of(await deliver(destination, ack=ack))

    assert first.blames_endpoint
    assert second.blames_endpoint
    assert second.error.startswith(f"NATS: not connected to {server.url}")
    assert not connection.is_connected


@pytest.mark.parametrize("ack", [False, True])
async def test_attempts_under_way_fail_at_once_when_the_server_dies(
    destination: NatsDestination, server: NatsServer, ack: bool
) -> None:
    server.pause()
    attempts = [asyncio.ensure_future(deliver(destination, ack=ack)) for _ in range(100)]
    done, _ = await asyncio.wait(attempts, timeout=0.05)
    assert not done

    server.kill()

    async with asyncio.timeout(AT_ONCE_SECONDS):
        outcomes = await asyncio.gather(*attempts)
    assert all(failure_of(each).error.startswith("NATS: lost ") for each in outcomes)


async def test_the_connection_is_made_again_after_every_break(
    destination: NatsDestination, connection: NatsConnection, server: NatsServer
) -> None:
    with capture_logs() as logs:
        for _ in range(3):
            server.kill()
            failure_of(await deliver(destination))
            server.start()
            await connection.connect()
            assert isinstance(await deliver(destination), Completed)
    events = [entry["event"] for entry in logs]
    assert events.count("nats.disconnected") == 1, (
        "the end of short connections is not logged every time"
    )
    assert all(entry["server"] == server.url for entry in logs)


@pytest.mark.parametrize(
    ("ack", "error"),
    [
        (False, "NATS: no answer from {url} within 0.05 s"),
        (True, "NATS: no stream at {url} said within 0.05 s that it stores orders"),
    ],
)
async def test_a_silent_server_fails_the_attempt_at_its_timeout(
    destination: NatsDestination, server: NatsServer, client: Client, ack: bool, error: str
) -> None:
    await client.jetstream().add_stream(name="ORDERS", subjects=["orders"])
    server.pause()

    late = failure_of(await deliver(destination, timeout_ms=50, ack=ack))

    assert late.error == error.format(url=server.url)
    server.resume()
    assert isinstance(await deliver(destination, ack=ack), Completed)
    assert isinstance(await deliver(destination, ack=ack), Completed)


async def test_cancelling_an_attempt_does_not_disturb_others(
    destination: NatsDestination, server: NatsServer
) -> None:
    server.pause()
    given_up, kept = (asyncio.ensure_future(deliver(destination)) for _ in range(2))
    await asyncio.wait({given_up}, timeout=0.02)
    given_up.cancel()
    await asyncio.wait({given_up})

    server.resume()

    assert isinstance(await kept, Completed)
    assert isinstance(await deliver(destination), Completed)


async def test_a_forbidden_subject_fails_the_attempt(connect: Connect, make_nats: MakeNats) -> None:
    url = make_nats(configuration=PERMISSIONS).url
    destination = await connect(url, user="duetime", password="secret")

    async def deliver_often(topic: str) -> list[Outcome]:
        return [await deliver(destination, topic) for _ in range(200)]

    # Later messages must not take the PONG for earlier ones as theirs.
    topics = ["Forbidden.orders", "allowed"] * 20
    outcomes = await asyncio.gather(*map(deliver_often, topics))
    forbidden, allowed = chain(*outcomes[::2]), chain(*outcomes[1::2])
    stored = failure_of(await deliver(destination, "Forbidden.orders", ack=True))

    assert all(isinstance(outcome, Completed) for outcome in allowed)
    for refused in map(failure_of, forbidden):
        assert "refuses to let us publish on Forbidden.orders" in refused.error
        assert not refused.blames_endpoint
    assert "refuses to let us publish" in stored.error


async def test_a_message_that_is_too_large_fails_and_harms_no_other(
    make_nats: MakeNats, connect: Connect
) -> None:
    destination = await connect(make_nats(configuration="max_payload: 1000").url)

    payload = Raw(b'"%b"' % (b"x" * 850))
    assert isinstance(await deliver(destination, payload=Raw(b"1")), Completed)
    refused = failure_of(await deliver(destination, payload=payload))

    assert refused.error == "NATS: the message is larger than the 1000 bytes that the server takes"
    assert not refused.blames_endpoint
    assert isinstance(await deliver(destination), Completed)


async def test_with_ack_a_stream_stores_the_message_once(
    destination: NatsDestination, client: Client
) -> None:
    await client.jetstream().add_stream(name="ORDERS", subjects=["orders.>"])

    for attempt in (1, 2):
        outcome = await deliver(destination, key="42", ack=True, payload=Raw(b"1"), attempt=attempt)
        assert isinstance(outcome, Completed)

    stream = await client.jsm().stream_info("ORDERS")
    assert stream.state.messages == 1


async def test_with_ack_and_without_a_stream_the_attempt_fails(
    destination: NatsDestination,
) -> None:
    refused = failure_of(await deliver(destination, ack=True))

    assert refused.error == "NATS: no stream stores orders"
    assert not refused.blames_endpoint


async def test_with_ack_an_answer_from_no_stream_is_a_failure(
    destination: NatsDestination, client: Client
) -> None:
    async def answer(message: Msg) -> None:
        await message.respond(b"thanks")

    await client.subscribe("orders", cb=answer)
    await known_to_server(client)

    refused = failure_of(await deliver(destination, ack=True))

    assert "is not an acknowledgement" in refused.error


async def test_with_ack_a_full_stream_fails(destination: NatsDestination, client: Client) -> None:
    config = StreamConfig(
        name="ORDERS", subjects=["orders.>"], max_msgs=1, discard=DiscardPolicy.NEW
    )
    await client.jsm().add_stream(config)
    await client.jetstream().publish("orders.first", b"")

    refused = failure_of(await deliver(destination, key="second", ack=True))

    assert refused.error == "NATS: the stream did not store it: maximum messages exceeded"


async def test_a_wrong_password_is_reported_but_never_shown(
    connect: Connect, make_nats: MakeNats
) -> None:
    url = make_nats(configuration=PERMISSIONS).url
    with pytest.raises(NatsFailure, match=r": authorization violation$") as refusal:
        await connect(url, user="duetime", password="hunter2")
    assert "hunter2" not in refusal.value.message


async def test_tls_is_used_and_required(
    connect: Connect, make_nats: MakeNats, tmp_path: Path
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    files = f'cert_file: "{tmp_path / "cert.pem"}", key_file: "{tmp_path / "key.pem"}"'
    address = make_nats(configuration=f"tls {{ {files} }}").url.partition("://")[2]
    authority_file = str(tmp_path / "ca.pem")

    destination = await connect(f"tls://{address}", tls_ca_file=authority_file)
    assert isinstance(await deliver(destination), Completed)

    with pytest.raises(NatsFailure, match="TLS certificate not accepted"):
        await connect(f"tls://{address}")
    plain = make_nats().url.partition("://")[2]
    with pytest.raises(NatsFailure, match="the server does not offer tls"):
        await connect(f"tls://{plain}", tls_ca_file=authority_file, user="a", password="b")
    with pytest.raises(NatsFailure, match="cannot use the TLS files"):
        await connect(f"tls://{address}", tls_ca_file=str(tmp_path / "missing.pem"))


async def test_a_credentials_file_authenticates(
    connect: Connect, make_nats: MakeNats, tmp_path: Path
) -> None:
    identity = make_identity()
    url = make_nats(configuration=identity.configuration, jetstream=False).url
    file = tmp_path / "user.creds"
    file.write_text(identity.credentials)

    destination = await connect(url, credentials_file=str(file))
    assert isinstance(await deliver(destination), Completed)

    file.write_text(make_identity().credentials)
    with pytest.raises(NatsFailure, match="authorization violation"):
        await connect(url, credentials_file=str(file))
    file.write_text("no credentials")
    with pytest.raises(NatsFailure, match="is not a NATS credentials file"):
        await connect(url, credentials_file=str(file))
