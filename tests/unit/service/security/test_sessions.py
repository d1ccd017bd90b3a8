"""Sessions of the Web UI end with their key, by a sign-out and in time, on every node."""

from typing import Any

import msgspec
import pytest

from duetime.domain.errors import StoreUnavailable, TooManyRequests, Unauthorized
from duetime.domain.instants import plus_ms
from duetime.domain.limits import MAX_SESSIONS_OF_KEY
from duetime.domain.security.access import EVERYTHING, Access, Role
from duetime.ports.security import Credentials
from duetime.service.security.credential_watch import CredentialWatch
from duetime.service.security.fresh_credentials import OLDEST_SECONDS, UNKNOWN_IDS
from duetime.service.security.key_ring import KeyRing
from duetime.service.security.keys import IssuedKey, Keys, NewKey
from duetime.service.security.sessions import LINK_MS, SESSION_MS, HeldSession, Sessions
from duetime.stores.memory.security_table import SecurityTable
from duetime.testing import VirtualClock

API_KEY = "a-key-of-the-settings-0123456789abcdef"


class Table(SecurityTable):
    reads = 0
    is_away = False

    async def credentials(self, known_version: int | None) -> Credentials | None:
        self.reads += 1
        if self.is_away:
            raise StoreUnavailable("the store is away")
        return await super().credentials(known_version)


class Node:
    """One of several nodes on a store."""

    def __init__(self, table: Table, clock: VirtualClock, api_key: str | None = API_KEY) -> None:
        self.watch = CredentialWatch(table, clock)
        self.ring = KeyRing(self.watch, clock)
        self.keys = Keys(table, self.watch, self.ring, clock)
        self.sessions = Sessions(table, self.watch, self.ring, clock, api_key)


class Bench(Node):
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.table = Table()
        super().__init__(self.table, self.clock)

    def other(self, api_key: str | None = API_KEY) -> Node:
        return Node(self.table, self.clock, api_key)

    async def key(self, **changes: Any) -> IssuedKey:
        given: dict[str, Any] = {"name": "team", "roles": [Role.READ], "namespaces": ["a"]}
        return await self.keys.create(NewKey(**(given | changes)))

    async def begin(self, access: Access = EVERYTHING) -> str:
        return (await self.sessions.begin(access)).token

    async def find(self, token: str) -> HeldSession | None:
        return await self.sessions.look_up(token)

    async def kept(self) -> set[str]:
        read = await self.table.credentials(None)
        assert read is not None
        return {each.id for each in read.credentials}


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_a_session_has_the_access_of_its_key(bench: Bench) -> None:
    key = (await bench.key(roles=[Role.WRITE], namespaces=["b"])).key
    session = await bench.find(await bench.begin(key.access))
    assert session is not None
    assert session.access == key.access
    of_settings = await bench.find(await bench.begin())
    assert of_settings is not None
    assert of_settings.access == EVERYTHING


async def test_every_sign_in_has_another_token_and_none_is_kept(bench: Bench) -> None:
    tokens = {await bench.begin() for _ in range(3)}
    assert len(tokens) == 3
    assert all(len(token) == 43 for token in tokens)
    kept = str(msgspec.to_builtins(await bench.table.credentials(None)))
    assert not any(token in kept for token in tokens)
    assert API_KEY not in kept


@pytest.mark.parametrize("token", ["", "x", "é" * 43, "a" * 43, "\udc80" * 43, "a" * 10_000])
async def test_another_token_is_no_session(bench: Bench, token: str) -> None:
    await bench.begin()
    assert await bench.find(token) is None
    await bench.sessions.end(token)
    assert await bench.sessions.redeem(token) is None


async def test_the_id_that_is_kept_is_no_token(bench: Bench) -> None:
    await bench.begin()
    for id in await bench.kept():
        assert await bench.find(id) is None


