"""The methods of the security port, each with the connection pool it uses."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from duetime.domain.instants import Instant
from duetime.domain.security.audit import AuditEntry
from duetime.domain.security.credentials import Credential
from duetime.ports.security import AuditQuery, Credentials
from duetime.stores.postgres.connections import Connections
from duetime.stores.postgres.security import audit_log, credentials
from duetime.stores.security_rows import CredentialRows


class Pools(Protocol):
    """The pools of the store. A long search waits with lists, and keeps no key from being read."""

    reads: Connections
    lists: Connections


class PostgresSecurityStore:
    """Implements the security port on the database of a store, whose disk it does not know."""

    is_short = False

    def __init__(self, pools: Callable[[], Pools]) -> None:
        """`pools` raises `StoreUnavailable` while the store is closed."""
        self._pools = pools
        self._rows = CredentialRows()

    async def credentials(self, known_version: int | None) -> Credentials | None:
        return await credentials.read_credentials(self._pools().reads, known_version, self._rows)

    async def add_credential(self, credential: Credential) -> bool:
        return await credentials.add_credential(self._pools().reads, credential)

    async def replace_credential(
        self, credential: Credential, *, expected: Credential | None = None
    ) -> bool:
        return await credentials.replace_credential(self._pools().reads, credential, expected)

    async def remove_credential(self, id: str) -> bool:
        return await credentials.remove_credential(self._pools().reads, id)

    async def note_uses(self, uses: Mapping[str, Instant]) -> None:
        if uses:
            await credentials.note_uses(self._pools().reads, uses)

    async def last_uses(self) -> Mapping[str, Instant]:
        return await credentials.last_uses(self._pools().reads)

    async def append_audit(self, entries: Sequence[AuditEntry]) -> None:
        if entries:
            await audit_log.append_entries(self._pools().reads, entries)

    async def audit_entries(self, query: AuditQuery) -> Sequence[AuditEntry]:
        return await audit_log.read_entries(self._pools().lists, query)

    async def forget_audit(self, *, before_exclusive: Instant, limit: int) -> int:
        return await audit_log.forget_entries(self._pools().reads, before_exclusive, limit)
