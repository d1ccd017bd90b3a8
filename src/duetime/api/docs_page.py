"""The docs page: one HTML page made from the OpenAPI document, with nothing to load."""

import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from msgspec import json
from starlette.types import Scope

from duetime.api.answers import Answer, Headers
from duetime.api.docs_style import STYLE
from duetime.api.openapi import openapi_document
from duetime.domain.instants import Instant, format_instant, plus_ms

EXAMPLE_DELAY_MS = 3_600_000

_HEADERS: Headers = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'"),
    (b"cache-control", b"no-cache"),
)
_HOST = re.compile(rb"[A-Za-z0-9.\-]{1,253}(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:[0-9]{1,5})?")

_CALLBACKS = (
    "At its instant the timer's callback is made: a POST to its URL with its payload as the body "
    "and its headers. Three headers come with it. `webhook-id` names the firing and is the same "
    "in every repeat of it, so remember it and ignore one you have handled. `webhook-timestamp` "
    "is when this attempt was sent, in seconds since 1970 UTC. `Timer-Attempt` is 1 for the "
    "first attempt, then 2, 3 and so on. Any 2xx answer completes the timer; anything else is a "
    "failure, which is tried again if there is a `retry_policy`."
)

# OpenAPI is JSON of many shapes; its typed reading is not worth it for one page.
Json = Mapping[str, Any]


def docs_answer(scope: Scope, now: Instant) -> Answer:
    """The page, with commands that work when pasted: this server, and an instant to come."""
    return Answer(200, render(_base_url(scope), now).encode(), _HEADERS)


def render(base_url: str, now: Instant) -> str:
    document: Json = openapi_document()
    execute_at = format_instant(plus_ms(Instant(now - now % 1_000_000), EXAMPLE_DELAY_MS))
    info = document["info"]
    operations = list(_operations(document))
    links = "".join(
        f'<a href="#{operation["operationId"]}">{_badge(method)} {escape(operation["summary"])}</a>'
        for _, method, operation, _ in operations
    )
    sections = "".join(
        _section(path, method, operation, parameters, base_url, execute_at)
        for path, method, operation, parameters in operations
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(info['title'])} API</title><style>{STYLE}</style></head><body>"
        f"<nav><strong>{escape(info['title'])}</strong> <small>{escape(info['version'])}</small>"
        f'{links}<a href="#callbacks">The callback</a>'
        '<a href="/openapi.json">OpenAPI document</a></nav>'
        f"<main><header><h1>{escape(info['title'])} API</h1>"
        f"<p class=lead>{escape(info['summary'])}</p><p>{_prose(info['description'])}</p>"
        "<p>Send your key with every request: <code>X-API-Key: $API_KEY</code>. "
        "The commands below read it from your shell: <code>export API_KEY=...</code></p></header>"
        f"{sections}<section id=callbacks><h2>The callback</h2><p>{_prose(_CALLBACKS)}</p>"
        "</section></main></body></html>"
    )


def _operations(document: Json) -> Iterator[tuple[str, str, Json, list[Json]]]:
    for path, item in document["paths"].items():
        shared = item.get("parameters", [])
        for method, operation in item.items():
            if method != "parameters":
                yield path, method, operation, [*shared, *operation.get("parameters", [])]


def _section(
    path: str, method: str, operation: Json, parameters: list[Json], base_url: str, execute_at: str
) -> str:
    parts = [
        f'<section id="{operation["operationId"]}"><h2>{escape(operation["summary"])}</h2>'
        f"<p class=path>{_badge(method)} <code>{escape(path)}</code></p>"
    ]
    if "description" in operation:
        parts.append(f"<p>{_prose(operation['description'])}</p>")
    if parameters:
        rows = "".join(_row(p["name"], p["schema"], p) for p in parameters)
        parts.append(f"<h3>Parameters</h3>{_table(rows)}")
    if "requestBody" in operation:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        description = _prose(_resolved(schema).get("description", ""))
        parts.append(f"<h3>Body</h3><p>{description}</p>{_table(_member_rows(schema, ''))}")
    command = _curl(path, method, operation, parameters, base_url, execute_at)
    parts.append(f"<h3>Try it</h3><pre>{escape(command)}</pre>")
    parts.append(f"<h3>Fields of the answer</h3>{_table(_answer_rows(operation))}")
    parts.append("<h3>Answers</h3>")
    parts.extend(_answer(status, answer) for status, answer in operation["responses"].items())
    parts.append("</section>")
    return "".join(parts)


