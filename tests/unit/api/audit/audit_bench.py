"""The v1 API and its audit log, for callers with any access."""

from typing import Any

import pytest

from duetime.domain.security.access import Access
from duetime.domain.security.audit import AuditEntry
from duetime.ports.security import AuditQuery
from tests.unit.api.v1.v1_bench import V1Bench


class AuditBench(V1Bench):
    async def entries(self, **conditions: Any) -> list[AuditEntry]:
        """The entries in the store, newest first."""
        return list(await self.audit_log.entries(AuditQuery(limit=1_000, **conditions)))

    async def only_entry(self) -> AuditEntry:
        (entry,) = await self.entries()
        return entry


def act_as(monkeypatch: pytest.MonkeyPatch, access: Access) -> None:
    """From now on the key of the settings has this access."""
    monkeypatch.setattr("duetime.api.http.auth.EVERYTHING", access)