async def test_a_session_lasts_for_a_working_day(bench: Bench) -> None:
    issued = await bench.sessions.begin(EVERYTHING)
    assert issued.expires_at == plus_ms(bench.clock.now(), SESSION_MS)
    session = await bench.find(issued.token)
    assert session is not None
    bench.clock.advance(SESSION_MS / 1_000 - 1)
    assert await bench.find(issued.token) is not None
    session.check_still_valid()
    bench.clock.advance(1)
    assert await bench.find(issued.token) is None
    with pytest.raises(Unauthorized):
        session.check_still_valid()


async def test_a_sign_out_ends_this_session_only(bench: Bench) -> None:
    token, other = await bench.begin(), await bench.begin()
    session = await bench.find(token)
    assert session is not None
    await bench.sessions.end(token)
    assert await bench.find(token) is None
    assert await bench.find(other) is not None
    with pytest.raises(Unauthorized):
        session.check_still_valid()


async def test_a_session_ends_with_its_key(bench: Bench) -> None:
    key, other = (await bench.key()).key, (await bench.key()).key
    token, of_other = await bench.begin(key.access), await bench.begin(other.access)
    session = await bench.find(token)
    assert session is not None
    await bench.keys.revoke(key.id)
    assert await bench.find(token) is None
    assert bench.sessions.remembered(token) is None
    assert await bench.find(of_other) is not None
    with pytest.raises(Unauthorized):
        session.check_still_valid()


async def test_a_session_ends_when_its_key_expires(bench: Bench) -> None:
    key = (await bench.key(expires_at=plus_ms(bench.clock.now(), 60_000))).key
    token = await bench.begin(key.access)
    bench.clock.advance(59)
    assert await bench.find(token) is not None
    bench.clock.advance(1)
    assert await bench.find(token) is None


async def test_a_revoked_key_ends_its_sessions_on_other_nodes(bench: Bench) -> None:
    node = bench.other()
    key = (await bench.key()).key
    token = await bench.begin(key.access)
    assert await node.sessions.look_up(token) is not None
    await bench.keys.revoke(key.id)
    bench.clock.advance(OLDEST_SECONDS + 0.1)
    assert await node.sessions.look_up(token) is None


async def test_a_sign_out_counts_on_other_nodes(bench: Bench) -> None:
    node = bench.other()
    token = await bench.begin()
    assert await node.sessions.look_up(token) is not None
    await bench.sessions.end(token)
    await node.watch.refresh()
    assert await node.sessions.look_up(token) is None


async def test_another_api_key_in_the_settings_ends_its_sessions(bench: Bench) -> None:
    token, code = await bench.begin(), (await bench.sessions.issue_link(EVERYTHING)).token
    kept_key = (await bench.key()).key
    of_kept_key = await bench.begin(kept_key.access)
    for changed in ("another-key-of-the-settings-0123456789", None):
        node = bench.other(api_key=changed)
        assert await node.sessions.look_up(token) is None
        assert await node.sessions.redeem(code) is None
        assert await node.sessions.look_up(of_kept_key) is not None


async def test_requests_of_a_session_count_as_those_of_its_key(bench: Bench) -> None:
    issued = await bench.key(max_concurrent=1)
    token = await bench.begin(issued.key.access)
    session, again = await bench.find(token), await bench.find(token)
    held = await bench.ring.look_up(issued.text.encode())
    assert session is not None
    assert again is not None
    assert held is not None
    session.enter()
    for other in (again, held):
        with pytest.raises(TooManyRequests):
            other.enter()
    session.leave()
    held.enter()


async def test_the_use_of_a_session_is_a_use_of_its_key(bench: Bench) -> None:
    key = (await bench.key()).key
    token = await bench.begin(key.access)
    bench.clock.advance(3)
    await bench.find(token)
    assert bench.ring.last_uses() == {key.id: bench.clock.now()}


async def test_the_oldest_sessions_of_a_key_make_room(bench: Bench) -> None:
    key = (await bench.key()).key
    other = await bench.begin()
    tokens = []
    for _ in range(MAX_SESSIONS_OF_KEY + 2):
        tokens.append(await bench.begin(key.access))
        bench.clock.advance(0.001)
    alive = [await bench.find(token) is not None for token in tokens]
    assert alive == [False, False] + [True] * MAX_SESSIONS_OF_KEY
    assert await bench.find(other) is not None


