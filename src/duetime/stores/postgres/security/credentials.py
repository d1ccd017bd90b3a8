"""Keys and secrets, with a version that grows with every change of them."""

from collections.abc import Mapping

from duetime.domain.instants import Instant
from duetime.domain.security.credentials import Credential
from duetime.ports.security import Credentials
from duetime.stores.postgres.connections import Connection, Connections
from duetime.stores.security_rows import (
    CredentialRows,
    credential_text,
    is_credential_id,
    is_text_of,
)

# One statement, and so one snapshot: the credentials are those of the version. No credential is
# read if the version is the known one.
CHANGED = """
    SELECT version, id, document FROM credentials_version LEFT JOIN credentials ON true
    WHERE version IS DISTINCT FROM $1::bigint
"""

ALL_CREDENTIALS = "SELECT id, document FROM credentials"

# The time makes a version unique. A server that takes over without the last changes of another
# would else give their versions to other changes, and nodes would take these for known.
_GROW_VERSION = """
    UPDATE credentials_version SET version =
        greatest(version + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
"""

_ADD = """
    INSERT INTO credentials (id, document) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING true
"""

_LOCK = "SELECT document FROM credentials WHERE id = $1 FOR NO KEY UPDATE"

_REPLACE = "UPDATE credentials SET document = $2 WHERE id = $1 RETURNING true"

_REMOVE = "DELETE FROM credentials WHERE id = $1 RETURNING true"

# Nodes note uses of the same credentials at the same time: locks are taken in the order of the ids.
NOTE_USES = """
    WITH used AS MATERIALIZED (
        SELECT credentials.id, given.at
        FROM unnest($1::text[], $2::bigint[]) AS given (id, at)
        JOIN credentials ON credentials.id = given.id
        WHERE coalesce(last_used_at < given.at, true)
        ORDER BY credentials.id FOR NO KEY UPDATE OF credentials
    )
    UPDATE credentials SET last_used_at = greatest(last_used_at, used.at)
    FROM used WHERE credentials.id = used.id
"""

_LAST_USES = "SELECT id, last_used_at FROM credentials WHERE last_used_at IS NOT NULL"


async def read_credentials(
    connections: Connections, known_version: int | None, rows: CredentialRows
) -> Credentials | None:
    changed = await connections.fetch(CHANGED, known_version)
    if not changed:
        return None
    kept = ((id, document) for _, id, document in changed if id is not None)
    return Credentials(changed[0][0], rows.read(kept))


async def add_credential(connections: Connections, credential: Credential) -> bool:
    return await _change(connections, _ADD, credential.id, credential_text(credential))


async def replace_credential(
    connections: Connections, credential: Credential, expected: Credential | None
) -> bool:
    text = credential_text(credential)
    async with connections.borrow() as connection, connection.transaction():
        if expected is not None and not is_text_of(
            expected, await connection.fetchval(_LOCK, credential.id)
        ):
            return False
        return await _changed(connection, _REPLACE, credential.id, text)


async def remove_credential(connections: Connections, id: str) -> bool:
    return is_credential_id(id) and await _change(connections, _REMOVE, id)


async def note_uses(connections: Connections, uses: Mapping[str, Instant]) -> None:
    ids = [id for id in uses if is_credential_id(id)]
    await connections.fetch(NOTE_USES, ids, [uses[id] for id in ids])


async def last_uses(connections: Connections) -> dict[str, Instant]:
    return {id: Instant(at) for id, at in await connections.fetch(_LAST_USES)}


async def _change(connections: Connections, statement: str, *values: str) -> bool:
    async with connections.borrow() as connection, connection.transaction():
        return await _changed(connection, statement, *values)


async def _changed(connection: Connection, statement: str, *values: str) -> bool:
    """The lock on the version orders the changes of all nodes. It is taken last, by everybody."""
    if await connection.fetchval(statement, *values) is None:
        return False
    await connection.execute(_GROW_VERSION)
    return True
