"""The OpenAPI document and the page made from it."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from msgspec.structs import replace

from duetime.api.openapi import openapi_document
from duetime.api.openapi_examples import CREATE, UPDATE
from duetime.api.platform_types import ClusterStatus
from tests.unit.api.asgi_client import ApiBench, call

ANSWERS = {
    ("/timers", "post"): {"200", "201", "400", "401", "409", "413", "500"},
    ("/timers", "get"): {"200", "400", "401", "500"},
    ("/timers/{id}", "get"): {"200", "400", "401", "404", "500"},
    ("/timers/{id}", "put"): {"200", "400", "401", "404", "413", "500"},
    ("/timers/{id}", "delete"): {"200", "400", "401", "404", "500"},
    ("/healthz", "get"): {"200", "500"},
}


async def document(api: ApiBench) -> Any:
    reply = await call(api.app, "GET", "/openapi.json")
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    return reply.json


async def test_every_path_and_answer_is_described(api: ApiBench) -> None:
    described = {
        (path, method): set(operation["responses"])
        for path, item in (await document(api))["paths"].items()
        for method, operation in item.items()
        if method != "parameters"
    }
    assert described == ANSWERS


async def test_the_document_is_valid(api: ApiBench) -> None:
    validator = pytest.importorskip("openapi_spec_validator")
    validator.validate(await document(api))


async def test_every_reference_leads_somewhere(api: ApiBench) -> None:
    served = await document(api)
    names = re.findall(r"'#/components/schemas/(\w+)'", str(served))
    assert set(names) <= set(served["components"]["schemas"])
    assert served["paths"]["/healthz"]["get"]["security"] == []
    assert served["security"] == [{"apiKey": []}]


async def test_the_examples_are_accepted(api: ApiBench) -> None:
    created = await api.request("POST", "/timers", CREATE)
    assert created.status == 201
    assert (await api.request("PUT", f"/timers/{created.data['id']}", UPDATE)).status == 200


async def test_the_examples_have_the_members_of_real_answers(api: ApiBench) -> None:
    created = await api.request("POST", "/timers", CREATE)
    path = f"/timers/{created.data['id']}"
    api.engine = replace(api.engine, cluster=ClusterStatus("node", 1, 16, 0.1, False))
    real = {
        ("/timers", "post", "201"): created,
        ("/timers", "get", "200"): await api.request("GET", "/timers"),
        ("/timers/{id}", "get", "200"): await api.request("GET", path),
        ("/timers/{id}", "put", "200"): await api.request("PUT", path, UPDATE),
        ("/timers/{id}", "delete", "200"): await api.request("DELETE", path),
        ("/healthz", "get", "200"): await api.request("GET", "/healthz"),
    }
    served: Any = openapi_document()
    for (route, method, status), reply in real.items():
        content = served["paths"][route][method]["responses"][status]["content"]
        shown = content["application/json"]["examples"]["Success"]["value"]
        assert list(shown["data"]) == list(reply.data), route
        assert shown["message"] == reply.json["message"]


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


async def test_the_page_needs_nothing_from_elsewhere(api: ApiBench) -> None:
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
    for path, method in ANSWERS:
        assert f"{method.upper()}</span> <code>{path}</code>" in html
    for field in (
        "execute_at",
        "callback.url",
        "callback.topic",
        "retry_policy.max_retries",
        "limit",
    ):
        assert f"<code>{field}</code>" in html
    assert "curl -X POST http://timers.example:8080/timers" in html
    assert "&quot;execute_at&quot;: &quot;2030-01-01T01:00:00Z&quot;" in html
    assert "X-API-Key: $API_KEY" in html


@pytest.mark.parametrize("host", [b"", b"<script>", b"a b", b"x" * 300, b"\xff", b"a';rm -rf /'"])
async def test_a_strange_host_is_not_repeated(api: ApiBench, host: bytes) -> None:
    assert "http://localhost:8080/timers" in await page(api, host)
