"""A browser without scripts in front of the Web UI, which is called in-process."""

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from duetime.service.trying.inbox import Inbox
from duetime.service.trying.trial_creates import TrialCreates
from duetime.web.web_ui import WebParts, WebUi
from tests.unit.api.asgi_client import API_KEY, ApiBench, Reply, call
from tests.unit.service.service_bench import timer_rules
from tests.unit.web.quiet_reports import quiet_reports

SIGN_IN = "/ui/sign-in"
SIGN_OUT = "/ui/sign-out"

_CSRF = re.compile(r'name="csrf" value="(\w+)"')


class SessionBench(ApiBench):
    def __init__(self, **changes: Any) -> None:
        super().__init__(**changes)
        self.reports = quiet_reports(self)
        self.app.add_web(
            WebUi(
                WebParts(
                    services=self.services,
                    authentication=self.app.authentication,
                    auditing=self.app.auditing,
                    lifecycle=self.app.lifecycle,
                    clock=self.clock,
                    worked=float,
                    reports=self.reports,
                    trials=TrialCreates(
                        self.store,
                        self.clock,
                        self.destination,
                        self.namespaces,
                        timer_rules(min_delay_ms=0, default_retries=True),
                    ),
                    inbox=Inbox(self.clock, self.signers),
                    max_body_bytes=10_000,
                    callback_timeout_ms=30_000,
                )
            )
        )


class Browser:
    """Keeps cookies, and sends what a browser sends beside a request."""

    def __init__(self, bench: SessionBench, address: str = "192.0.2.7") -> None:
        self._bench = bench
        self._address = address
        self.cookies: dict[str, str] = {}
        self.set_cookies: dict[str, str] = {}
        """The attributes of the cookies that the last answer set."""

    async def get(self, path: str, *, site: str = "none", **headers: str) -> Reply:
        return await self._send("GET", path, b"", {"sec-fetch-site": site, **headers})

    async def head(self, path: str) -> Reply:
        return await self._send("HEAD", path, b"", {})

    async def post(
        self,
        path: str,
        *,
        site: str = "same-origin",
        headers: Any = None,
        **fields: str | Sequence[str],
    ) -> Reply:
        """A field with several values is given several times."""
        body = urlencode(fields, doseq=True).encode()
        given = {"sec-fetch-site": site, "content-length": str(len(body)), **(headers or {})}
        return await self._send("POST", path, body, given)

    async def send_form(self, path: str, form_at: str, **fields: str | Sequence[str]) -> Reply:
        """Load the page with the form, and send it."""
        token = await self.form_token(form_at)
        return await self.post(path, site="same-origin", headers=None, csrf=token, **fields)

    async def form_token(self, path: str) -> str:
        """The token in the forms of a page."""
        found = _CSRF.search((await self.get(path)).content.decode())
        assert found is not None
        return found[1]

    async def sign_in(self, key: str = API_KEY, **fields: str) -> Reply:
        return await self.send_form(SIGN_IN, SIGN_IN, key=key, **fields)

    async def sign_out(self) -> Reply:
        return await self.send_form(SIGN_OUT, "/ui")

    async def is_signed_in(self) -> bool:
        reply = await self.get("/ui")
        assert reply.status in (200, 303), reply.content
        return reply.status == 200

    async def _send(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Reply:
        if self.cookies:
            headers["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        raw = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
        reply = await call(self._bench.app, method, path, [body], raw, self._address)
        self.set_cookies = {}
        for text in reply.set_cookies:
            pair, _, attributes = text.partition("; ")
            name, _, value = pair.partition("=")
            self.set_cookies[name] = attributes
            if "Max-Age=0" in attributes:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        return reply
