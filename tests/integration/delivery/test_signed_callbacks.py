"""Callbacks as a receiver gets them, verified by the official library."""

import ssl
from collections.abc import AsyncIterator

import nats
import pytest
from msgspec import UNSET, Raw
from standardwebhooks import Webhook, WebhookVerificationError

from duetime.clock import SystemClock
from duetime.delivery.http import HttpDestination
from duetime.delivery.http_client import HttpClient
from duetime.delivery.nats import NatsDestination
from duetime.delivery.signing import make_signer
from duetime.domain.callback import CallbackProtocol, HttpCallback, NatsCallback, Payload
from duetime.domain.instants import Instant
from duetime.domain.outcome import Completed
from duetime.domain.security.credentials import SecretKind, WebhookSecret
from duetime.domain.security.secret_text import format_secret
from duetime.nats import NatsConnection, NatsOptions
from duetime.service.security.known_signers import KnownSigners
from tests.brokers.nats_fixtures import MakeNats
from tests.integration.delivery.http_client.servers import (
    ReceivedRequest,
    answer_each_with,
    serve,
)
from tests.unit.delivery.claims import always, claim_of

OLD, NEW = (format_secret(SecretKind.HMAC, key * 32) for key in (b"o", b"n"))
DONE = b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"ok":true}'
OF_ANOTHER_NAMESPACE = format_secret(SecretKind.HMAC, b"a" * 32)


def secret(id: str, namespace: str, text: str) -> WebhookSecret:
    return WebhookSecret(id=id, namespace=namespace, secret=text, created_at=Instant(0))


@pytest.fixture
def signers() -> KnownSigners:
    known = KnownSigners(SystemClock(), make_signer)
    known.see(
        [
            secret("1", "orders", OLD),
            secret("2", "orders", NEW),
            secret("3", "invoices", OF_ANOTHER_NAMESPACE),
        ]
    )
    return known


@pytest.fixture
async def destination(
    ssl_context: ssl.SSLContext, signers: KnownSigners
) -> AsyncIterator[HttpDestination]:
    client = HttpClient(ssl_context=ssl_context)
    destination = HttpDestination(client, SystemClock(), 5_000, signers=signers)
    yield destination
    await destination.close()


def headers_of(request: ReceivedRequest) -> dict[str, str]:
    lines = request.head.decode("latin-1").rstrip().split("\r\n")[1:]
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    assert len(headers) == len(lines), "no header twice"
    return headers


@pytest.mark.parametrize("protocol", CallbackProtocol)
@pytest.mark.parametrize("payload", [UNSET, Raw(b'{ "total": 1.10, "of": "\xc3\xa4" }')])
async def test_the_official_library_accepts_callbacks_over_http(
    destination: HttpDestination, protocol: CallbackProtocol, payload: Payload
) -> None:
    async with serve(answer_each_with(DONE)) as server:
        callback = HttpCallback(
            url=server.url("/due"),
            headers={"Webhook-Signature": "v1,forged"},
            payload=payload,
            protocol=protocol,
        )
        outcome = await destination.deliver(claim_of(callback, namespace="orders"), always)
    assert isinstance(outcome, Completed)
    (request,) = server.peers[0].requests
    headers, body = headers_of(request), request.body
    for text in (OLD, NEW):
        Webhook(text).verify(body, headers, json_parse=False)
    with pytest.raises(WebhookVerificationError):
        Webhook(OF_ANOTHER_NAMESPACE).verify(body, headers, json_parse=False)
    with pytest.raises(WebhookVerificationError):
        Webhook(NEW).verify(body + b" ", headers, json_parse=False)


async def test_a_namespace_without_a_secret_sends_no_signature(
    destination: HttpDestination,
) -> None:
    async with serve(answer_each_with(DONE)) as server:
        callback = HttpCallback(url=server.url("/due"), headers={"webhook-signature": "v1,forged"})
        await destination.deliver(claim_of(callback, namespace="others"), always)
    (request,) = server.peers[0].requests
    assert "webhook-signature" not in headers_of(request)


@pytest.mark.parametrize("payload", [UNSET, Raw(b'{"total": 1.10}')])
async def test_the_official_library_accepts_callbacks_over_nats(
    make_nats: MakeNats, signers: KnownSigners, payload: Payload
) -> None:
    server = make_nats()
    connection = NatsConnection(NatsOptions(url=server.url), SystemClock())
    receiver = await nats.connect(server.url)
    try:
        await connection.connect()
        subscription = await receiver.subscribe("orders.due")
        await receiver.flush()
        destination = NatsDestination(connection, SystemClock(), 5_000, signers=signers)
        forged = {"Webhook-Signature": "v1,forged"}
        callback = NatsCallback(topic="orders.due", headers=forged, payload=payload)
        outcome = await destination.deliver(claim_of(callback, namespace="orders"), always)
        assert isinstance(outcome, Completed)
        message = await subscription.next_msg(timeout=10)
    finally:
        await receiver.close()
        await connection.close()
    assert message.headers is not None
    assert "Webhook-Signature" not in message.headers
    for text in (OLD, NEW):
        Webhook(text).verify(message.data, message.headers, json_parse=False)
