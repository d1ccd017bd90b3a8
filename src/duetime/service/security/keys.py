"""API keys: create, list, rotate and revoke."""

import secrets
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from hashlib import sha256
from heapq import merge
from itertools import islice
from typing import NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from duetime.domain.errors import InvalidInput, KeyNotActive, KeyNotFound, TooManyKeys
from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant, plus_ms
from duetime.domain.limits import (
    MAX_API_KEYS,
    MAX_BURST,
    MAX_CONCURRENT_REQUESTS,
    MAX_DELAY_MICROSECONDS,
    MAX_DELAY_YEARS,
    MAX_KEY_NAMESPACES,
    MAX_NAME_CHARACTERS,
    MAX_OVERLAP_DAYS,
    MAX_REQUESTS_PER_SECOND,
    MIN_REQUESTS_PER_SECOND,
)
from duetime.domain.security.access import RESERVED_NAMES, Role
from duetime.domain.security.credentials import KEY_PREFIX, ApiKey, RateLimit
from duetime.event_loop import next_turn
from duetime.ports.clock import Clock
from duetime.ports.security import SecurityStore
from duetime.service.security.credential_watch import CredentialWatch
from duetime.service.security.key_ring import KeyRing
from duetime.service.validation import check_key_text

ALL_NAMESPACES = "*"
"""The text that stands for all namespaces, also for those to come."""

EXPIRED_KEY_DAYS = 30
"""Time for which expired keys are still listed."""

AT_A_TIME = 200
"""Keys between two turns of the event loop: about half a millisecond."""

Item = TypeVar("Item")

_RESERVED = frozenset(name.casefold() for name in RESERVED_NAMES)
_ID_BYTES = 8
_SECRET_BYTES = 32


class NewKey(Struct, frozen=True, kw_only=True):
    """A key to create. `namespaces` need not exist yet."""

    name: str
    roles: Sequence[Role]
    namespaces: Sequence[str]
    expires_at: Instant | None = None
    rate_limit: RateLimit | None = None
    max_concurrent: int | None = None


class IssuedKey(NamedTuple):
    """A new key. Its `text` is known now, and never again."""

    key: ApiKey
    text: str


class ListedKey(NamedTuple):
    """`last_used_at` may lag a minute behind."""

    key: ApiKey
    last_used_at: Instant | None


class Keys:
    """A change holds on this node when the call returns, and on all others within 5 seconds.

    Names are for people and may repeat: a rotated key and its successor have the same one.
    """

    def __init__(
        self, store: SecurityStore, watch: CredentialWatch, ring: KeyRing, clock: Clock
    ) -> None:
        self._store = store
        self._watch = watch
        self._ring = ring
        self._clock = clock

    async def create(self, new: NewKey) -> IssuedKey:
        """Raises `InvalidInput`, `TooManyKeys` and `StoreUnavailable`."""
        now = self._clock.now()
        _check(new, now)
        everywhere = ALL_NAMESPACES in new.namespaces
        template = ApiKey(
            id="",
            name=new.name,
            secret_sha256="",
            created_at=now,
            roles=tuple(role for role in Role if role in new.roles),
            namespaces=None if everywhere else tuple(dict.fromkeys(new.namespaces)),
            expires_at=new.expires_at,
            rate_limit=new.rate_limit,
            max_concurrent=new.max_concurrent,
        )
        issued = await self._issue(template)
        await self._watch.refresh()
        return issued

    async def all(self) -> list[ListedKey]:
        """All keys, the oldest first. Raises `StoreUnavailable`."""
        keys = await self._all()
        written = await self._store.last_uses()
        on_this_node = self._ring.last_uses()
        runs = [sorted(some, key=_age) async for some in _few_at_a_time(keys.values())]
        listed: list[ListedKey] = []
        async for some in _few_at_a_time(merge(*runs, key=_age)):
            listed += [ListedKey(key, _latest(key.id, written, on_this_node)) for key in some]
        return listed

    async def rotate(self, id: str, overlap_ms: int) -> IssuedKey:
        """A successor with the same settings. The old key works on for the overlap, unless it
        expires earlier. A key that expires has a successor that lives as long as it was to live.

        A crash in between leaves a successor whose text nobody knows, beside a key that works on.
        One of several rotations at once counts, and the others raise `KeyNotActive`.
        Raises `KeyNotFound`, `KeyNotActive`, `InvalidInput`, `TooManyKeys` and `StoreUnavailable`.
        """
        if not 0 <= overlap_ms <= MAX_OVERLAP_DAYS * 86_400_000:
            raise InvalidInput("overlap", f"must be from 0s to {MAX_OVERLAP_DAYS}d")
        now = self._clock.now()
        old = (await self._all()).get(id)
        if old is None:
            raise KeyNotFound
        _check_not_rotated(old)
        expires_at = None
        ends_at = plus_ms(now, overlap_ms)
        if old.expires_at is not None:
            if old.expires_at <= now:
                raise KeyNotActive("the key has expired: create another one")
            expires_at = Instant(now + old.expires_at - old.created_at)
            ends_at = min(ends_at, old.expires_at)
        issued = await self._issue(replace(old, created_at=now, expires_at=expires_at))
        ending = replace(old, expires_at=ends_at, replaced_by=issued.key.id)
        if not await self._store.replace_credential(ending, expected=old):
            # It was revoked or rotated a moment ago, and has no second successor.
            await self._store.remove_credential(issued.key.id)
            changed = (await self._all()).get(id)
            if changed is not None:
                _check_not_rotated(changed)
            raise KeyNotFound
        await self._watch.refresh()
        return issued

    async def revoke(self, id: str) -> ApiKey:
        """Forget the key. Raises `KeyNotFound` and `StoreUnavailable`."""
        key = (await self._all()).get(id)
        if key is None or not await self._store.remove_credential(id):
            raise KeyNotFound
        await self._watch.refresh()
        return key

    async def _all(self) -> Mapping[str, ApiKey]:
        read = await self._store.credentials(None)
        keys: dict[str, ApiKey] = {}
        # The sessions and secrets of everybody are among them.
        async for some in _few_at_a_time(() if read is None else read.credentials):
            keys |= {each.id: each for each in some if isinstance(each, ApiKey)}
        return keys

    async def _issue(self, template: ApiKey) -> IssuedKey:
        """Keep a key like this one, with an id and a secret of its own."""
        await self._make_room(template.created_at)
        while True:
            id, secret = secrets.token_hex(_ID_BYTES), secrets.token_hex(_SECRET_BYTES)
            hashed = sha256(secret.encode()).hexdigest()
            key = replace(template, id=id, secret_sha256=hashed)
            if await self._store.add_credential(key):
                return IssuedKey(key, f"{KEY_PREFIX}_{id}_{secret}")

    async def _make_room(self, now: Instant) -> None:
        keys = await self._all()
        oldest = now - EXPIRED_KEY_DAYS * 86_400 * MICROSECONDS_PER_SECOND
        gone = [
            key.id
            for key in keys.values()
            if key.expires_at is not None and key.expires_at <= oldest
        ]
        for id in gone:
            await self._store.remove_credential(id)
        if len(keys) - len(gone) >= MAX_API_KEYS:
            raise TooManyKeys(MAX_API_KEYS)


