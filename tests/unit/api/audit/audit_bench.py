"""The v1 API and its audit log, for callers with any access."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from duetime.domain.security.access import Access
from duetime.domain.security.audit import AuditEntry
from duetime.event_loop import next_turn
from duetime.ports.security import AuditQuery
from tests.unit.api.asgi_client import API_KEY
from tests.unit.api.v1.v1_bench import V1Bench


class AuditBench(V1Bench):
    async def entries(self, **conditions: Any) -> list[AuditEntry]:
        """The entries in the store, newest first."""
        return list(await self.audit_log.entries(AuditQuery(limit=1_000, **conditions)))

    async def only_entry(self) -> AuditEntry:
        (entry,) = await self.entries()
        return entry

    async def break_off(
        self, path: str, body: bytes, until: Callable[[], Awaitable[None]] = next_turn
    ) -> None:
        """POST the beginning of a body, wait, and go away without an answer."""
        messages = iter([{"type": "http.request", "body": body, "more_body": True}])

        async def receive() -> Any:
            for message in messages:
                return message
            await until()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            raise AssertionError(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(b"x-api-key", API_KEY.encode())],
            "client": ("192.0.2.7", 1234),
        }
        await self.app(scope, receive, send)


def act_as(monkeypatch: pytest.MonkeyPatch, access: Access) -> None:
    """From now on the key of the settings has this access."""
    monkeypatch.setattr("duetime.api.http.auth.EVERYTHING", access)
