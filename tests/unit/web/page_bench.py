"""Pages in front of a service on a memory store."""

import re
from collections.abc import Sequence
from html import unescape
from urllib.parse import urlencode

from duetime.service.turns import Turns
from duetime.web.app import WebApp
from duetime.web.cookies import BROWSER, csrf_token
from duetime.web.endpoint import WebEndpoint
from duetime.web.rendering.renderer import Renderer
from tests.unit.api.asgi_client import API_KEY, Reply, call
from tests.unit.api.audit.audit_bench import AuditBench

_BROWSER = "b" * 43
_TAGS = re.compile(r"<[^>]*>")

Fields = Sequence[tuple[str, str]]


class PageBench(AuditBench):
    web: WebApp

    def serve(self, *endpoints: WebEndpoint) -> None:
        self.web = WebApp(
            endpoints,
            self.app.authentication,
            self.app.auditing,
            self.app.lifecycle,
            self.clock,
            Renderer(Turns(self.clock)),
            max_body_bytes=1_000_000,
        )

    async def page(self, path: str, key: str = API_KEY) -> Reply:
        return await call(self.web, "GET", path, [b""], self._headers(key))

    async def send(
        self,
        path: str,
        fields: Fields = (),
        key: str = API_KEY,
        *,
        accept: str = "text/html",
        token: str = csrf_token(_BROWSER),
    ) -> Reply:
        """Send a form that was made for this browser."""
        body = urlencode([("csrf", token), *fields]).encode()
        headers = [
            *self._headers(key),
            (b"content-length", b"%d" % len(body)),
            (b"sec-fetch-site", b"same-origin"),
            (b"accept", accept.encode()),
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
