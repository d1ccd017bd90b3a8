"""No address that is not allowed is ever connected to, however it is written or found."""

import itertools

import pytest

from duetime.delivery.http_client import parse_target
from duetime.domain.errors import InvalidInput
from duetime.domain.outcome import Completed, Failed
from duetime.domain.security.callback_networks import literal_address
from duetime.listener import OwnAddresses
from tests.integration.delivery.egress.conftest import Connects
from tests.integration.delivery.egress.dns_server import DnsServer
from tests.integration.delivery.egress.guarded import (
    callback_to,
    deliver,
    failure_of,
    guarded_destination,
    refusal_of,
)
from tests.integration.delivery.http_client.servers import OK, answer_each_with, serve
from tests.refused_hosts import REFUSED_HOSTS

OK_AND_CLOSE = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

REFUSED_ADDRESSES = sorted(
    {str(literal_address(parse_target(f"http://{host}/").host)) for host in REFUSED_HOSTS}
)


def test_there_are_enough_of_them() -> None:
    assert len(REFUSED_HOSTS) >= 150
    assert len(REFUSED_ADDRESSES) >= 90


async def test_no_literal_is_connected_to_or_accepted(connects: Connects) -> None:
    async with guarded_destination("public") as destination:
        for host in REFUSED_HOSTS:
            for url in (f"http://{host}/", f"https://{host}:8443/latest/meta-data"):
                with pytest.raises(InvalidInput, match="CALLBACK_NETWORKS") as caught:
                    destination.check(callback_to(url))
                assert caught.value.field == "callback.url"
                assert "CALLBACK_NETWORKS" in await refusal_of(destination, url)
        assert destination.refused == 2 * len(REFUSED_HOSTS)
    assert connects.addresses == []


async def test_no_name_of_a_refused_address_is_connected_to(
    connects: Connects, dns: DnsServer
) -> None:
    async with guarded_destination("public", look_up=dns.look_up) as destination:
        for number, address in enumerate(REFUSED_ADDRESSES):
            host = f"host-{number}.example"
            dns.name(host, address, "127.0.0.1", "::1")
            url = f"http://{host}/"
            destination.check(callback_to(url))
            error = await refusal_of(destination, url)
            assert error.startswith(f"refused to call {host}:80: it leads to ")
            assert "CALLBACK_NETWORKS" in error
    assert connects.addresses == []


async def test_the_error_says_what_to_do(dns: DnsServer) -> None:
    dns.name("inside.example", "10.0.0.7")
    async with guarded_destination("public", look_up=dns.look_up) as destination:
        assert await refusal_of(destination, "http://127.0.0.1:9999/") == (
            "refused to call 127.0.0.1:9999: it leads to 127.0.0.1, a loopback address, which is "
            "allowed only if CALLBACK_NETWORKS includes loopback or 127.0.0.1/32"
        )
        assert await refusal_of(destination, "http://inside.example/") == (
            "refused to call inside.example:80: it leads to 10.0.0.7, a private address, which is "
            "allowed only if CALLBACK_NETWORKS includes private or 10.0.0.7/32"
        )
        error = await refusal_of(destination, "http://[::1]:9999/")
        assert error.startswith("refused to call [::1]:9999: it leads to ::1, a loopback address")
        with pytest.raises(InvalidInput) as caught:
            destination.check(callback_to("http://localhost:9999/"))
        assert caught.value.message == (
            "callback.url leads to localhost, a loopback address, which is allowed only if "
            "CALLBACK_NETWORKS includes loopback or 127.0.0.1/32"
        )


@pytest.mark.parametrize("bad", ["127.0.0.1", "169.254.169.254", "10.0.0.1", "::1"])
async def test_a_name_that_changes_between_lookups_never_gets_through(
    connects: Connects, dns: DnsServer, bad: str
) -> None:
    """The good server is 127.0.0.2. The bad address is refused, and something listens there."""
    async with serve(answer_each_with(OK_AND_CLOSE), host="127.0.0.2") as good:
        dns.rebind("rebind.example", lambda number: ["127.0.0.2"] if number % 2 == 0 else [bad])
        url = f"http://rebind.example:{good.port}/"
        async with guarded_destination("127.0.0.2/32", look_up=dns.look_up) as destination:
            destination.check(callback_to(url))
            outcomes = [await deliver(destination, url) for _ in range(20)]
    assert dns.lookups["rebind.example"] == 19
    assert [type(each) for each in outcomes] == [Completed, Failed] * 10
    assert all(each.is_final for each in outcomes if isinstance(each, Failed))
    assert connects.addresses == [("127.0.0.2", good.port)] * 10


async def test_only_the_allowed_addresses_of_a_name_are_connected_to(
    connects: Connects, dns: DnsServer
) -> None:
    bad = ["169.254.169.254", "10.0.0.1", "127.0.0.1", "::1", "fe80::1"]
    async with serve(answer_each_with(OK_AND_CLOSE), host="127.0.0.2") as good:
        url = f"http://mixed.example:{good.port}/"
        async with guarded_destination("127.0.0.2/32", look_up=dns.look_up) as destination:
            for addresses in itertools.islice(
                itertools.permutations(["127.0.0.2", *bad]), 0, 720, 37
            ):
                dns.name("mixed.example", *addresses)
                assert isinstance(await deliver(destination, url), Completed)
    assert set(connects.addresses) == {("127.0.0.2", good.port)}


