"""The docs page: one HTML page made from the OpenAPI document, with nothing to load."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from html import escape
from typing import Any, NamedTuple

from msgspec import json
from starlette.types import Scope

from duetime.api.docs.style import STYLE
from duetime.api.docs.tables import answer_table, body_table, parameter_table, prose
from duetime.api.http.answers import Answer, Headers
from duetime.api.openapi.document import openapi_document
from duetime.domain.instants import Instant, format_instant, plus_ms

EXAMPLE_DELAY_MS = 3_600_000

_BASE_URL, _EXECUTE_AT = "@base-url@", "@execute-at@"

_HEADERS: Headers = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'"),
    (b"cache-control", b"no-cache"),
)
_HOST = re.compile(rb"[A-Za-z0-9.\-]{1,253}(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:[0-9]{1,5})?")

# OpenAPI is JSON of many shapes; its typed reading is not worth it for one page.
Json = Mapping[str, Any]


class Operation(NamedTuple):
    path: str
    method: str
    details: Json
    parameters: list[Json]


def docs_answer(scope: Scope, now: Instant) -> Answer:
    """The page, with commands that work when pasted: this server, and an instant to come."""
    return Answer(200, render(_base_url(scope), now).encode(), _HEADERS)


def render(base_url: str, now: Instant) -> str:
    execute_at = format_instant(plus_ms(Instant(now - now % 1_000_000), EXAMPLE_DELAY_MS))
    return _page().replace(_BASE_URL, escape(base_url)).replace(_EXECUTE_AT, execute_at)


@cache
def _page() -> str:
    """The page with gaps for what differs each time. Made once: it takes longer than a timer
    may be late."""
    document: Json = openapi_document()
    info, operations = document["info"], list(_operations(document))
    links, groups = [], []
    for tag in document["tags"]:
        mine = [each for each in operations if tag["name"] in each.details["tags"]]
        links.append(_links(tag, mine))
        groups.append(_group(tag, mine))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(info['title'])} API</title><style>{STYLE}</style></head><body>"
        f"<nav><strong>{escape(info['title'])}</strong> <small>{escape(info['version'])}</small>"
        f'{"".join(links)}<b>More</b><a href="/openapi.json">OpenAPI document</a>'
        '<a href="/asyncapi.json">AsyncAPI document of the bus</a></nav>'
        f"<main><header><h1>{escape(info['title'])} API</h1>"
        f"<p class=lead>{escape(info['summary'])}</p><p>{prose(info['description'])}</p>"
        "<p>Send your key with every request: <code>X-API-Key: $API_KEY</code>. "
        "The commands below read it from your shell: <code>export API_KEY=...</code></p></header>"
        f"{''.join(groups)}</main></body></html>"
    )


def _operations(document: Json) -> Iterator[Operation]:
    for path, item in document["paths"].items():
        shared = item.get("parameters", [])
        for method, details in item.items():
            if method != "parameters":
                parameters = [*shared, *details.get("parameters", [])]
                yield Operation(path, method, details, parameters)


def _links(tag: Json, operations: list[Operation]) -> str:
    """A tag's part of the navigation."""
    links = [
        f'<a href="#{each.details["operationId"]}">'
        f"{_badge(each.method)} {escape(each.details['summary'])}</a>"
        for each in operations
    ]
    if _callback(operations) is not None:
        links.append(f'<a href="#{_callback_id(tag)}">The callback</a>')
    return f"<b>{escape(tag['name'])}</b>{''.join(links)}"


def _group(tag: Json, operations: list[Operation]) -> str:
    sections = [_section(each) for each in operations]
    callback = _callback(operations)
    if callback is not None:
        sections.append(_callback_section(_callback_id(tag), callback))
    return (
        f"<div class=group><h2>{escape(tag['name'])}</h2><p>{prose(tag['description'])}</p>"
        f"{''.join(sections)}</div>"
    )


