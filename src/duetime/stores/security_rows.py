"""Keys, secrets and entries of the audit log, as the stores keep them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Instant
from duetime.domain.security.audit import (
    MAX_DETAILS_CHARACTERS,
    MAX_TEXT_CHARACTERS,
    AuditEntry,
)
from duetime.domain.security.credentials import Credential
from duetime.ports.security import AuditQuery
from duetime.stores.stored_text import storable
from duetime.stores.unreadable_rows import (
    UNREADABLE_ROW,
    log_unreadable_credential,
    unreadable_reason,
)

AUDIT_COLUMNS = AuditEntry.__struct_fields__
"""Columns of an entry, in the order that `entry_of` reads them."""

_LEADING_COLUMNS = ("namespace", "target", "actor", "action")
"""Columns with an index. The namespaces come first: the time of a search must not depend on entries
about others. Then come those whose values usually have the fewest entries."""

_MAX_CHARACTERS = {"id": 64, "details": MAX_DETAILS_CHARACTERS}
"""Length at which a text is cut, where it is not the usual one."""

_MAX_INSTANT = Instant(2**63 - 1)
_MIN_INSTANT = Instant(-(2**63))

_encode = msgspec.json.Encoder().encode
_decode_credential = msgspec.json.Decoder(Credential).decode


def credential_text(credential: Credential) -> str:
    """Raises `InvalidInput`, which names the field."""
    if "\0" in credential.id:
        raise InvalidInput("id", "must not contain NUL")
    for field, value in asdict(credential).items():
        try:
            _encode(value)
        except UnicodeEncodeError:
            raise InvalidInput(field, "must be valid Unicode, without lone surrogates") from None
    return _encode(credential).decode()


def is_credential_id(id: str) -> bool:
    """Whether a credential may have this id."""
    return storable(id) == id


class CredentialRows:
    """Reads all credentials again and again. A credential with the same text as in the last read is
    the same object as then, so that a change of one among thousands costs little."""

    def __init__(self) -> None:
        self._read: dict[str | bytes, Credential] = {}

    def read(self, rows: Iterable[Sequence[Any]]) -> list[Credential]:
        """The credentials of all rows of id and text. Unreadable ones are logged and left out."""
        before = self._read
        now: dict[str | bytes, Credential] = {}
        for id, text in rows:
            try:
                now[text] = before.get(text) or _decode_credential(text)
            except UNREADABLE_ROW as error:
                log_unreadable_credential(id, error)
        # Threads may read at the same time: each leaves a whole read behind.
        self._read = now
        return list(now.values())


def is_text_of(expected: Credential, text: str | bytes | None) -> bool:
    """Whether a credential is stored as this text, if there is one. Two releases may write
    different texts for it."""
    try:
        return text is not None and _decode_credential(text) == expected
    except UNREADABLE_ROW:
        return False


def unreadable_credentials(rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """The id of each credential whose text cannot be read, with the reason."""
    for id, text in rows:
        try:
            _decode_credential(text)
        except UNREADABLE_ROW as error:
            yield f"{id}: {unreadable_reason(error)}"


def kept_entries(entries: Iterable[AuditEntry]) -> list[AuditEntry]:
    """The entries with the text that is kept, the first of each id, in the order of the ids."""
    by_id: dict[str, AuditEntry] = {}
    for entry in entries:
        kept = {
            field: _kept_text(value, field)
            for field, value in asdict(entry).items()
            if isinstance(value, str)
        }
        by_id.setdefault(kept["id"], replace(entry, **kept))
    return [by_id[id] for id in sorted(by_id)]


def values_of(entry: AuditEntry) -> list[Any]:
    """The values of AUDIT_COLUMNS."""
    return [getattr(entry, column) for column in AUDIT_COLUMNS]


def entry_of(row: Sequence[Any]) -> AuditEntry:
    return AuditEntry(**dict(zip(AUDIT_COLUMNS, row, strict=True)))


def position_of(entry: AuditEntry) -> tuple[Instant, str]:
    """Place of the entry in the log."""
    return entry.at, entry.id


class AuditSearch(Struct, frozen=True):
    """A query as the parts of a statement: `equal` has the values of columns, `namespaces` those
    of which the entry has one. Entries come from `from_inclusive` on, before the position
    `before_exclusive`."""

    equal: dict[str, str]
    namespaces: list[str] | None
    from_inclusive: Instant
    before_exclusive: tuple[Instant, str]
    limit: int

    @property
    def leading(self) -> str | None:
        """Column of the index to read; None for that of the instants alone."""
        given = {*self.equal, *(() if self.namespaces is None else ("namespace",))}
        return next((column for column in _LEADING_COLUMNS if column in given), None)


def search_of(query: AuditQuery) -> AuditSearch:
    conditions = {"actor": query.actor, "action": query.action, "target": query.target}
    namespaces = query.namespaces
    from_at, until_at = query.from_inclusive, query.until_exclusive
    # No id is less than the empty one, so this is the position of the first entry at the instant.
    before = (_MAX_INSTANT if until_at is None else _within(until_at), "")
    if query.before_exclusive is not None:
        at, id = query.before_exclusive
        before = min(before, (_within(at), _kept_text(id, "id")))
    return AuditSearch(
        equal={name: _kept_text(text) for name, text in conditions.items() if text is not None},
        namespaces=None if namespaces is None else sorted(set(map(_kept_text, namespaces))),
        from_inclusive=_MIN_INSTANT if from_at is None else _within(from_at),
        before_exclusive=before,
        limit=query.limit,
    )


def _within(at: Instant) -> Instant:
    return max(_MIN_INSTANT, min(at, _MAX_INSTANT))


def _kept_text(text: str, field: str = "") -> str:
    return storable(text[: _MAX_CHARACTERS.get(field, MAX_TEXT_CHARACTERS)])
