"""The store of keys, secrets and the audit log."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from duetime.domain.instants import Instant
from duetime.domain.security.audit import AuditEntry
from duetime.domain.security.credentials import Credential


class Credentials(Struct, frozen=True):
    """All credentials as of a version. The version grows with every change of a credential."""

    version: int
    credentials: Sequence[Credential]


class AuditQuery(Struct, frozen=True, kw_only=True):
    """Entries in the order of (at, id), newest first. Conditions that are None do not count; with
    `namespaces` only entries about these. The page continues before `before_exclusive`, which is
    the instant and the id of an entry."""

    actor: str | None = None
    action: str | None = None
    target: str | None = None
    namespaces: Sequence[str] | None = None
    from_inclusive: Instant | None = None
    until_exclusive: Instant | None = None
    before_exclusive: tuple[Instant, str] | None = None
    limit: int = 50


class SecurityStore(Protocol):
    """Every method is atomic and durable, and raises `StoreUnavailable`, as those of the timer
    store. A store that is short of room still takes all of this: it is little."""

    async def credentials(self, known_version: int | None) -> Credentials | None:
        """All keys and secrets; None if nothing changed since the known version. Cheap then:
        every node asks every few seconds."""
        ...

    async def add_credential(self, credential: Credential) -> bool:
        """Keep a new credential. False if its id is taken; then nothing changed."""
        ...

    async def replace_credential(self, credential: Credential) -> bool:
        """Replace the credential of the same id. False if there is none."""
        ...

    async def remove_credential(self, id: str) -> bool:
        """Forget the credential, with its last use. False if there is none."""
        ...

    async def note_uses(self, uses: Mapping[str, Instant]) -> None:
        """Keep the last use of each of these credentials, by id. Unknown ids are ignored, and an
        earlier instant than the kept one changes nothing. No change of the version."""
        ...

    async def last_uses(self) -> Mapping[str, Instant]:
        """The last uses that are known, by the credential's id."""
        ...

    async def append_audit(self, entries: Sequence[AuditEntry]) -> None:
        """Add entries to the audit log. One whose id is there already is ignored, so that the call
        may be repeated."""
        ...

    async def audit_entries(self, query: AuditQuery) -> Sequence[AuditEntry]: ...

    async def forget_audit(self, *, before_exclusive: Instant, limit: int) -> int:
        """Forget up to `limit` entries, the oldest first; returns their number."""
        ...
