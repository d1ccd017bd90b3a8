"""Callbacks through a CONNECT proxy."""

import base64
import ssl

import pytest
import trustme

from duetime.delivery.http_client import HttpProxy
from duetime.domain.errors import LocalShortage
from duetime.domain.outcome import Completed
from tests.integration.delivery.egress.conftest import Connects
from tests.integration.delivery.egress.dns_server import DnsServer
from tests.integration.delivery.egress.guarded import (
    callback_to,
    deliver,
    failure_of,
    guarded_destination,
    refusal_of,
)
from tests.integration.delivery.egress.proxy_server import Proxy
from tests.integration.delivery.http_client.servers import (
    OK,
    Behaviour,
    Peer,
    answer_each_with,
    serve,
)
from tests.refusing_port import refusing_port

CREDENTIALS = base64.b64encode(b"user:secret")
BASIC = b"Basic " + CREDENTIALS
HOST = "api.example"
OK_AND_CLOSE = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def answering(answer: bytes) -> Behaviour:
    async def behave(peer: Peer) -> None:
        await peer.read_head()
        peer.send(answer)
        await peer.wait_until_client_closes()

    return behave


async def test_callbacks_go_through_the_proxy_and_keep_their_tunnel(connects: Connects) -> None:
    proxy = Proxy(credentials=CREDENTIALS)
    async with serve(answer_each_with(OK)) as endpoint, serve(proxy.behaviour) as server:
        through = HttpProxy("127.0.0.1", server.port, BASIC)
        async with guarded_destination(proxy=through) as destination:
            for _ in range(3):
                outcome = await deliver(destination, endpoint.url(host=HOST))
                assert isinstance(outcome, Completed)
        assert [len(peer.requests) for peer in endpoint.peers] == [3]
        target = f"{HOST}:{endpoint.port}".encode()
        assert proxy.asked == [
            b"CONNECT %b HTTP/1.1\r\nHost: %b\r\nProxy-Authorization: %b\r\n\r\n"
            % (target, target, BASIC)
        ]
        # The endpoint never learns the proxy's credentials.
        assert b"roxy" not in endpoint.peers[0].requests[0].head
    assert ("127.0.0.1", server.port) in connects.addresses


async def test_tls_is_inside_the_tunnel_and_verified(authority: trustme.CA) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(HOST).configure_cert(tls)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    proxy = Proxy()
    async with serve(answer_each_with(OK), tls=tls) as endpoint, serve(proxy.behaviour) as server:
        through = HttpProxy("127.0.0.1", server.port)
        async with guarded_destination(proxy=through, ssl_context=trusting) as destination:
            assert isinstance(await deliver(destination, endpoint.url(host=HOST)), Completed)
            failure = await failure_of(destination, endpoint.url(host="other.example"))
            assert failure.error.startswith("TLS certificate not accepted: Hostname mismatch")
        assert sum(len(peer.requests) for peer in endpoint.peers) == 1


async def test_the_proxy_decides_alone_unless_told_otherwise() -> None:
    proxy = Proxy()
    async with serve(answer_each_with(OK)) as endpoint, serve(proxy.behaviour) as server:
        through = HttpProxy("127.0.0.1", server.port)
        async with guarded_destination("public", proxy=through) as destination:
            destination.check(callback_to(endpoint.url()))
            assert isinstance(await deliver(destination, endpoint.url()), Completed)


async def test_with_the_guard_the_proxy_is_given_judged_addresses(dns: DnsServer) -> None:
    """The proxy would take the name to loopback, whatever it resolves to here."""
    proxy = Proxy()
    dns.rebind(HOST, lambda number: ["127.0.0.2", "10.0.0.1"] if number == 0 else ["10.0.0.1"])
    async with (
        serve(answer_each_with(OK_AND_CLOSE), host="127.0.0.2") as endpoint,
        serve(proxy.behaviour) as server,
    ):
        through = HttpProxy("127.0.0.1", server.port, gets_addresses=True)
        async with guarded_destination(
            "127.0.0.2/32", proxy=through, look_up=dns.look_up
        ) as destination:
            url = endpoint.url(host=HOST)
            assert isinstance(await deliver(destination, url), Completed)
            assert b"Host: api.example" in endpoint.peers[0].requests[0].head
            await refusal_of(destination, url)
    assert proxy.targets == [f"127.0.0.2:{endpoint.port}".encode()]


