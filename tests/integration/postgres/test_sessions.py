"""Sessions of the Web UI on several nodes with one database."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from duetime.clock import SystemClock
from duetime.domain.security.access import EVERYTHING, Role
from duetime.service.security.credential_watch import CredentialWatch
from duetime.service.security.key_ring import KeyRing
from duetime.service.security.keys import Keys, NewKey
from duetime.service.security.sessions import Sessions
from duetime.stores.postgres import PostgresOptions, PostgresStore

API_KEY = "a-key-of-the-settings-0123456789abcdef"


class Node:
    def __init__(self, store: PostgresStore) -> None:
        clock = SystemClock()
        self.watch = CredentialWatch(store.security, clock)
        ring = KeyRing(self.watch, clock)
        self.keys = Keys(store.security, self.watch, ring, clock)
        self.sessions = Sessions(store.security, self.watch, ring, clock, API_KEY)


@pytest.fixture
def first(store: PostgresStore) -> Node:
    return Node(store)


@pytest.fixture
async def second(options: PostgresOptions, store: PostgresStore) -> AsyncIterator[Node]:
    other = PostgresStore(options)
    await other.open()
    yield Node(other)
    await other.close()


async def test_a_session_is_found_on_the_other_node_at_once(first: Node, second: Node) -> None:
    await second.watch.refresh()
    token = (await first.sessions.begin(EVERYTHING)).token
    session = await second.sessions.look_up(token)
    assert session is not None
    assert session.access == EVERYTHING


async def test_a_key_that_is_revoked_on_one_node_ends_its_sessions_on_the_other(
    first: Node, second: Node
) -> None:
    made = await first.keys.create(NewKey(name="team", roles=[Role.READ], namespaces=["*"]))
    token = (await first.sessions.begin(made.key.access)).token
    assert await second.sessions.look_up(token) is not None
    await first.keys.revoke(made.key.id)
    # The watch of every node does so each second.
    await second.watch.refresh()
    assert await second.sessions.look_up(token) is None
    assert second.sessions.remembered(token) is None


async def test_a_sign_out_on_one_node_counts_on_the_other(first: Node, second: Node) -> None:
    token = (await first.sessions.begin(EVERYTHING)).token
    assert await second.sessions.look_up(token) is not None
    await second.sessions.end(token)
    await first.watch.refresh()
    assert await first.sessions.look_up(token) is None


async def test_one_of_several_nodes_takes_a_code(first: Node, second: Node) -> None:
    for _ in range(5):
        code = (await first.sessions.issue_link(EVERYTHING)).token
        nodes = [first, second] * 3
        taken = await asyncio.gather(*(node.sessions.redeem(code) for node in nodes))
        assert sorted(taken, key=str) == [EVERYTHING, *[None] * 5]
