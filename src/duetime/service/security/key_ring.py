"""The keys that this node accepts, in memory."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from hmac import compare_digest
from math import ceil

import structlog
from msgspec import Struct

from duetime.domain.defaults import DEFAULT_KEY_MAX_CONCURRENT
from duetime.domain.errors import TooManyRequests, Unauthorized
from duetime.domain.instants import Instant, plus_ms
from duetime.domain.security.credentials import KEY_PREFIX, ApiKey, Credential, RateLimit
from duetime.ports.clock import Clock
from duetime.ports.security import SecurityStore
from duetime.service.security.credential_watch import CredentialWatch
from duetime.service.security.fresh_credentials import FreshCredentials
from duetime.service.security.token_bucket import TokenBucket
from duetime.service.security.wrong_keys import WrongKeys

_log = structlog.get_logger()

ENDED = "this key was revoked or has expired since the request began"

_LONGEST_BYTES = 256
"""Length of the text that is looked at. Keys are much shorter."""

_PREFIX = KEY_PREFIX.encode()
_NOT_A_KEY = (b"", b"", b"")
_NO_SECRET = sha256(b"").hexdigest()


class KeyLimits(Struct, frozen=True):
    """The limits of keys that have none of their own."""

    rate_limit: RateLimit | None = None
    max_concurrent: int = DEFAULT_KEY_MAX_CONCURRENT


class HeldKey:
    """A key, and its requests on this node. It stays the same object when the key is changed, so
    that requests under way are still counted."""

    __slots__ = (
        "_bucket",
        "_clock",
        "_limits",
        "_max_concurrent",
        "_rate_limit",
        "_under_way",
        "access",
        "is_revoked",
        "key",
        "limited",
        "used_at_seconds",
        "written_at_seconds",
    )

    def __init__(self, key: ApiKey, limits: KeyLimits, clock: Clock) -> None:
        self._clock = clock
        self._limits = limits
        self._under_way = 0
        self._rate_limit: RateLimit | None = None
        self._bucket: TokenBucket | None = None
        self.limited = 0
        """Requests over the limits of the key, since the last report."""
        self.is_revoked = False
        self.used_at_seconds: float | None = None
        self.written_at_seconds: float | None = None
        self.change(key)

    def change(self, key: ApiKey) -> None:
        self.key = key
        self.access = key.access
        own = key.max_concurrent
        self._max_concurrent = self._limits.max_concurrent if own is None else own
        rate_limit = self._limits.rate_limit if key.rate_limit is None else key.rate_limit
        if rate_limit != self._rate_limit:
            self._rate_limit = rate_limit
            self._bucket = (
                None if rate_limit is None else TokenBucket(rate_limit, self._clock.monotonic())
            )

    @property
    def is_used(self) -> bool:
        return self.used_at_seconds is not None

    @property
    def is_written(self) -> bool:
        return self.used_at_seconds == self.written_at_seconds

    @property
    def is_expired(self) -> bool:
        expires_at = self.key.expires_at
        return expires_at is not None and self._clock.now() >= expires_at

    def check_still_valid(self) -> None:
        """Raises `Unauthorized`."""
        if self.is_revoked or self.is_expired:
            raise Unauthorized(ENDED)

    def enter(self) -> None:
        """Begin a request, for which `leave` has to be called once. Raises `TooManyRequests`; then
        nothing has begun."""
        if self._under_way >= self._max_concurrent:
            self.limited += 1
            raise TooManyRequests(
                f"this key has its limit of {self._max_concurrent} requests under way", 1
            )
        if self._bucket is not None:
            wait_seconds = self._bucket.take(self._clock.monotonic())
            if wait_seconds:
                self.limited += 1
                raise TooManyRequests("this key sends too many requests", ceil(wait_seconds))
        self._under_way += 1

    def leave(self) -> None:
        self._under_way -= 1


class KeyRing:
    """Finds the key of a request. A view of the `CredentialWatch`.

    Looking up an unknown id takes as long as comparing a wrong secret, which takes as long
    wherever the secrets differ. Keys that were right are remembered whole, until any key changes:
    the look for one is by a hash of all its bytes, and tells nothing of a wrong one.
    """

    def __init__(
        self, watch: CredentialWatch, clock: Clock, limits: KeyLimits | None = None
    ) -> None:
        self._fresh = FreshCredentials(watch, clock)
        self._clock = clock
        self._limits = KeyLimits() if limits is None else limits
        self._keys: dict[bytes, HeldKey] = {}
        self._right: dict[bytes, HeldKey] = {}
        self.wrong_keys = WrongKeys(clock)
        watch.subscribe(self._see)

    def known(self, presented: bytes) -> HeldKey | None:
        """The key, if it is accepted by what is in memory and that is fresh enough to tell."""
        now_seconds = self._clock.monotonic()
        return None if self._fresh.are_old(now_seconds) else self._find(presented, now_seconds)

    def remembered(self, presented: bytes) -> HeldKey | None:
        """The key, if it was accepted when the store was last read, however long ago that is."""
        return self._find(presented, self._clock.monotonic())

    async def look_up(self, presented: bytes) -> HeldKey | None:
        """The key, if it is accepted. Raises `StoreUnavailable` if that cannot be told."""
        if self._fresh.are_old(self._clock.monotonic()) and _id_of(presented) is not None:
            await self._fresh.read()
        return self._find(presented, self._clock.monotonic())

    async def look_again(self, presented: bytes) -> HeldKey | None:
        """The key, if it was made on another node a moment ago. Raises `StoreUnavailable`."""
        id = _id_of(presented)
        if id is None or id in self._keys or not await self._fresh.read_for_unknown():
            return None
        return self._find(presented, self._clock.monotonic())

    def held(self, id: str) -> HeldKey | None:
        """The key of the id, for something that stands for it. None if it was revoked or has
        expired, as far as this node knows."""
        held = self._keys.get(id.encode())
        return None if held is None or held.is_expired else held

    def report_refusals(self) -> None:
        """Log the wrong keys and the requests over limits since the last report."""
        self.wrong_keys.report()
        limited = [held for held in self._keys.values() if held.limited]
        if limited:
            most = max(limited, key=lambda held: held.limited)
            _log.warning(
                "api.key_limited",
                refused=sum(held.limited for held in limited),
                keys=len(limited),
                key=most.key.id,
                name=most.key.name,
                key_refused=most.limited,
            )
        for held in limited:
            held.limited = 0

    def last_uses(self) -> Mapping[str, Instant]:
        """The last uses on this node, by the key's id."""
        return {held.key.id: self._used_at(held) for held in self._keys.values() if held.is_used}

    async def write_uses(self, store: SecurityStore) -> None:
        """Tell the store of the uses on this node that it has not been told of."""
        used = [held for held in self._keys.values() if held.is_used and not held.is_written]
        instants = [held.used_at_seconds for held in used]
        if used:
            await store.note_uses({held.key.id: self._used_at(held) for held in used})
        for held, used_at_seconds in zip(used, instants, strict=True):
            held.written_at_seconds = used_at_seconds

    def _used_at(self, held: HeldKey) -> Instant:
        # Reading the wall clock in every request would cost more.
        ago_seconds = self._clock.monotonic() - (held.used_at_seconds or 0.0)
        return plus_ms(self._clock.now(), -1_000 * ago_seconds)

    def _find(self, presented: bytes, now_seconds: float) -> HeldKey | None:
        held = self._right.get(presented)
        if held is None:
            held = self._compared(presented)
            if held is None:
                return None
            self._right[presented] = held
        if held.is_expired:
            return None
        held.used_at_seconds = now_seconds
        return held

    def _compared(self, presented: bytes) -> HeldKey | None:
        prefix, id, secret = _parts(presented)
        held = self._keys.get(id)
        expected = _NO_SECRET if held is None else held.key.secret_sha256
        is_equal = compare_digest(sha256(secret).hexdigest(), expected)
        return held if is_equal and prefix == _PREFIX else None

    def _see(self, credentials: Sequence[Credential]) -> None:
        keys: dict[bytes, HeldKey] = {}
        for key in credentials:
            if isinstance(key, ApiKey):
                id = key.id.encode()
                held = self._keys.get(id)
                if held is None:
                    held = HeldKey(key, self._limits, self._clock)
                elif held.key is not key and held.key != key:
                    held.change(key)
                keys[id] = held
        for id in self._keys.keys() - keys.keys():
            # Requests that it began may be under way.
            self._keys[id].is_revoked = True
        self._keys = keys
        self._right.clear()


def _parts(presented: bytes) -> Sequence[bytes]:
    """The prefix, the id and the secret of a key; three texts for anything else, too."""
    parts = presented[:_LONGEST_BYTES].split(b"_", 2)
    return parts if len(parts) == 3 else _NOT_A_KEY


def _id_of(presented: bytes) -> bytes | None:
    """The id in a text that has the form of a key."""
    prefix, id, secret = _parts(presented)
    return id if prefix == _PREFIX and id and secret else None
