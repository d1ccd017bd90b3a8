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
    the instant and the id of an entry.

    Conditions on the instants and one other condition cost what the answer has. With several other
    conditions, one of them leads, in the order of `namespaces`, `target`, `actor`, `action`: the
    store reads the entries that it selects, newest first, and leaves out those that differ in the
    others, until the page is full. So a search in namespaces never reads an entry about another
    one, which its time would tell; but one for a rare target or actor may read all entries about
    these namespaces, unless instants limit it. `namespaces` cost a page each."""

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
    store. A store that is short of room still takes all of this, as far as it is little: entries
    about requests that changed nothing are kept from a store that `is_short`.

    A credential that the store cannot read, perhaps one of a later release, is logged once and left
    out of the answers. It can be replaced and removed.
    """

    @property
    def is_short(self) -> bool:
        """Whether the store has so little room that it refuses new timers. Never raises."""
        ...

    async def credentials(self, known_version: int | None) -> Credentials | None:
        """All keys and secrets; None if nothing changed since the known version. Cheap then:
        every node asks every few seconds."""
        ...

    async def add_credential(self, credential: Credential) -> bool:
        """Keep a new credential. False if its id is taken; then nothing changed. Raises
        `InvalidInput` for text that no store can hold: a lone surrogate, or NUL in the id."""
        ...

    async def replace_credential(
        self, credential: Credential, *, expected: Credential | None = None
    ) -> bool:
        """Replace the credential of the same id. With `expected` only if it equals that: another
        process may have changed it since it was read. False if there is none, or another one; then
        nothing changed. Raises `InvalidInput` like `add_credential`. The last use stays."""
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
        may be repeated; of two with one id in a call, the first counts.

        No text keeps an entry from being written: NUL and lone surrogates are replaced, and text
        is cut at `MAX_TEXT_CHARACTERS`, details at `MAX_DETAILS_CHARACTERS`. The conditions of a
        query are treated alike, so that they find what was written."""
        ...

    async def audit_entries(self, query: AuditQuery) -> Sequence[AuditEntry]: ...

    async def forget_audit(self, *, before_exclusive: Instant, limit: int) -> int:
        """Forget up to `limit` entries, the oldest first; returns their number."""
        ...
