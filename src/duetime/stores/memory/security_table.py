"""The keys, secrets and audit log of the process."""

from collections.abc import Mapping, Sequence

from duetime.domain.instants import Instant
from duetime.domain.security.audit import AuditEntry
from duetime.domain.security.credentials import Credential
from duetime.ports.security import AuditQuery, Credentials
from duetime.stores.security_rows import (
    AuditSearch,
    credential_text,
    kept_entries,
    position_of,
    search_of,
)


class SecurityTable:
    """Implements `SecurityStore`."""

    is_short = False

    def __init__(self) -> None:
        self._version = 0
        self._credentials: dict[str, Credential] = {}
        self._uses: dict[str, Instant] = {}
        self._audit: dict[str, AuditEntry] = {}

    async def credentials(self, known_version: int | None) -> Credentials | None:
        if known_version == self._version:
            return None
        return Credentials(self._version, list(self._credentials.values()))

    async def add_credential(self, credential: Credential) -> bool:
        credential_text(credential)
        if credential.id in self._credentials:
            return False
        self._keep(credential)
        return True

    async def replace_credential(
        self, credential: Credential, *, expected: Credential | None = None
    ) -> bool:
        credential_text(credential)
        held = self._credentials.get(credential.id)
        if held is None or expected not in (None, held):
            return False
        self._keep(credential)
        return True

    async def remove_credential(self, id: str) -> bool:
        if self._credentials.pop(id, None) is None:
            return False
        self._uses.pop(id, None)
        self._version += 1
        return True

    async def note_uses(self, uses: Mapping[str, Instant]) -> None:
        for id, at in uses.items():
            if id in self._credentials:
                self._uses[id] = max(at, self._uses.get(id, at))

    async def last_uses(self) -> Mapping[str, Instant]:
        return dict(self._uses)

    async def append_audit(self, entries: Sequence[AuditEntry]) -> None:
        for entry in kept_entries(entries):
            self._audit.setdefault(entry.id, entry)

    async def audit_entries(self, query: AuditQuery) -> Sequence[AuditEntry]:
        search = search_of(query)
        newest_first = sorted(self._audit.values(), key=position_of, reverse=True)
        return [each for each in newest_first if _matches(search, each)][: search.limit]

    async def forget_audit(self, *, before_exclusive: Instant, limit: int) -> int:
        oldest_first = sorted(self._audit.values(), key=position_of)
        old = [each.id for each in oldest_first if each.at < before_exclusive][:limit]
        for id in old:
            del self._audit[id]
        return len(old)

    def _keep(self, credential: Credential) -> None:
        self._credentials[credential.id] = credential
        self._version += 1


def _matches(search: AuditSearch, entry: AuditEntry) -> bool:
    return (
        all(getattr(entry, column) == text for column, text in search.equal.items())
        and (search.namespaces is None or entry.namespace in search.namespaces)
        and search.from_inclusive <= entry.at
        and position_of(entry) < search.before_exclusive
    )
