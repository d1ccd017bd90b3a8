"""People with different keys in front of the pages for admins."""

import re
from collections.abc import Sequence
from html import unescape
from typing import Any

from duetime.domain.security.audit import AuditEntry
from duetime.ports.security import AuditQuery
from tests.unit.api.asgi_client import API_KEY, Reply
from tests.unit.web.sessions.session_bench import Browser, SessionBench

_TAGS = re.compile(r"<[^>]*>")
_SPACE = re.compile(r"\s+")


class AdminBench(SessionBench):
    async def put(self, name: str, **members: Any) -> None:
        """Create or change a namespace over the API."""
        reply = await self.request("PUT", f"/api/v1/namespaces/{name}", members)
        assert reply.status == 200, reply.content

    async def member(self, name: str, member: str) -> Any:
        """A member of a namespace, as the API shows it."""
        return (await self.request("GET", f"/api/v1/namespaces/{name}")).json[member]

    async def signed_in(self, key: str = API_KEY) -> Browser:
        browser = Browser(self)
        reply = await browser.sign_in(key)
        assert reply.status == 303, reply.content
        return browser

    async def signed_in_with(
        self, *roles: str, namespaces: Sequence[str] = ("*",), **more: Any
    ) -> Browser:
        return await self.signed_in(await self.issue_key(*roles, namespaces=namespaces, **more))

    async def last(self, action: str) -> AuditEntry:
        """The newest entry of the audit log about such an action."""
        return (await self.audit_log.entries(AuditQuery(action=action, limit=1)))[0]


def words_of(reply: Reply) -> str:
    """The text of the page, without its markup."""
    return _SPACE.sub(" ", unescape(_TAGS.sub(" ", reply.content.decode())))


def value_of(reply: Reply, name: str) -> str:
    """The value of a field of the page."""
    found = re.search(
        rf'<input id="{re.escape(name)}"[^>]* value="([^"]*)"', reply.content.decode()
    )
    assert found is not None, name
    return unescape(found[1])


def error_at(reply: Reply, name: str) -> str | None:
    """The error beside a field of the page."""
    found = re.search(
        rf'<p class="error" id="{re.escape(name)}-error" role="alert"([^>]*)>([^<]*)</p>',
        reply.content.decode(),
    )
    return None if found is None or "hidden" in found[1] else unescape(found[2])


def location(reply: Reply) -> str:
    assert reply.status == 303, reply.content
    return reply.headers["location"]