async def test_a_list_of_names_refuses_other_names_at_once(dns: DnsServer) -> None:
    dns.name("api.example", "127.0.0.1")
    async with serve(answer_each_with(OK)) as server:
        networks = f"api.example:{server.port}"
        async with guarded_destination(networks, look_up=dns.look_up) as destination:
            url = f"http://api.example:{server.port}/"
            destination.check(callback_to(url))
            assert isinstance(await deliver(destination, url), Completed)
            for other in ("http://other.example/", "http://api.example/", "http://8.8.8.8/"):
                with pytest.raises(InvalidInput, match="CALLBACK_NETWORKS"):
                    destination.check(callback_to(other))


async def test_a_redirect_to_a_refused_address_is_not_followed(connects: Connects) -> None:
    to_metadata = (
        b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://169.254.169.254/latest/\r\n"
        b"Content-Length: 0\r\n\r\n"
    )
    async with (
        serve(answer_each_with(to_metadata)) as server,
        guarded_destination("loopback") as destination,
    ):
        failure = await failure_of(destination, server.url())
    assert failure.error.startswith("HTTP 307, but redirects are not followed")
    assert not failure.is_final
    assert connects.addresses == [("127.0.0.1", server.port)]


@pytest.mark.parametrize("listens_on", ["0.0.0.0", "::", "127.0.0.1"])
async def test_the_own_address_is_refused_under_every_name(
    connects: Connects, dns: DnsServer, listens_on: str
) -> None:
    everything = "public,private,loopback"
    async with serve(answer_each_with(OK)) as server:
        own = OwnAddresses([(listens_on, server.port)])
        dns.name("myself.example", "127.0.0.1")
        dns.name("2130706433", "127.0.0.1")
        hosts = ["127.0.0.1", "2130706433", "[::ffff:127.0.0.1]", "myself.example"]
        async with guarded_destination(everything, own=own, look_up=dns.look_up) as destination:
            for host in hosts:
                error = await refusal_of(destination, f"http://{host}:{server.port}/")
                assert "the address of this service itself" in error
                assert f"CALLBACK_NETWORKS includes 127.0.0.1/32:{server.port}" in error
        assert connects.addresses == []
        exact = f"loopback,127.0.0.1/32:{server.port}"
        async with guarded_destination(exact, own=own) as destination:
            assert isinstance(await deliver(destination, server.url()), Completed)
        # While the first is open, the other cannot get its port.
        async with (
            serve(answer_each_with(OK)) as other,
            guarded_destination(everything, own=own) as destination,
        ):
            assert isinstance(await deliver(destination, other.url()), Completed)


LOOPBACK_ALIASES = ["127.0.0.2", "127.1.2.3", "127.255.255.255", "[::ffff:127.0.0.2]", "127.8"]
UNSPECIFIED = ["0.0.0.0", "[::]", "[::ffff:0.0.0.0]", "0"]


@pytest.mark.parametrize(
    ("listens_on", "hosts"),
    [
        ("0.0.0.0", LOOPBACK_ALIASES + UNSPECIFIED),
        ("::", LOOPBACK_ALIASES + UNSPECIFIED),
        ("127.0.0.1", UNSPECIFIED),
        ("127.0.0.2", ["127.0.0.2", *UNSPECIFIED]),
    ],
)
async def test_other_local_addresses_of_the_listener_are_refused(
    connects: Connects, dns: DnsServer, listens_on: str, hosts: list[str]
) -> None:
    dns.name("127.8", "127.0.0.8")
    dns.name("0", "0.0.0.0")
    everything = "public,private,loopback,0.0.0.0/32,::/128"
    async with serve(answer_each_with(OK), host="0.0.0.0") as server:
        own = OwnAddresses([(listens_on, server.port)])
        async with guarded_destination(everything, own=own, look_up=dns.look_up) as destination:
            for host in hosts:
                error = await refusal_of(destination, f"http://{host}:{server.port}/")
                assert "the address of this service itself" in error, host
    assert connects.addresses == []


async def test_a_listener_on_one_loopback_address_leaves_the_others_to_callbacks() -> None:
    async with serve(answer_each_with(OK), host="127.0.0.2") as server:
        own = OwnAddresses([("127.0.0.1", server.port)])
        async with guarded_destination("loopback", own=own) as destination:
            url = f"http://127.0.0.2:{server.port}/"
            assert isinstance(await deliver(destination, url), Completed)


async def test_a_name_with_very_many_addresses_is_judged_quickly(dns: DnsServer) -> None:
    dns.name("many.example", *(f"10.0.{high}.{low}" for high in range(4) for low in range(256)))
    async with guarded_destination("public", look_up=dns.look_up) as destination:
        assert "10.0.0.0" in await refusal_of(destination, "http://many.example/")
