"""Sessions of the Web UI: sign in with a key or by a link, and sign out."""

import hmac
import re
from collections.abc import Sequence
from hashlib import sha256
from operator import attrgetter
from secrets import token_urlsafe
from typing import NamedTuple, TypeVar

from duetime.domain.errors import Unauthorized
from duetime.domain.instants import Instant, plus_ms
from duetime.domain.limits import MAX_SESSIONS, MAX_SESSIONS_OF_KEY
from duetime.domain.security.access import EVERYTHING, Access
from duetime.domain.security.credentials import (
    GRANT_PREFIX,
    Credential,
    KeyGrant,
    UiLink,
    UiSession,
)
from duetime.ports.clock import Clock
from duetime.ports.security import SecurityStore
from duetime.service.security.credential_watch import CredentialWatch
from duetime.service.security.fresh_credentials import FreshCredentials
from duetime.service.security.key_ring import HeldKey, KeyRing

SESSION_MS = 12 * 3_600_000
"""Time from a sign-in to the end of the session, whether it is used or not: a working day."""

LINK_MS = 60_000
"""Time for which a link opens a session."""

ENDED = "this session has ended"

_MAX_FORGOTTEN = 20
"""Old sessions that one sign-in forgets. More would take too long."""

_TOKEN_BYTES = 32
_STANDING_CODE_BYTES = 16
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)

Grant = TypeVar("Grant", UiSession, UiLink)


class IssuedToken(NamedTuple):
    """A new session or link. The `token` is known now, and never again."""

    token: str
    expires_at: Instant


class HeldSession:
    """A session that a request came with. Its requests count as those of its key. `key` is None if
    that is the one of the settings."""

    __slots__ = ("_sessions", "access", "id", "key")

    def __init__(self, sessions: "Sessions", id: str, key: HeldKey | None) -> None:
        self._sessions = sessions
        self.id = id
        self.key = key
        self.access = EVERYTHING if key is None else key.access

    def check_still_valid(self) -> None:
        """Raises `Unauthorized`."""
        if self.key is not None:
            self.key.check_still_valid()
        if not self._sessions.has(self.id):
            raise Unauthorized(ENDED)

    def enter(self) -> None:
        """Raises `TooManyRequests`."""
        if self.key is not None:
            self.key.enter()

    def leave(self) -> None:
        if self.key is not None:
            self.key.leave()