async def test_other_addresses_are_tried_if_the_proxy_cannot_reach_the_first(
    dns: DnsServer,
) -> None:
    proxy = Proxy()
    dns.name(HOST, "127.0.0.3", "127.0.0.2")
    async with (
        serve(answer_each_with(OK), host="127.0.0.2") as endpoint,
        serve(proxy.behaviour) as server,
    ):
        through = HttpProxy("127.0.0.1", server.port, gets_addresses=True)
        async with guarded_destination(
            "loopback", proxy=through, look_up=dns.look_up
        ) as destination:
            assert isinstance(await deliver(destination, endpoint.url(host=HOST)), Completed)
    assert proxy.targets == [
        f"{host}:{endpoint.port}".encode() for host in ("127.0.0.3", "127.0.0.2")
    ]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", "opened no tunnel: 502 Bad Gateway"),
        (b"HTTP/1.1 403 Forbidden\r\nA: b\r\n\r\n<html>", "opened no tunnel: 403 Forbidden"),
        (b"HTTP/1.0 301\r\n\r\n", "opened no tunnel: 301"),
        (b"HTTP/1.1 200 OK\r\n\r\nsurplus", "sent data before the tunnel was used"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "gave no valid HTTP answer"),
        (b"HTTP/1.1 2000 OK\r\n\r\n", "gave no valid HTTP answer"),
        (b"HTTP/1.1 200 OK\r\nA: " + b"x" * 100_000, "did not end the head of its answer"),
    ],
)
async def test_an_answer_other_than_success_is_an_error_of_the_attempt(
    answer: bytes, problem: str
) -> None:
    async with serve(answering(answer)) as server:
        through = HttpProxy("127.0.0.1", server.port, BASIC)
        async with guarded_destination(proxy=through) as destination:
            failure = await failure_of(destination, "https://api.example/")
    assert failure.error == f"the proxy http://127.0.0.1:{server.port} {problem}"
    assert not failure.is_final


async def test_a_proxy_that_hangs_up_within_its_answer() -> None:
    async def hang_up(peer: Peer) -> None:
        await peer.read_head()
        peer.send(b"HTTP/1.1 200 ")
        peer.close()

    async with serve(hang_up) as server:
        through = HttpProxy("127.0.0.1", server.port, BASIC)
        async with guarded_destination(proxy=through) as destination:
            failure = await failure_of(destination, "http://api.example/")
    assert failure.error.endswith("closed the connection before it had answered")


async def test_a_proxy_that_hangs_up_without_a_word_is_nobodys_failure() -> None:
    async def hang_up(peer: Peer) -> None:
        await peer.read_head()
        peer.close()

    async def hang_up_at_once(peer: Peer) -> None:
        peer.close()

    async def reset(peer: Peer) -> None:
        await peer.read_head()
        peer.reset()

    for behaviour in (hang_up, hang_up_at_once, reset):
        async with serve(behaviour) as server:
            through = HttpProxy("127.0.0.1", server.port, BASIC)
            async with guarded_destination(proxy=through) as destination:
                with pytest.raises(LocalShortage) as caught:
                    await deliver(destination, "https://api.example/")
        assert caught.value.resource.startswith(
            f"callback proxy (http://127.0.0.1:{server.port}: it "
        )


@pytest.mark.parametrize("begin", [b"", b"HTTP/1.1 200 "])
async def test_a_proxy_that_falls_silent(begin: bytes) -> None:
    async with serve(answering(begin)) as server:
        through = HttpProxy("127.0.0.1", server.port, BASIC)
        async with guarded_destination(proxy=through, connect_timeout_seconds=0.2) as destination:
            failure = await failure_of(destination, "http://api.example/")
            assert failure.error == (
                f"the proxy http://127.0.0.1:{server.port} opened no tunnel within 0.2 s"
            )
            await server.peers[0].see_client_close()


async def test_a_proxy_that_is_away_is_nobodys_failure(dns: DnsServer) -> None:
    with refusing_port() as port:
        async with guarded_destination(proxy=HttpProxy("127.0.0.1", port, BASIC)) as destination:
            with pytest.raises(LocalShortage) as caught:
                await deliver(destination, "http://api.example/")
    assert caught.value.resource == f"callback proxy (http://127.0.0.1:{port}: connection refused)"


async def test_wrong_credentials_are_nobodys_failure_and_are_not_shown() -> None:
    proxy = Proxy(credentials=b"others")
    async with serve(proxy.behaviour) as server:
        through = HttpProxy("127.0.0.1", server.port, BASIC)
        async with guarded_destination(proxy=through) as destination:
            with pytest.raises(LocalShortage) as caught:
                await deliver(destination, "http://api.example/")
    assert "does not accept the credentials of CALLBACK_PROXY: 407" in caught.value.resource
    assert "secret" not in repr(through)
    assert CREDENTIALS.decode() not in repr(through) + caught.value.resource


async def test_the_guard_refuses_before_the_proxy_is_asked(dns: DnsServer) -> None:
    proxy = Proxy()
    dns.name("inside.example", "10.0.0.1")
    async with serve(proxy.behaviour) as server:
        through = HttpProxy("127.0.0.1", server.port, gets_addresses=True)
        async with guarded_destination("public", proxy=through, look_up=dns.look_up) as destination:
            for url in ("http://inside.example/", "http://169.254.169.254/"):
                await refusal_of(destination, url)
        assert not server.peers
