"""TLS: the host is verified, and the error says why it was not accepted."""

import asyncio
import datetime
import socket
import ssl
from collections.abc import Sequence

import pytest
import trustme

from duetime.delivery.http_client import (
    Address,
    DeliveryFailure,
    HttpClient,
    NotConnected,
    StaleConnection,
    TimedOut,
    default_ssl_context,
)
from tests.integration.delivery.http_client.servers import (
    OK,
    Behaviour,
    Peer,
    answer_each_with,
    answer_once_and_close,
    answer_once_and_watch,
    post,
    serve,
)

HOST = "api.example.test"


async def to_loopback(host: str, port: int, deadline: float) -> Sequence[Address]:
    return [(socket.AF_INET, "127.0.0.1")]


def server_context(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["h2", "http/1.1"])
    certificate.configure_cert(context)
    return context


def trusting_client(authority: trustme.CA) -> HttpClient:
    context = default_ssl_context()
    authority.configure_trust(context)
    return HttpClient(ssl_context=context, resolve=to_loopback)


async def failure_text(client: HttpClient, url: str) -> str:
    with pytest.raises(NotConnected) as caught:
        await post(client, url)
    await client.close()
    return str(caught.value)


async def test_verified_connection_is_used_and_kept(authority: trustme.CA) -> None:
    context = server_context(authority.issue_cert(HOST))
    names: list[str | None] = []

    def remember_name(_: ssl.SSLObject, name: str | None, __: ssl.SSLContext) -> None:
        names.append(name)

    context.sni_callback = remember_name
    client = trusting_client(authority)
    async with serve(answer_each_with(OK), tls=context) as server:
        for _ in range(3):
            assert (await post(client, server.url(host=HOST), b"x" * 1_000_000)).body == b"ok"
        assert [len(peer.requests) for peer in server.peers] == [3]
        assert server.peers[0].tls().selected_alpn_protocol() == "http/1.1"
        assert names == [HOST]
        # An absolute name is another origin with the same certificate.
        assert (await post(client, server.url(host=HOST + "."))).status == 200
    await client.close()


async def test_ip_address_in_the_certificate(authority: trustme.CA) -> None:
    client = trusting_client(authority)
    context = server_context(authority.issue_cert("127.0.0.1"))
    async with serve(answer_each_with(OK), tls=context) as server:
        assert (await post(client, server.url())).status == 200
    await client.close()


async def test_unknown_authority(authority: trustme.CA) -> None:
    client = HttpClient(resolve=to_loopback)
    context = server_context(authority.issue_cert(HOST))
    async with serve(answer_each_with(OK), tls=context) as server:
        text = await failure_text(client, server.url(host=HOST))
        assert text == (
            "TLS certificate not accepted: unable to get local issuer certificate; "
            "CALLBACK_CA_FILE can add its authority"
        )
        assert not any(peer.requests for peer in server.peers)


async def test_certificate_of_another_host(authority: trustme.CA) -> None:
    context = server_context(authority.issue_cert("other.example.test"))
    async with serve(answer_each_with(OK), tls=context) as server:
        text = await failure_text(trusting_client(authority), server.url(host=HOST))
        assert text.startswith("TLS certificate not accepted: Hostname mismatch")
        assert not any(peer.requests for peer in server.peers)


async def test_expired_certificate(authority: trustme.CA) -> None:
    past = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    context = server_context(authority.issue_cert(HOST, not_before=past, not_after=past))
    async with serve(answer_each_with(OK), tls=context) as server:
        text = await failure_text(trusting_client(authority), server.url(host=HOST))
        assert text == "TLS certificate not accepted: certificate has expired"


async def test_server_without_tls(authority: trustme.CA) -> None:
    async def behave(peer: Peer) -> None:
        peer.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        await peer.wait_until_client_closes()

    async with serve(behave) as server:
        url = server.url(host=HOST).replace("http:", "https:")
        text = await failure_text(trusting_client(authority), url)
        assert text == "TLS handshake failed: wrong version number"


