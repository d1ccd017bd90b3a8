"""The pages of operations in front of a service on a memory store."""

import re
from collections.abc import Sequence
from html import unescape
from urllib.parse import urlencode

from duetime.service.bulk.chosen import ChosenTimers
from duetime.service.bulk.operations import BulkOperations
from duetime.service.redriving import Redriving
from duetime.service.turns import Turns
from duetime.web.app import WebApp
from duetime.web.cookies import BROWSER, csrf_token
from duetime.web.pages.operations.new_operation import NewOperationPage
from duetime.web.pages.operations.operations_page import OperationsPage
from duetime.web.rendering.renderer import Renderer
from tests.unit.api.asgi_client import API_KEY, Reply, call
from tests.unit.api.audit.audit_bench import AuditBench
from tests.unit.service.service_bench import EVERY_SHARD

NEW = "/ui/operations/new"
OPERATIONS = "/ui/operations"
_BROWSER = "b" * 43
_TAGS = re.compile(r"<[^>]*>")
_HIDDEN = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)">')

Fields = Sequence[tuple[str, str]]


class OperationsBench(AuditBench):
    async def open(self) -> "OperationsBench":
        await super().open()
        redriving = Redriving(self.store, self.clock, self.wakeups, self.namespaces)
        operations = BulkOperations(
            self.store,
            self.store,
            self.clock,
            self.namespaces,
            EVERY_SHARD,
            self.bulk_runner.wake,
        )
        chosen = ChosenTimers(
            self.store, self.clock, self.wakeups, self.namespaces, self.service, redriving
        )
        new = NewOperationPage(operations, chosen, self.namespaces, self.app.auditing)
        self.web = WebApp(
            (*new.endpoints(), *OperationsPage(operations).endpoints()),
            self.app.authentication,
            self.app.auditing,
            self.app.lifecycle,
            self.clock,
            Renderer(Turns(self.clock)),
            max_body_bytes=1_000_000,
        )
        return self

    async def page(self, path: str, key: str = API_KEY) -> Reply:
        return await call(self.web, "GET", path, [b""], self._headers(key))

    async def send(self, path: str, fields: Fields, key: str = API_KEY) -> Reply:
        """Send a form that was made for this browser."""
        body = urlencode([("csrf", csrf_token(_BROWSER)), *fields]).encode()
        headers = [
            *self._headers(key),
            (b"content-length", b"%d" % len(body)),
            (b"sec-fetch-site", b"same-origin"),
        ]
        return await call(self.web, "POST", path, [body], headers)

    def _headers(self, key: str) -> list[tuple[bytes, bytes]]:
        cookie = f"{BROWSER}={_BROWSER}".encode()
        return [(b"x-api-key", key.encode()), (b"cookie", cookie)]


def text_of(reply: Reply) -> str:
    """The words of a page's content, as they are read."""
    _, _, content = reply.content.decode().partition("<main")
    content = content.partition("</main>")[0]
    return " ".join(unescape(_TAGS.sub(" ", content)).split())


def question_of(reply: Reply) -> list[tuple[str, str]]:
    """The hidden fields of the form that starts the operation."""
    assert reply.status == 200, reply.content
    _, begin, form = reply.content.decode().partition(f'method="post" action="{OPERATIONS}"')
    assert begin, text_of(reply)
    pairs = _HIDDEN.findall(form.partition("</form>")[0])
    return [(name, unescape(value)) for name, value in pairs if name != "csrf"]