def _curl(
    path: str, method: str, operation: Json, parameters: list[Json], base_url: str, execute_at: str
) -> str:
    for parameter in parameters:
        if parameter["in"] == "path":
            path = path.replace("{" + parameter["name"] + "}", parameter["example"])
    verb = "" if method == "get" else f"-X {method.upper()} "
    lines = [f"curl {verb}{base_url}{path}"]
    if operation.get("security") != []:
        lines.append('-H "X-API-Key: $API_KEY"')
    if "requestBody" in operation:
        content = operation["requestBody"]["content"]["application/json"]
        example = dict(next(iter(content["examples"].values()))["value"])
        example.pop("idempotency_key", None)
        example["execute_at"] = execute_at
        lines.append("-H 'Content-Type: application/json'")
        lines.append(f"-d '{_pretty(example)}'")
    return " \\\n  ".join(lines)


def _answer(status: str, answer: Json) -> str:
    examples = answer["content"]["application/json"]["examples"]
    shown = "".join(
        f"<pre>{escape(_pretty(example['value']))}</pre>" for example in examples.values()
    )
    kind = "ok" if status < "300" else "bad"
    return (
        f"<details><summary><span class={kind}>{status}</span> "
        f"{escape(answer['description'])}</summary>{shown}</details>"
    )


def _answer_rows(operation: Json) -> str:
    """The members of `data` when all goes well; every such answer of an operation has them."""
    success = next(answer for status, answer in operation["responses"].items() if status < "300")
    envelope = success["content"]["application/json"]["schema"]
    return _member_rows(envelope["properties"]["data"], "data.", given_by_client=False)


def _member_rows(schema: Json, prefix: str, given_by_client: bool = True) -> str:
    """A row per member; those of objects inside follow their owner under a dotted name."""
    rows = []
    resolved = _resolved(schema)
    for name, member in resolved["properties"].items():
        required = given_by_client and name in resolved["required"]
        rows.append(_row(prefix + name, member, {"required": required}))
        for option in _options(member):
            inner = option.get("items", option)
            if "$ref" in inner:
                rows.append(_heading_row(name, _resolved(inner)))
                suffix = "[]." if "items" in option else "."
                rows.append(_member_rows(inner, prefix + name + suffix, given_by_client))
    return "".join(rows)


def _heading_row(name: str, schema: Json) -> str:
    """What the object that follows is, or nothing if there is nothing to tell."""
    types = schema["properties"].get("type", {}).get("enum")
    parts = [f"{escape(name)} of type {escape(types[0])}"] if types else []
    if "description" in schema:
        parts.append(_prose(schema["description"]))
    return f"<tr><th colspan=3>{': '.join(parts)}</th></tr>" if parts else ""


def _row(name: str, schema: Json, details: Json) -> str:
    description = details.get("description") or schema.get("description", "")
    notes = [_prose(description)] if description else []
    if "enum" in schema:
        notes.append(
            "One of " + ", ".join(f"<code>{escape(str(v))}</code>" for v in schema["enum"])
        )
    if "maximum" in schema and schema["maximum"] < 2**31:
        notes.append(f"From {schema['minimum']} to {schema['maximum']}.")
    if schema.get("default") is not None:
        notes.append(f"Default <code>{escape(str(schema['default']))}</code>.")
    required = "<em>required</em>" if details.get("required") else ""
    return (
        f"<tr><td><code>{escape(name)}</code> {required}</td>"
        f"<td>{escape(_type(schema))}</td><td>{' '.join(notes)}</td></tr>"
    )


def _type(schema: Json) -> str:
    names = []
    for option in _options(schema):
        if "$ref" in option:
            names.append("object")
        elif "enum" in option and "type" not in option:
            names.append("string")
        else:
            names.append(option.get("format") or option.get("type", "any JSON"))
    return " or ".join(dict.fromkeys(names))


def _options(schema: Json) -> list[Json]:
    options: list[Json] = schema.get("anyOf", [schema])
    return options


def _resolved(schema: Json) -> Json:
    if "$ref" not in schema:
        return schema
    document: Json = openapi_document()
    found: Json = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found


def _table(rows: str) -> str:
    return f"<div class=wide><table>{rows}</table></div>"


def _badge(method: str) -> str:
    return f'<span class="method {method}">{method.upper()}</span>'


def _prose(text: str) -> str:
    """Escaped, with `code` marked up."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))


def _pretty(value: object) -> str:
    return json.format(json.encode(value), indent=2).decode()


def _base_url(scope: Scope) -> str:
    host = dict(scope["headers"]).get(b"host", b"")
    known = host.decode() if _HOST.fullmatch(host) else "localhost:8080"
    return f"{'https' if scope['scheme'] == 'https' else 'http'}://{known}"