def _section(operation: Operation) -> str:
    details = operation.details
    parts = [
        f'<section id="{details["operationId"]}"><h3>{escape(details["summary"])}</h3>'
        f"<p class=path>{_badge(operation.method)} <code>{escape(operation.path)}</code></p>"
    ]
    if "description" in details:
        parts.append(f"<p>{prose(details['description'])}</p>")
    if operation.parameters:
        parts.append(f"<h4>Parameters</h4>{parameter_table(operation.parameters)}")
    if "requestBody" in details:
        parts.append(f"<h4>Body</h4>{body_table(details['requestBody'])}")
    parts.append(f"<h4>Try it</h4><pre>{escape(_curl(operation))}</pre>")
    parts.append(answer_table(details["responses"]))
    parts.append("<h4>Answers</h4>")
    parts.extend(_answer(status, answer) for status, answer in details["responses"].items())
    parts.append("</section>")
    return "".join(parts)


def _callback(operations: list[Operation]) -> Json | None:
    """The request that is made for timers of these operations; they have one in common."""
    for operation in operations:
        for callback in operation.details.get("callbacks", {}).values():
            for item in callback.values():
                found: Json = item["post"]
                return found
    return None


def _callback_section(name: str, callback: Json) -> str:
    body = callback["requestBody"]
    answers = "".join(_answer(status, answer) for status, answer in callback["responses"].items())
    return (
        f'<section id="{name}"><h3>{escape(callback["summary"])}</h3>'
        f"<p>{prose(callback['description'])}</p>"
        f"<h4>Headers</h4>{parameter_table(callback['parameters'])}"
        f"<h4>Body</h4>{body_table(body, given_by_client=False)}{_examples(body)}"
        f"<h4>Answers</h4>{answers}</section>"
    )


def _curl(operation: Operation) -> str:
    path = operation.path
    for parameter in operation.parameters:
        if parameter["in"] == "path":
            path = path.replace("{" + parameter["name"] + "}", parameter["example"])
    verb = "" if operation.method == "get" else f"-X {operation.method.upper()} "
    lines = [f"curl {verb}{_BASE_URL}{path}"]
    if operation.details.get("security") != []:
        lines.append('-H "X-API-Key: $API_KEY"')
    if "requestBody" in operation.details:
        media, content = next(iter(operation.details["requestBody"]["content"].items()))
        example = next(iter(content["examples"].values()))["value"]
        lines.append(f"-H 'Content-Type: {media}'")
        lines.append(f"-d '{_shown(_to_come(example))}'")
    return " \\\n  ".join(lines)


def _to_come(example: Any) -> Any:
    """The example with an instant that has not passed, and without what works only once."""
    if isinstance(example, str):
        return re.sub(r'("executeAt": )"[^"]*Z"', rf'\1"{_EXECUTE_AT}"', example)
    if isinstance(example, list):
        return [_to_come(each) for each in example]
    if not isinstance(example, dict):
        return example
    return {
        name: _EXECUTE_AT if name in ("execute_at", "executeAt") else _member(value)
        for name, value in example.items()
        if name != "idempotency_key"
    }


def _member(value: Any) -> Any:
    return value if isinstance(value, str) else _to_come(value)


def _answer(status: str, answer: Json) -> str:
    kind = "ok" if status < "3" else "bad"
    return (
        f"<details><summary><span class={kind}>{status}</span> "
        f"{escape(answer['description'])}</summary>{_examples(answer)}</details>"
    )


def _examples(owner: Json) -> str:
    """What a body looks like; nothing when there is none."""
    for content in owner.get("content", {}).values():
        return "".join(
            f"<pre>{escape(_shown(example['value']))}</pre>"
            for example in content["examples"].values()
        )
    return ""


def _badge(method: str) -> str:
    return f'<span class="method {method}">{method.upper()}</span>'


def _callback_id(tag: Json) -> str:
    name: str = tag["name"]
    return f"callback-{name.lower().replace(' ', '-')}"


def _shown(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.format(json.encode(value), indent=2).decode()


def _base_url(scope: Scope) -> str:
    host = dict(scope["headers"]).get(b"host", b"")
    known = host.decode() if _HOST.fullmatch(host) else "localhost:8080"
    return f"{'https' if scope['scheme'] == 'https' else 'http'}://{known}"