class Sessions:
    """A sign-in or sign-out holds on this node when the call returns, and on all others within 5
    seconds; there a new session is found at once. A view of the `CredentialWatch`, after the ring.

    A session ends by a sign-out, after `SESSION_MS`, with its key, or when it is the oldest of too
    many. Ended ones are forgotten bit by bit, when others sign in.
    """

    def __init__(
        self,
        store: SecurityStore,
        watch: CredentialWatch,
        ring: KeyRing,
        clock: Clock,
        api_key: str | None,
    ) -> None:
        self._store = store
        self._watch = watch
        self._ring = ring
        self._clock = clock
        self._api_key = None if api_key is None else api_key.encode()
        self._fresh = FreshCredentials(watch, clock)
        self._grants: dict[str, KeyGrant] = {}
        self._standing: dict[str, Access] = {}
        watch.subscribe(self._see)

    @property
    def are_needed(self) -> bool:
        """False if requests need no key, and so no session either."""
        return self._api_key is not None

    async def begin(self, access: Access) -> IssuedToken:
        """A session of the key with this access. Raises `StoreUnavailable`."""
        return await self._issue(UiSession, access, SESSION_MS)

    async def issue_link(self, access: Access) -> IssuedToken:
        """A code that begins a session of the key once. Raises `StoreUnavailable`."""
        return await self._issue(UiLink, access, LINK_MS)

    def standing_code(self, access: Access) -> str:
        """A code that begins sessions on this process as long as it runs, any number of times."""
        code = token_urlsafe(_STANDING_CODE_BYTES)
        self._standing[_id_of(code)] = access
        return code

    async def redeem(self, code: str) -> Access | None:
        """The access of the key that the code stands for, which is used up with that; None if the
        code is wrong, old or used. Raises `StoreUnavailable`. After a crash, the code may be used
        up without a session."""
        standing = self._standing.get(_id_of(code))
        if standing is not None:
            return standing
        link = await self._read(UiLink, code)
        # The store tells which of several nodes was the first.
        if link is None or not await self._store.remove_credential(link.id):
            return None
        return link.access

    def remembered(self, token: str) -> HeldSession | None:
        """The session, if it was there when the store was last read, however long ago that is."""
        return self._find(UiSession, token)

    async def look_up(self, token: str) -> HeldSession | None:
        """The session of the token, unless it has ended. Raises `StoreUnavailable` if that cannot
        be told."""
        if self._fresh.are_old(self._clock.monotonic()):
            await self._fresh.read()
        return await self._read(UiSession, token)

    async def end(self, token: str) -> None:
        """Forget the session, if there is one. Raises `StoreUnavailable`."""
        if _TOKEN.fullmatch(token) and await self._store.remove_credential(_id_of(token)):
            await self._watch.refresh()

    def has(self, id: str) -> bool:
        """Whether the session has not ended, as far as this node knows. Its key may have."""
        grant = self._grants.get(id)
        return grant is not None and grant.expires_at > self._clock.now()

    async def _read(self, kind: type[Grant], token: str) -> HeldSession | None:
        """As `_find`, also if another node has made it a moment ago."""
        found = self._find(kind, token)
        if found is not None or not _TOKEN.fullmatch(token) or _id_of(token) in self._grants:
            return found
        return self._find(kind, token) if await self._fresh.read_for_unknown() else None

    def _find(self, kind: type[Grant], token: str) -> HeldSession | None:
        id = _id_of(token)
        grant = self._grants.get(id)
        if not isinstance(grant, kind) or not self.has(id):
            return None
        if grant.key_id is None:
            proof = self._proof(token)
            if proof is None or not hmac.compare_digest(proof, grant.key_proof or ""):
                return None
            return HeldSession(self, id, None)
        key = self._ring.held(grant.key_id)
        if key is None:
            return None
        key.used_at_seconds = self._clock.monotonic()
        return HeldSession(self, id, key)

    async def _issue(self, kind: type[Grant], access: Access, lifetime_ms: int) -> IssuedToken:
        now = self._clock.now()
        await self._make_room(kind, access.key_id, now)
        token = token_urlsafe(_TOKEN_BYTES)
        grant = kind(
            id=_id_of(token),
            created_at=now,
            expires_at=plus_ms(now, lifetime_ms),
            key_id=access.key_id,
            key_proof=self._proof(token) if access.key_id is None else None,
        )
        await self._store.add_credential(grant)
        await self._watch.refresh()
        return IssuedToken(token, grant.expires_at)

    async def _make_room(self, kind: type[KeyGrant], key_id: str | None, now: Instant) -> None:
        """Links make room for links, and sessions for sessions."""
        key_ids = {grant.key_id for grant in self._grants.values()}
        ended_keys = {id for id in key_ids if id is not None and self._ring.held(id) is None}
        live: list[KeyGrant] = []
        gone: list[KeyGrant] = []
        for grant in self._grants.values():
            if grant.expires_at <= now or grant.key_id in ended_keys:
                gone.append(grant)
            elif isinstance(grant, kind):
                live.append(grant)
        live.sort(key=attrgetter("created_at"))
        of_key = [grant for grant in live if grant.key_id == key_id]
        too_many = of_key[: max(0, len(of_key) + 1 - MAX_SESSIONS_OF_KEY)]
        if not too_many and len(live) >= MAX_SESSIONS:
            too_many = live[:1]
        for grant in (*too_many, *gone)[:_MAX_FORGOTTEN]:
            await self._store.remove_credential(grant.id)

    def _proof(self, token: str) -> str | None:
        if self._api_key is None:
            return None
        return hmac.digest(token.encode(), self._api_key, "sha256").hex()

    def _see(self, credentials: Sequence[Credential]) -> None:
        self._grants = {each.id: each for each in credentials if isinstance(each, KeyGrant)}


def _id_of(token: str) -> str:
    return GRANT_PREFIX + sha256(token.encode(errors="replace")).hexdigest()