@pytest.mark.parametrize("end", ["close", "reset"])
async def test_server_that_closes_during_the_handshake(authority: trustme.CA, end: str) -> None:
    async def behave(peer: Peer) -> None:
        peer.reset() if end == "reset" else peer.close()

    async with serve(behave) as server:
        url = server.url(host=HOST).replace("http:", "https:")
        text = await failure_text(trusting_client(authority), url)
        assert text == "TLS handshake failed: connection closed by the other side"


@pytest.mark.exclusive
async def test_timeout_in_the_handshake(authority: trustme.CA) -> None:
    async def behave(peer: Peer) -> None:
        await peer.wait_until_client_closes()

    client = trusting_client(authority)
    async with serve(behave) as server:
        url = server.url(host=HOST).replace("http:", "https:")
        with pytest.raises(TimedOut, match=r"^timed out after 0\.05 s$"):
            await post(client, url, timeout_seconds=0.05)
        await server.peers[0].see_client_close()
    await client.close()


UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\n\r\nabcd"


@pytest.mark.parametrize(
    ("behaviour", "body"),
    [
        (answer_once_and_close(UNTIL_CLOSE), b"abcd"),
        (answer_once_and_watch(OK + b"surplus"), b"ok"),
        (answer_once_and_close(OK), b"ok"),
    ],
)
async def test_connection_that_is_not_kept(
    authority: trustme.CA, behaviour: Behaviour, body: bytes
) -> None:
    client = trusting_client(authority)
    context = server_context(authority.issue_cert(HOST))
    async with serve(behaviour, tls=context) as server:
        for expected in (1, 2):
            assert (await post(client, server.url(host=HOST))).body == body
            assert len(server.peers) == expected
    await client.close()


async def test_stale_connection_is_reported_and_replaced(authority: trustme.CA) -> None:
    async def behave(peer: Peer) -> None:
        await peer.read_request()
        peer.send(OK)
        await peer.read_request()
        peer.close()

    client = trusting_client(authority)
    context = server_context(authority.issue_cert(HOST))
    async with serve(behave, tls=context) as server:
        assert (await post(client, server.url(host=HOST))).status == 200
        with pytest.raises(StaleConnection):
            await post(client, server.url(host=HOST))
        assert (await post(client, server.url(host=HOST))).status == 200
        assert [len(peer.requests) for peer in server.peers] == [2, 1]
    await client.close()


async def test_cancelled_request_closes_its_connection(authority: trustme.CA) -> None:
    arrived = asyncio.Event()

    async def behave(peer: Peer) -> None:
        await peer.read_request()
        arrived.set()
        await peer.wait_until_client_closes()

    client = trusting_client(authority)
    context = server_context(authority.issue_cert(HOST))
    async with serve(behave, tls=context) as server:
        request = asyncio.create_task(post(client, server.url(host=HOST)))
        await arrived.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        await server.peers[0].see_client_close()
        assert len(server.peers) == 1
    await client.close()


async def test_server_that_speaks_first_is_rejected(authority: trustme.CA) -> None:
    async def behave(peer: Peer) -> None:
        peer.send(b"220 mail.example ESMTP\r\n")
        await peer.wait_until_client_closes()

    client = trusting_client(authority)
    context = server_context(authority.issue_cert(HOST))
    async with serve(behave, tls=context) as server:
        with pytest.raises(DeliveryFailure, match=r"^not a valid HTTP answer$"):
            await post(client, server.url(host=HOST))
    await client.close()


async def test_client_certificate_that_is_missing(authority: trustme.CA) -> None:
    context = server_context(authority.issue_cert(HOST))
    context.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(context)
    client = trusting_client(authority)
    async with serve(answer_each_with(OK), tls=context) as server:
        with pytest.raises(DeliveryFailure) as caught:
            await post(client, server.url(host=HOST))
        # The server's alert races with its closing of the connection.
        assert str(caught.value) in (
            "TLS handshake failed: tlsv13 alert certificate required"
            " (the other side wants a client certificate)",
            "connection closed before an answer",
            "connection reset",
        )
    await client.close()
