"""The docs page, made from the OpenAPI document."""

import json
import re
from html import unescape
from html.parser import HTMLParser
from typing import Any

import pytest

from duetime.api.openapi.document import openapi_document
from tests.unit.api.asgi_client import ApiBench, call

VOID_ELEMENTS = {"input", "link", "meta"}
FIELDS = {"input", "select", "textarea"}
STATIC_FILES = {
    "/docs/docs.css": "text/css; charset=utf-8",
    "/docs/docs.js": "text/javascript; charset=utf-8",
    "/docs/icon.svg": "image/svg+xml",
}


class Elements(HTMLParser):
    """Collects the elements of a page, and checks that they are closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inline: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID_ELEMENTS:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in ("script", "style"):
            self.inline.append(data)

    def attributes(self, name: str) -> list[str]:
        return [attrs[name] or "" for _, attrs in self.elements if name in attrs]


async def page(api: ApiBench, host: bytes = b"timers.example:8080") -> str:
    reply = await call(api.app, "GET", "/docs", headers=[(b"host", host)])
    assert reply.status == 200
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    return reply.content.decode()


async def test_the_page_loads_only_its_own_files(api: ApiBench) -> None:
    elements = Elements(await page(api))
    loaded = [
        attrs.get("src") or attrs.get("href")
        for tag, attrs in elements.elements
        if tag in ("script", "link", "img")
    ]
    assert sorted(map(str, loaded)) == sorted(STATIC_FILES)
    assert all(each[:1] in "#/" and each[:2] != "//" for each in elements.attributes("href"))


async def test_the_policy_allows_no_inline_code_and_the_page_has_none(api: ApiBench) -> None:
    reply = await call(api.app, "GET", "/docs")
    policy = dict(
        directive.strip().split(" ", 1)
        for directive in reply.headers["content-security-policy"].split(";")
    )
    assert policy.pop("default-src") == "'none'"
    for name in ("script-src", "style-src", "img-src", "connect-src"):
        assert policy.pop(name) == "'self'"
    assert set(policy) == {
        "base-uri",
        "form-action",
        "frame-ancestors",
        "require-trusted-types-for",
        "trusted-types",
    }
    elements = Elements(reply.content.decode())
    assert elements.inline == []
    assert elements.attributes("style") == []
    assert not [name for _, attrs in elements.elements for name in attrs if name.startswith("on")]


@pytest.mark.parametrize(("path", "media"), STATIC_FILES.items())
async def test_the_files_of_the_page_are_served_to_everyone(
    api: ApiBench, path: str, media: str
) -> None:
    reply = await call(api.app, "GET", path)
    assert (reply.status, reply.headers["content-type"]) == (200, media)
    assert reply.headers["x-content-type-options"] == "nosniff"
    text = reply.content.decode().replace("http://www.w3.org/2000/svg", "")
    for other_origin in ("//cdn", "http:", "https:", "url(", "@import", "import "):
        assert other_origin not in text
    for markup_from_text in ("innerHTML", "outerHTML", "insertAdjacentHTML", "eval("):
        assert markup_from_text not in text


async def test_every_field_has_a_label_and_every_link_a_target(api: ApiBench) -> None:
    elements = Elements(await page(api))
    ids = elements.attributes("id")
    assert len(set(ids)) == len(ids)
    fields = [attrs["id"] for tag, attrs in elements.elements if tag in FIELDS]
    assert sorted(map(str, fields)) == sorted(elements.attributes("for"))
    targets = {each[1:] for each in elements.attributes("href") if each.startswith("#")}
    # A link to nothing closes the menu on narrow screens.
    assert targets - set(ids) == {"closed"}
    assert all(name in ids for name in elements.attributes("aria-describedby"))


async def test_the_menu_begins_with_v1_and_closes_the_operations_that_repeat_it(
    api: ApiBench,
) -> None:
    menu = (await page(api)).partition("<nav")[2].partition("</nav>")[0]
    assert re.findall(r"<details( open)?><summary>([^<]*)</summary>", menu) == [
        (" open", "Timers v1"),
        ("", "Timers v1, named in the body"),
        (" open", "Operations v1"),
        (" open", "Namespaces v1"),
        (" open", "Keys v1"),
        (" open", "Secrets v1"),
        (" open", "Audit log v1"),
        (" open", "Web UI v1"),
        (" open", "Platform timers"),
        (" open", "Service"),
    ]
    first, second = (re.findall(r'<li><a href="#(\w+)', part) for part in menu.split("</ul>")[:2])
    assert first[0] == "createTimerV1"
    assert {"cancelTimerV1", "deleteTimerV1", "createTimersV1"} <= set(first)
    assert second == [
        "upsertTimerV1",
        "getSelectedTimerV1",
        "updateSelectedTimerV1",
        "cancelSelectedTimerV1",
        "deleteSelectedTimerV1",
    ]


async def test_every_operation_has_a_form_with_its_example(api: ApiBench) -> None:
    html = await page(api)
    document: Any = openapi_document()
    for path, item in document["paths"].items():
        for method, details in item.items():
            section = html.partition(f'<section id="{details["operationId"]}">')[2]
            form = section.partition("<form ")[2].partition("</form>")[0]
            assert f'data-method="{method.upper()}" data-path="{path}"' in form
            assert ("data-needs-key" in form) == (details.get("security") != [])
            assert ("<textarea" in form) == ("requestBody" in details)
            for parameter in details.get("parameters", []):
                assert f'name="{parameter["name"]}" data-in={parameter["in"]}' in form


async def test_what_cannot_be_undone_is_asked_first(api: ApiBench) -> None:
    forms = re.findall(r'<form data-method="(\w+)" data-path="([^"]*)"([^>]*)>', await page(api))
    asking = {(method, path) for method, path, rest in forms if "data-asks-first" in rest}
    assert {(method, path) for method, path, _ in forms if method == "DELETE"} < asking
    assert {path for method, path in asking if method != "DELETE"} == {
        "/api/v1/operations",
        "/api/v1/timers/cancel",
        "/api/v1/timers/delete",
        "/api/v1/timers/redrive",
        "/api/v1/timers/{namespace}/{timerId}/cancel",
    }


async def test_the_first_command_is_a_create_with_an_own_id_that_can_be_repeated(
    api: ApiBench,
) -> None:
    html = unescape(await page(api))
    command = html.partition("<pre>")[2].partition("</pre>")[0]
    assert command.startswith("curl -X POST http://timers.example:8080/api/v1/timers ")
    body = json.loads(command.partition("-d '")[2].removesuffix("'"))
    assert {"id", "executeIn", "callbackUrl"} <= body.keys()
    for expected in ("created", "existing"):
        reply = await api.request("POST", "/api/v1/timers", body)
        assert (reply.status, reply.headers["timer-existence"]) == (200, expected)


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
    assert "curl -X PUT http://timers.example:8080/api/v1/timers/default/order-1042-expiry" in html
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
