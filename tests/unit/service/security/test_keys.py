"""Keys are created, rotated and revoked, and their texts are kept nowhere."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from duetime.domain.errors import InvalidInput, KeyNotActive, KeyNotFound, TooManyKeys
from duetime.domain.instants import Instant, plus_ms
from duetime.domain.security.access import Role
from duetime.domain.security.credentials import Credential, RateLimit, WebhookSecret
from duetime.event_loop import next_turn
from duetime.service.security import keys as keys_module
from duetime.service.security.credential_watch import CredentialWatch
from duetime.service.security.key_ring import HeldKey, KeyRing
from duetime.service.security.keys import IssuedKey, Keys, NewKey
from duetime.stores.memory.security_table import SecurityTable
from duetime.testing import VirtualClock

DAY_MS = 86_400_000


class InterruptedTable(SecurityTable):
    """Something else happens before the next credential is added."""

    before_next_add: Callable[[], Awaitable[object]] | None = None

    async def add_credential(self, credential: Credential) -> bool:
        happens, self.before_next_add = self.before_next_add, None
        if happens is not None:
            await happens()
        return await super().add_credential(credential)


class Bench:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.table = InterruptedTable()
        self.watch = CredentialWatch(self.table, self.clock)
        self.ring = KeyRing(self.watch, self.clock)
        self.keys = Keys(self.table, self.watch, self.ring, self.clock)

    async def create(self, **changes: Any) -> IssuedKey:
        given: dict[str, Any] = {"name": "team", "roles": [Role.READ], "namespaces": ["a"]}
        return await self.keys.create(NewKey(**(given | changes)))

    async def find(self, text: str) -> HeldKey | None:
        return await self.ring.look_up(text.encode())

    async def names(self) -> list[str]:
        return [each.key.name for each in await self.keys.all()]


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_a_new_key_works_at_once_with_its_roles_and_namespaces(bench: Bench) -> None:
    issued = await bench.create(roles=[Role.WRITE, Role.READ], namespaces=["b", "a", "b"])
    held = await bench.find(issued.text)
    assert held is not None
    assert held.access.name == "team"
    assert held.access.key_id == issued.key.id
    assert held.access.namespaces == frozenset({"a", "b"})
    assert (held.access.may(Role.READ), held.access.may(Role.ADMIN)) == (True, False)
    assert issued.key.roles == (Role.READ, Role.WRITE)
    assert issued.key.namespaces == ("b", "a")


async def test_the_text_has_the_id_and_is_not_kept(bench: Bench) -> None:
    issued = await bench.create()
    prefix, id, secret = issued.text.split("_")
    assert (prefix, id) == ("dt", issued.key.id)
    assert len(id) >= 12
    assert len(secret) == 64
    kept = await bench.table.credentials(None)
    assert secret not in str(msgspec.to_builtins(kept))
    assert (await bench.create()).text != issued.text


async def test_all_namespaces(bench: Bench) -> None:
    issued = await bench.create(namespaces=["*"])
    assert issued.key.namespaces is None
    held = await bench.find(issued.text)
    assert held is not None
    assert held.access.sees("any")


async def test_a_revoked_key_is_gone(bench: Bench) -> None:
    issued = await bench.create()
    assert (await bench.keys.revoke(issued.key.id)).name == "team"
    assert await bench.find(issued.text) is None
    with pytest.raises(KeyNotFound):
        await bench.keys.revoke(issued.key.id)


async def test_a_key_stops_at_its_expiry(bench: Bench) -> None:
    issued = await bench.create(expires_at=plus_ms(bench.clock.now(), 10_000))
    bench.clock.advance(9.999)
    assert await bench.find(issued.text) is not None
    bench.clock.advance(0.001)
    assert await bench.find(issued.text) is None


class TestRotation:
    async def test_both_keys_work_during_the_overlap(self, bench: Bench) -> None:
        limit = RateLimit(5, 7)
        old = await bench.create(rate_limit=limit, max_concurrent=3)
        new = await bench.keys.rotate(old.key.id, DAY_MS)
        assert await bench.find(old.text) is not None
        assert await bench.find(new.text) is not None
        assert (new.key.name, new.key.roles, new.key.namespaces) == ("team", (Role.READ,), ("a",))
        assert (new.key.rate_limit, new.key.max_concurrent) == (limit, 3)
        assert new.key.expires_at is None
        bench.clock.advance(86_400)
        assert await bench.find(old.text) is None
        assert await bench.find(new.text) is not None

    async def test_without_an_overlap_the_old_key_ends_at_once(self, bench: Bench) -> None:
        old = await bench.create()
        await bench.keys.rotate(old.key.id, 0)
        assert await bench.find(old.text) is None

    async def test_the_successor_of_a_key_that_expires_lives_as_long(self, bench: Bench) -> None:
        old = await bench.create(expires_at=plus_ms(bench.clock.now(), 30 * DAY_MS))
        bench.clock.advance(29.5 * 86_400)
        new = await bench.keys.rotate(old.key.id, DAY_MS)
        assert new.key.expires_at == plus_ms(bench.clock.now(), 30 * DAY_MS)
        bench.clock.advance(86_400 / 2)
        assert await bench.find(old.text) is None, "the overlap does not prolong its life"

    async def test_a_rotated_key_names_its_successor_and_is_not_rotated_again(
        self, bench: Bench
    ) -> None:
        old = await bench.create()
        new = await bench.keys.rotate(old.key.id, DAY_MS)
        with pytest.raises(KeyNotActive, match=new.key.id):
            await bench.keys.rotate(old.key.id, DAY_MS)
        listed = {each.key.id: each.key.replaced_by for each in await bench.keys.all()}
        assert listed == {old.key.id: new.key.id, new.key.id: None}

    async def test_expired_and_unknown_keys_are_not_rotated(self, bench: Bench) -> None:
        old = await bench.create(expires_at=plus_ms(bench.clock.now(), 1_000))
        bench.clock.advance(1)
        with pytest.raises(KeyNotActive, match="expired"):
            await bench.keys.rotate(old.key.id, DAY_MS)
        with pytest.raises(KeyNotFound):
            await bench.keys.rotate("nobody", DAY_MS)

    async def test_a_key_that_is_revoked_meanwhile_has_no_successor(self, bench: Bench) -> None:
        old = await bench.create()

        bench.table.before_next_add = lambda: bench.keys.revoke(old.key.id)
        with pytest.raises(KeyNotFound):
            await bench.keys.rotate(old.key.id, DAY_MS)
        assert await bench.keys.all() == []

    async def test_of_two_rotations_at_once_one_counts(self, bench: Bench) -> None:
        old = await bench.create()
        rotated: list[IssuedKey] = []

        async def rotate_without_overlap() -> None:
            rotated.append(await bench.keys.rotate(old.key.id, 0))

        bench.table.before_next_add = rotate_without_overlap
        with pytest.raises(KeyNotActive, match="rotated before") as refused:
            await bench.keys.rotate(old.key.id, DAY_MS)
        assert rotated[0].key.id in str(refused.value)
        assert await bench.find(old.text) is None, "the overlap of the other one counts"
        ids = [each.key.id for each in await bench.keys.all()]
        assert sorted(ids) == sorted([old.key.id, rotated[0].key.id])

    @pytest.mark.parametrize("overlap_ms", [-1, 366 * DAY_MS])
    async def test_the_overlap_has_bounds(self, bench: Bench, overlap_ms: int) -> None:
        old = await bench.create()
        with pytest.raises(InvalidInput, match="overlap must be from 0s to 365d"):
            await bench.keys.rotate(old.key.id, overlap_ms)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"name": ""}, "name must have 1 to 100 characters"),
        ({"name": "x" * 101}, "name must have 1 to 100 characters"),
        ({"name": "a\nb"}, "name must be printable"),
        ({"name": " a"}, "name must be printable"),
        ({"name": "API_KEY"}, "name must not be API_KEY or anonymous or bus"),
        ({"name": "api_key"}, "name must not be API_KEY or anonymous or bus"),
        ({"name": "Anonymous"}, "name must not be API_KEY or anonymous or bus"),
        ({"name": "BUS"}, "name must not be API_KEY or anonymous or bus"),
        ({"roles": []}, "roles must have at least one of 'read', 'write', 'admin'"),
        ({"namespaces": []}, "namespaces must have 1 to 100 names"),
        ({"namespaces": list(map(str, range(101)))}, "namespaces must have 1 to 100 names"),
        ({"namespaces": ["*", "a"]}, "namespaces must be ['*'] or a list of names, not both"),
        ({"namespaces": ["a", ""]}, "namespaces[1] must have 1 to 255 characters"),
        ({"namespaces": ["\0"]}, "namespaces[0] must not contain the character NUL"),
        ({"expires_at": VirtualClock().now()}, "expires_at must be in the future"),
        ({"expires_at": Instant(2**60)}, "expires_at is too far in the future"),
        ({"rate_limit": RateLimit(0, 1)}, "rate_limit.per_second must be from 0.001"),
        ({"rate_limit": RateLimit(float("nan"), 1)}, "rate_limit.per_second must be from 0.001"),
        ({"rate_limit": RateLimit(1, 0)}, "rate_limit.burst must be from 1 to"),
        ({"max_concurrent": 0}, "max_concurrent must be from 1 to"),
    ],
)
async def test_bad_settings_are_refused(
    bench: Bench, changes: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await bench.create(**changes)
    assert refused.value.message.startswith(problem)
    assert await bench.names() == []


async def test_the_number_of_keys_is_bounded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duetime.service.security.keys.MAX_API_KEYS", 2)
    await bench.create()
    expiring = await bench.create(expires_at=plus_ms(bench.clock.now(), 1_000))
    with pytest.raises(TooManyKeys, match="revoke one first"):
        await bench.create()
    bench.clock.advance(29 * 86_400)
    with pytest.raises(TooManyKeys):
        await bench.create()
    bench.clock.advance(2 * 86_400)
    fresh = await bench.create()
    ids = {each.key.id for each in await bench.keys.all()}
    assert fresh.key.id in ids
    assert expiring.key.id not in ids, "keys that expired long ago make room"


async def test_the_last_use_is_listed(bench: Bench) -> None:
    issued = await bench.create()
    assert [each.last_used_at for each in await bench.keys.all()] == [None]
    bench.clock.advance(5)
    await bench.find(issued.text)
    assert [each.last_used_at for each in await bench.keys.all()] == [bench.clock.now()]


async def test_a_taken_id_is_not_overwritten(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = iter(["aa", "s1", "aa", "s2", "bb", "s3"])
    monkeypatch.setattr("secrets.token_hex", lambda size: next(taken))
    first, second = await bench.create(), await bench.create()
    assert (first.key.id, second.key.id) == ("aa", "bb")
    assert await bench.find(first.text) is not None


async def test_secrets_of_callbacks_are_no_keys(bench: Bench) -> None:
    secret = WebhookSecret(id="s", namespace="a", secret="whsec_AAAA", created_at=Instant(0))
    await bench.table.add_credential(secret)
    issued = await bench.create()
    assert await bench.names() == ["team"]
    assert await bench.find(issued.text) is not None
    with pytest.raises(KeyNotFound):
        await bench.keys.revoke("s")


async def test_very_many_keys_are_listed_in_turns_and_in_order(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys_module, "AT_A_TIME", 2)
    for number in range(5):
        await bench.create(name=f"k{number}")
        bench.clock.advance(1)
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await next_turn()

    counting = asyncio.ensure_future(count_turns())
    assert await bench.names() == [f"k{number}" for number in range(5)]
    counting.cancel()
    assert turns >= 5
