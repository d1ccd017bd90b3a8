"""The docs page, made from the OpenAPI document."""

from html.parser import HTMLParser
from typing import Any

import pytest

from duetime.api.openapi.document import openapi_document
from tests.unit.api.asgi_client import ApiBench, call


class Resources(HTMLParser):
    """Collects what a page refers to, and checks that its elements are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.references: list[str] = []
        self.tags: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.references += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


async def page(api: ApiBench, host: bytes = b"timers.example:8080") -> str:
    reply = await call(api.app, "GET", "/docs", headers=[(b"host", host)])
    assert reply.status == 200
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    return reply.content.decode()


async def test_the_page_loads_nothing_else(api: ApiBench) -> None:
    parser = Resources()
    html = await page(api)
    parser.feed(html)
    assert parser.open == []
    assert "script" not in parser.tags
    assert "link" not in parser.tags
    assert all(reference.startswith(("#", "/")) for reference in parser.references)
    assert not any(reference.startswith("//") for reference in parser.references)
    assert "url(" not in html
    assert "@import" not in html


async def test_the_page_shows_every_endpoint_field_and_a_command_to_paste(api: ApiBench) -> None:
    html = await page(api)
    document: Any = openapi_document()
    for path, item in document["paths"].items():
        for method in item.keys() - {"parameters"}:
            assert f"{method.upper()}</span> <code>{path}</code>" in html
    for field in (
        "execute_at",
        "callback.url",
        "callback.topic",
        "retry_policy.max_retries",
        "limit",
        "retryPolicy.maxRetries",
        "timers[].executeAt",
        "dueBefore",
        "numShards",
        "endpoints[].lastError",
        "webhook-timestamp",
    ):
        assert f"<code>{field}</code>" in html
    assert "curl -X POST http://timers.example:8080/timers" in html
    assert "&quot;execute_at&quot;: &quot;2030-01-01T01:00:00Z&quot;" in html
    assert "curl -X PUT http://timers.example:8080/api/v1/timers/default/user-reminder-123" in html
    assert "&quot;executeAt&quot;: &quot;2030-01-01T01:00:00Z&quot;" in html
    assert "Content-Type: application/x-ndjson" in html
    assert "X-API-Key: $API_KEY" in html


async def test_the_page_has_the_groups_of_the_document(api: ApiBench) -> None:
    html = await page(api)
    document: Any = openapi_document()
    groups = html.split("<div class=group>")[1:]
    for tag, group in zip(document["tags"], groups, strict=True):
        assert group.startswith(f"<h2>{tag['name']}</h2>")
        for item in document["paths"].values():
            for method in item.keys() - {"parameters"}:
                name, tags = item[method]["operationId"], item[method]["tags"]
                assert (f'<section id="{name}">' in group) == (tags == [tag["name"]])


async def test_the_page_describes_each_callback(api: ApiBench) -> None:
    html = await page(api)
    assert 'href="#callback-platform-timers"' in html
    platform = html.split('id="callback-platform-timers"')[1].split("</section>")[0]
    assert "Any 2xx answer completes the timer" in platform
    v1 = html.split('id="callback-timers-v1"')[1].split("</section>")[0]
    assert "<code>executeAt</code>" in v1
    assert "&quot;nextExecuteAt&quot;: &quot;2030-01-01T16:00:00Z&quot;" in v1


@pytest.mark.parametrize("host", [b"", b"<script>", b"a b", b"x" * 300, b"\xff", b"a';rm -rf /'"])
async def test_a_strange_host_is_not_repeated(api: ApiBench, host: bytes) -> None:
    assert "http://localhost:8080/timers" in await page(api, host)
