"""Namespaces narrow the list, and never use each other's connections when their rules differ."""

import pytest

from duetime.domain.errors import LocalShortage, StoreUnavailable
from duetime.domain.outcome import Completed, NotSent
from tests.integration.delivery.egress.guarded import (
    ChangingNamespaces,
    callback_to,
    deliver,
    guarded_destination,
    refusal_of,
)
from tests.integration.delivery.http_client.servers import OK, answer_each_with, serve
from tests.unit.delivery.claims import claim_of


async def test_a_list_of_a_namespace_narrows_that_of_the_service() -> None:
    namespaces = ChangingNamespaces()
    namespaces.networks |= {"narrow": "127.0.0.2/32", "wide": "public,private,loopback,127.0.0.1"}
    async with (
        serve(answer_each_with(OK)) as server,
        guarded_destination("loopback", namespaces=namespaces) as destination,
    ):
        assert isinstance(await deliver(destination, server.url()), Completed)
        error = await refusal_of(destination, server.url(), namespace="narrow")
        assert error == (
            f"refused to call 127.0.0.1:{server.port}: it leads to 127.0.0.1, a loopback address, "
            "which is allowed only if the list of its namespace (callbackNetworks) includes "
            "loopback or 127.0.0.1/32"
        )
        assert isinstance(await deliver(destination, server.url(), namespace="wide"), Completed)
        error = await refusal_of(destination, "http://10.0.0.1/", namespace="wide")
        assert "CALLBACK_NETWORKS includes private" in error
        # One connection for those without a list, and one for the other list.
        assert [len(peer.requests) for peer in server.peers] == [1, 1]


async def test_namespaces_without_rules_of_their_own_share_connections() -> None:
    namespaces = ChangingNamespaces()
    namespaces.networks |= {"a": None, "b": None}
    async with (
        serve(answer_each_with(OK)) as server,
        guarded_destination("loopback", namespaces=namespaces) as destination,
    ):
        for namespace in ("a", "b", "a"):
            await deliver(destination, server.url(), namespace=namespace)
        assert [len(peer.requests) for peer in server.peers] == [3]


async def test_many_namespaces_with_the_same_list_share_connections() -> None:
    namespaces = ChangingNamespaces()
    names = [f"team-{number}" for number in range(1_100)]
    namespaces.networks |= {**dict.fromkeys(names, "loopback"), "narrow": "127.0.0.1/32"}
    async with (
        serve(answer_each_with(OK)) as server,
        guarded_destination("loopback", namespaces=namespaces) as destination,
    ):
        for namespace in (*names, "narrow"):
            assert isinstance(
                await deliver(destination, server.url(), namespace=namespace), Completed
            )
        assert [len(peer.requests) for peer in server.peers] == [1_100, 1]


async def test_many_different_lists_keep_their_connections() -> None:
    namespaces = ChangingNamespaces()
    ports = range(1, 1_101)
    namespaces.networks |= {f"team-{port}": f"loopback,public:{port}" for port in ports}
    async with (
        serve(answer_each_with(OK)) as server,
        guarded_destination("loopback", namespaces=namespaces) as destination,
    ):
        await deliver(destination, server.url(), namespace="team-1")
        for port in ports[1:]:
            await refusal_of(destination, "http://10.0.0.1/", namespace=f"team-{port}")
        await deliver(destination, server.url(), namespace="team-1")
        assert [len(peer.requests) for peer in server.peers] == [2]


async def test_connections_of_an_earlier_list_are_not_used() -> None:
    namespaces = ChangingNamespaces()
    namespaces.networks["a"] = "loopback"
    async with (
        serve(answer_each_with(OK)) as server,
        guarded_destination("loopback", namespaces=namespaces) as destination,
    ):
        assert isinstance(await deliver(destination, server.url(), namespace="a"), Completed)
        namespaces.networks["a"] = "127.0.0.2/32"
        await refusal_of(destination, server.url(), namespace="a")
        namespaces.networks["a"] = "127.0.0.1/32"
        assert isinstance(await deliver(destination, server.url(), namespace="a"), Completed)
        assert [len(peer.requests) for peer in server.peers] == [1, 1]


async def test_a_namespace_that_another_node_created_just_now_is_looked_up() -> None:
    namespaces = ChangingNamespaces()
    namespaces.hidden["new"] = "127.0.0.2/32"
    async with guarded_destination("loopback", namespaces=namespaces) as destination:
        await refusal_of(destination, "http://127.0.0.1:9/", namespace="new")


async def test_nothing_is_sent_while_the_rules_of_a_namespace_are_unknown() -> None:
    namespaces = ChangingNamespaces()
    namespaces.hidden["new"] = None
    namespaces.failure = StoreUnavailable("the database is away")
    async with (
        serve(answer_each_with(OK)) as server,
        guarded_destination("loopback", namespaces=namespaces) as destination,
    ):
        with pytest.raises(LocalShortage):
            await deliver(destination, server.url(), namespace="new")
        namespaces.failure = None
        # The lease ended during the lookup.
        with pytest.raises(NotSent):
            await destination.deliver(
                claim_of(callback_to(server.url()), namespace="new"), lambda: False
            )
        assert not server.peers
        namespaces.networks["new"] = "a list of a newer release"
        with pytest.raises(LocalShortage):
            await deliver(destination, server.url(), namespace="new")