async def _few_at_a_time(items: Iterable[Item]) -> AsyncIterator[list[Item]]:
    """Timers fire in between, however many there are."""
    rest = iter(items)
    while some := list(islice(rest, AT_A_TIME)):
        yield some
        await next_turn()


def _age(key: ApiKey) -> tuple[Instant, str]:
    return key.created_at, key.id


def _check_not_rotated(key: ApiKey) -> None:
    if key.replaced_by is not None:
        raise KeyNotActive(f"the key was rotated before: its successor is {key.replaced_by}")


def _latest(id: str, *uses: Mapping[str, Instant]) -> Instant | None:
    return max((each[id] for each in uses if id in each), default=None)


def _check(new: NewKey, now: Instant) -> None:
    """Raises `InvalidInput` that names the field."""
    if not 1 <= len(new.name) <= MAX_NAME_CHARACTERS:
        raise InvalidInput("name", f"must have 1 to {MAX_NAME_CHARACTERS} characters")
    if not new.name.isprintable() or new.name != new.name.strip():
        # It is shown in tables and logs.
        raise InvalidInput("name", "must be printable, without spaces around it")
    if new.name.casefold() in _RESERVED:
        names = " or ".join(RESERVED_NAMES)
        raise InvalidInput("name", f"must not be {names}: the audit log uses them for others")
    if not new.roles:
        roles = ", ".join(f"'{role.value}'" for role in Role)
        raise InvalidInput("roles", f"must have at least one of {roles}")
    if len(set(new.roles)) < len(new.roles):
        raise InvalidInput("roles", "must have each role once")
    _check_namespaces(new.namespaces)
    if new.expires_at is not None and new.expires_at <= now:
        raise InvalidInput("expires_at", "must be in the future")
    if new.expires_at is not None and new.expires_at - now > MAX_DELAY_MICROSECONDS:
        problem = f"is too far in the future: at most {MAX_DELAY_YEARS} years"
        raise InvalidInput("expires_at", problem)
    if new.rate_limit is not None:
        per_second, burst = new.rate_limit.per_second, new.rate_limit.burst
        if not MIN_REQUESTS_PER_SECOND <= per_second <= MAX_REQUESTS_PER_SECOND:
            problem = f"must be from {MIN_REQUESTS_PER_SECOND} to {MAX_REQUESTS_PER_SECOND}"
            raise InvalidInput("rate_limit.per_second", problem)
        if not 1 <= burst <= MAX_BURST:
            raise InvalidInput("rate_limit.burst", f"must be from 1 to {MAX_BURST}")
    if new.max_concurrent is not None and not 1 <= new.max_concurrent <= MAX_CONCURRENT_REQUESTS:
        raise InvalidInput("max_concurrent", f"must be from 1 to {MAX_CONCURRENT_REQUESTS}")


def _check_namespaces(namespaces: Sequence[str]) -> None:
    if not 1 <= len(namespaces) <= MAX_KEY_NAMESPACES:
        problem = f"must have 1 to {MAX_KEY_NAMESPACES} names, or be ['*'] for all namespaces"
        raise InvalidInput("namespaces", problem)
    if ALL_NAMESPACES in namespaces and len(namespaces) > 1:
        raise InvalidInput("namespaces", "must be ['*'] or a list of names, not both")
    for number, name in enumerate(namespaces):
        check_key_text(f"namespaces[{number}]", name)
