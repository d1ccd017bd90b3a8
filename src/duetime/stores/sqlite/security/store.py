"""The methods of the security port, each handed to the writer or to a reader of the store."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import Instant
from duetime.domain.security.audit import AuditEntry
from duetime.domain.security.credentials import Credential
from duetime.ports.security import AuditQuery, Credentials
from duetime.stores.security_rows import CredentialRows, credential_text
from duetime.stores.sqlite.connections import Reader
from duetime.stores.sqlite.disk.space import DiskSpace
from duetime.stores.sqlite.security import audit_log, credentials
from duetime.stores.sqlite.writer import BatchOperation, Writer

_APPEND = BatchOperation(audit_log.append_entries, lambda entries: True)


class OpenedFile(Protocol):
    """The threads of the file. A long search waits with lists, and keeps no key from being read."""

    writer: Writer
    quick_reader: Reader
    list_reader: Reader

    @property
    def space(self) -> DiskSpace: ...


class SqliteSecurityStore:
    """Implements the security port on the file of a store. Nothing is refused for the reserve of
    the disk."""

    def __init__(self, opened: Callable[[], OpenedFile]) -> None:
        """`opened` raises `StoreUnavailable` while the store is closed."""
        self._opened = opened
        self._rows = CredentialRows()

    @property
    def is_short(self) -> bool:
        try:
            return self._opened().space.is_short
        except StoreUnavailable:
            return False

    async def credentials(self, known_version: int | None) -> Credentials | None:
        read = partial(credentials.read_credentials, known_version=known_version, rows=self._rows)
        return await self._opened().quick_reader.run(read)

    async def add_credential(self, credential: Credential) -> bool:
        document = credential_text(credential)
        add = partial(credentials.add_credential, id=credential.id, document=document)
        return await self._opened().writer.submit(add)

    async def replace_credential(
        self, credential: Credential, *, expected: Credential | None = None
    ) -> bool:
        document = credential_text(credential)
        replace = partial(
            credentials.replace_credential,
            id=credential.id,
            document=document,
            expected=expected,
        )
        return await self._opened().writer.submit(replace)

    async def remove_credential(self, id: str) -> bool:
        return await self._opened().writer.submit(partial(credentials.remove_credential, id=id))

    async def note_uses(self, uses: Mapping[str, Instant]) -> None:
        if uses:
            await self._opened().writer.submit(partial(credentials.note_uses, uses=uses))

    async def last_uses(self) -> Mapping[str, Instant]:
        return await self._opened().quick_reader.run(credentials.last_uses)

    async def append_audit(self, entries: Sequence[AuditEntry]) -> None:
        if entries:
            await self._opened().writer.submit_batch(_APPEND, entries)

    async def audit_entries(self, query: AuditQuery) -> Sequence[AuditEntry]:
        return await self._opened().list_reader.run(partial(audit_log.read_entries, query=query))

    async def forget_audit(self, *, before_exclusive: Instant, limit: int) -> int:
        forget = partial(audit_log.forget_entries, before_exclusive=before_exclusive, limit=limit)
        return await self._opened().writer.submit(forget)
