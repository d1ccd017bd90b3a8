"""Keys and secrets, with a version that grows with every change of them."""

from collections.abc import Mapping

import msgspec

from duetime.domain.instants import Instant
from duetime.domain.security.credentials import Credential
from duetime.ports.security import Credentials
from duetime.stores.security_rows import CredentialRows, is_credential_id, is_text_of
from duetime.stores.sqlite.connections import Statements, Transaction

_encode = msgspec.json.Encoder().encode

_VERSION = "SELECT version FROM credentials_version"

# Text to be decoded leaves SQLite as bytes: damaged bytes cannot be made a string.
ALL_CREDENTIALS = "SELECT id, CAST(document AS BLOB) FROM credentials"

_GROW_VERSION = "UPDATE credentials_version SET version = version + 1"

_ADD = "INSERT INTO credentials (id, document) VALUES (?1, ?2) ON CONFLICT DO NOTHING RETURNING id"

_GET = "SELECT CAST(document AS BLOB) FROM credentials WHERE id = ?1"

_REPLACE = "UPDATE credentials SET document = ?2 WHERE id = ?1 RETURNING id"

_REMOVE = "DELETE FROM credentials WHERE id = ?1 RETURNING id"

# The uses are a JSON array of [id, instant].
_NOTE_USES = """
    UPDATE credentials SET last_used_at = used.at
    FROM (SELECT value ->> 0 AS id, value ->> 1 AS at FROM json_each(?1)) AS used
    WHERE credentials.id = used.id AND coalesce(last_used_at < used.at, true)
"""

_LAST_USES = "SELECT id, last_used_at FROM credentials WHERE last_used_at IS NOT NULL"


def read_credentials(
    statements: Statements, known_version: int | None, rows: CredentialRows
) -> Credentials | None:
    (version,) = statements.first(_VERSION)
    if version == known_version:
        return None
    return Credentials(version, rows.read(statements.execute(ALL_CREDENTIALS)))


def add_credential(transaction: Transaction, id: str, document: str) -> bool:
    return _change(transaction, _ADD, id, document)


def replace_credential(
    transaction: Transaction, id: str, document: str, expected: Credential | None
) -> bool:
    if expected is not None:
        row = transaction.first(_GET, id)
        if row is None or not is_text_of(expected, row[0]):
            return False
    return _change(transaction, _REPLACE, id, document)


def remove_credential(transaction: Transaction, id: str) -> bool:
    return is_credential_id(id) and _change(transaction, _REMOVE, id)


def note_uses(transaction: Transaction, uses: Mapping[str, Instant]) -> None:
    known = [(id, at) for id, at in uses.items() if is_credential_id(id)]
    transaction.execute(_NOTE_USES, _encode(known).decode())


def last_uses(statements: Statements) -> dict[str, Instant]:
    return {id: Instant(at) for id, at in statements.execute(_LAST_USES)}


def _change(transaction: Transaction, statement: str, *values: str) -> bool:
    if transaction.first(statement, *values) is None:
        return False
    transaction.execute(_GROW_VERSION)
    return True