async def test_links_end_no_session(bench: Bench) -> None:
    key = (await bench.key()).key
    session = await bench.begin(key.access)
    codes = []
    for _ in range(MAX_SESSIONS_OF_KEY + 2):
        bench.clock.advance(0.001)
        codes.append((await bench.sessions.issue_link(key.access)).token)
    assert await bench.find(session) is not None
    open_ones = [await bench.sessions.redeem(code) is not None for code in codes]
    assert open_ones == [False, False] + [True] * MAX_SESSIONS_OF_KEY


async def test_the_oldest_session_of_all_makes_room(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duetime.service.security.sessions.MAX_SESSIONS", 3)
    tokens = []
    for _ in range(4):
        tokens.append(await bench.begin((await bench.key()).key.access))
        bench.clock.advance(0.001)
    assert [await bench.find(token) is not None for token in tokens] == [False, True, True, True]


async def test_what_has_ended_is_forgotten_when_somebody_signs_in(bench: Bench) -> None:
    key = (await bench.key()).key
    await bench.begin(key.access)
    await bench.begin()
    await bench.sessions.issue_link(EVERYTHING)
    await bench.keys.revoke(key.id)
    bench.clock.advance(LINK_MS / 1_000)
    await bench.begin()
    assert len(await bench.kept()) == 2
    bench.clock.advance(SESSION_MS / 1_000)
    await bench.begin()
    assert len(await bench.kept()) == 1


async def test_unknown_tokens_read_the_store_at_a_limited_rate(bench: Bench) -> None:
    await bench.watch.refresh()
    before = bench.table.reads
    for number in range(100):
        assert await bench.find(f"{number:043}") is None
    assert bench.table.reads - before == UNKNOWN_IDS.burst


async def test_a_store_that_is_away_ends_no_session(bench: Bench) -> None:
    token = await bench.begin()
    bench.table.is_away = True
    assert await bench.find(token) is not None
    bench.clock.advance(OLDEST_SECONDS + 0.1)
    with pytest.raises(StoreUnavailable):
        await bench.find(token)
    assert bench.sessions.remembered(token) is not None


async def test_a_link_counts_once_on_whichever_node(bench: Bench) -> None:
    key = (await bench.key()).key
    code = (await bench.sessions.issue_link(key.access)).token
    node = bench.other()
    assert await node.sessions.redeem(code) == key.access
    assert await node.sessions.redeem(code) is None
    assert await bench.sessions.redeem(code) is None


async def test_a_link_counts_for_a_minute(bench: Bench) -> None:
    first, second = [(await bench.sessions.issue_link(EVERYTHING)).token for _ in range(2)]
    bench.clock.advance(LINK_MS / 1_000 - 1)
    assert await bench.sessions.redeem(first) == EVERYTHING
    bench.clock.advance(1)
    assert await bench.sessions.redeem(second) is None


async def test_a_link_ends_with_its_key(bench: Bench) -> None:
    key = (await bench.key()).key
    code = (await bench.sessions.issue_link(key.access)).token
    await bench.keys.revoke(key.id)
    assert await bench.sessions.redeem(code) is None


async def test_a_code_is_no_session_and_a_session_no_code(bench: Bench) -> None:
    code = (await bench.sessions.issue_link(EVERYTHING)).token
    token = await bench.begin()
    assert await bench.find(code) is None
    assert await bench.sessions.redeem(token) is None
    assert await bench.find(token) is not None


async def test_a_standing_code_counts_again_and_again_on_its_process_only(bench: Bench) -> None:
    code = bench.sessions.standing_code(EVERYTHING)
    for _ in range(2):
        assert await bench.sessions.redeem(code) == EVERYTHING
        bench.clock.advance(2 * LINK_MS / 1_000)
    assert await bench.other().sessions.redeem(code) is None
    assert await bench.kept() == set()
