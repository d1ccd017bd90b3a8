"""Entries of the audit log."""

from msgspec import Struct

from duetime.domain.instants import Instant

MAX_TEXT_CHARACTERS = 255
"""Length at which a text of an entry is cut: that of the longest name or id. PostgreSQL's indexes
hold no text of any length, and SQLite would need a page for an entry of a kilobyte."""

MAX_DETAILS_CHARACTERS = 4_096
"""Length at which the details of an entry are cut."""


class AuditEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that somebody did, or tried to do.

    `id` is a UUIDv7. `actor` is the name of the key and `key_id` its id; `address` is where the
    request came from. `target` is the id of what was acted on, in `namespace` if it is in one.
    `result` is "ok" or the code of the error. `details` are a few words for people.
    """

    id: str
    at: Instant
    actor: str
    action: str
    result: str
    key_id: str | None = None
    address: str | None = None
    namespace: str | None = None
    target: str | None = None
    details: str | None = None
