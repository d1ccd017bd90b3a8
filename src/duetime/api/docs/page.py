"""The docs page: one HTML page made from the OpenAPI document, which loads nothing else."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from html import escape
from typing import Any, NamedTuple

from msgspec import json
from starlette.types import Scope

from duetime.api.docs.tables import answer_table, body_table, parameter_table, prose
from duetime.api.http.answers import Answer, Headers
from duetime.api.openapi.document import openapi_document
from duetime.domain.defaults import DEFAULT_PORT
from duetime.domain.instants import Instant, format_instant, plus_ms

EXAMPLE_DELAY_MS = 3_600_000

_BASE_URL, _EXECUTE_AT = "@base-url@", "@execute-at@"

_HEADERS: Headers = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'"),
    (b"cache-control", b"no-cache"),
)
_HOST = re.compile(rb"[A-Za-z0-9.\-]{1,253}(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:[0-9]{1,5})?")

# OpenAPI is JSON of many shapes. Types for them are not worth it for one page.
Json = Mapping[str, Any]

_STYLE = """
:root{color-scheme:light dark;--ink:#1c2430;--soft:#5b6778;--paper:#fff;--raised:#f5f7fa;
--line:#dfe4ea;--accent:#1f5fd6;--ok:#13795b;--bad:#b3261e}
@media(prefers-color-scheme:dark){:root{--ink:#e4e9f0;--soft:#9aa7b8;--paper:#12161c;
--raised:#1a2029;--line:#2c3542;--accent:#7fb0ff;--ok:#56c596;--bad:#ff8a80}}
*{box-sizing:border-box}
html{scroll-behavior:smooth;scroll-padding-top:1rem}
body{margin:0;display:grid;grid-template-columns:16rem minmax(0,1fr);color:var(--ink);
background:var(--paper);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
nav{position:sticky;top:0;height:100vh;overflow:auto;padding:1.5rem 1rem;
border-right:1px solid var(--line);background:var(--raised)}
nav strong{font-size:1.2rem}nav small{color:var(--soft)}
nav b{display:block;margin:1.2rem 0 .2rem;padding:0 .5rem;font-size:.75rem;color:var(--soft);
text-transform:uppercase;letter-spacing:.06em}
nav a{display:block;padding:.35rem .5rem;margin-top:.15rem;border-radius:6px;color:inherit;
text-decoration:none;font-size:.92rem}
nav a:hover,nav a:focus-visible{background:var(--line)}
main{max-width:56rem;width:100%;padding:2rem clamp(1rem,4vw,3rem) 6rem}
h1{font-size:2rem;line-height:1.2;margin:0}
h2{font-size:1.7rem;margin:0 0 .5rem}
h3{font-size:1.3rem;margin:0 0 .5rem}
h4{font-size:.8rem;margin:1.4rem 0 .5rem;color:var(--soft);text-transform:uppercase;
letter-spacing:.06em}
.lead{font-size:1.15rem;color:var(--soft);margin:.3rem 0 1rem}
.group{border-top:3px solid var(--accent);margin-top:4rem;padding-top:1.5rem}
section{border-top:1px solid var(--line);margin-top:2.5rem;padding-top:2rem}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.88em}
code{background:var(--raised);border:1px solid var(--line);border-radius:4px;padding:.05em .3em}
.path code{font-size:1rem;border:0;background:none}
pre{background:var(--raised);border:1px solid var(--line);border-radius:8px;padding:.9rem 1rem;
overflow:auto;margin:.4rem 0;line-height:1.45}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.92rem}
td,th{padding:.5rem .6rem .5rem 0;border-bottom:1px solid var(--line);text-align:left;
vertical-align:top}
th{padding-top:1rem;color:var(--soft);font-weight:600}
td:first-child{white-space:nowrap}td:nth-child(2){color:var(--soft);white-space:nowrap}
em{color:var(--bad);font-style:normal;font-size:.78rem}
details{border-bottom:1px solid var(--line);padding:.45rem 0}
summary{cursor:pointer}
.ok,.bad{font-weight:700;margin:0 .4rem}.ok{color:var(--ok)}.bad{color:var(--bad)}
.method{display:inline-block;min-width:3.6rem;text-align:center;font-size:.7rem;font-weight:700;
padding:.1rem .35rem;border-radius:4px;color:#fff;background:#48566a}
.get{background:#1f5fd6}.post{background:#13795b}.put{background:#8a5a00}.delete{background:#b3261e}
@media(max-width:48rem){body{display:block}nav{position:static;height:auto;border-right:0;
border-bottom:1px solid var(--line)}}
"""


class _Operation(NamedTuple):
    path: str
    method: str
    details: Json


def docs_answer(scope: Scope, now: Instant) -> Answer:
    """The page, with commands that work when pasted: for this server and a future instant."""
    return Answer(200, render(_base_url(scope), now).encode(), _HEADERS)


def render(base_url: str, now: Instant) -> str:
    execute_at = format_instant(plus_ms(Instant(now - now % 1_000_000), EXAMPLE_DELAY_MS))
    return _page().replace(_BASE_URL, escape(base_url)).replace(_EXECUTE_AT, execute_at)


@cache
def _page() -> str:
    """The page with placeholders for the server and the instant. It is made once, because making
    it takes longer than a timer may be late."""
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
        f"<title>{escape(info['title'])} API</title><style>{_STYLE}</style></head><body>"
        f"<nav><strong>{escape(info['title'])}</strong> <small>{escape(info['version'])}</small>"
        f'{"".join(links)}<b>More</b><a href="/openapi.json">OpenAPI document</a>'
        '<a href="/asyncapi.json">AsyncAPI document of the bus</a></nav>'
        f"<main><header><h1>{escape(info['title'])} API</h1>"
        f"<p class=lead>{escape(info['summary'])}</p><p>{prose(info['description'])}</p>"
        "<p>Send your key with every request: <code>X-API-Key: $API_KEY</code>. "
        "The commands below read it from your shell: <code>export API_KEY=...</code></p></header>"
        f"{''.join(groups)}</main></body></html>"
    )


def _operations(document: Json) -> Iterator[_Operation]:
    for path, item in document["paths"].items():
        for method, details in item.items():
            yield _Operation(path, method, details)


def _links(tag: Json, operations: list[_Operation]) -> str:
    """The part of the navigation for one tag."""
    links = [
        f'<a href="#{each.details["operationId"]}">'
        f"{_badge(each.method)} {escape(each.details['summary'])}</a>"
        for each in operations
    ]
    if _callback(operations) is not None:
        links.append(f'<a href="#{_callback_id(tag)}">The callback</a>')
    return f"<b>{escape(tag['name'])}</b>{''.join(links)}"


def _group(tag: Json, operations: list[_Operation]) -> str:
    sections = [_section(each) for each in operations]
    callback = _callback(operations)
    if callback is not None:
        sections.append(_callback_section(_callback_id(tag), callback))
    return (
        f"<div class=group><h2>{escape(tag['name'])}</h2><p>{prose(tag['description'])}</p>"
        f"{''.join(sections)}</div>"
    )


def _section(operation: _Operation) -> str:
    details = operation.details
    parts = [
        f'<section id="{details["operationId"]}"><h3>{escape(details["summary"])}</h3>'
        f"<p class=path>{_badge(operation.method)} <code>{escape(operation.path)}</code></p>"
    ]
    if "description" in details:
        parts.append(f"<p>{prose(details['description'])}</p>")
    if "parameters" in details:
        parts.append(f"<h4>Parameters</h4>{parameter_table(details['parameters'])}")
    if "requestBody" in details:
        parts.append(f"<h4>Body</h4>{body_table(details['requestBody'])}")
    parts.append(f"<h4>Try it</h4><pre>{escape(_curl(operation))}</pre>")
    parts.append(answer_table(details["responses"]))
    parts.append("<h4>Answers</h4>")
    parts.extend(_answer(status, answer) for status, answer in details["responses"].items())
    parts.append("</section>")
    return "".join(parts)


def _callback(operations: list[_Operation]) -> Json | None:
    """The callback of the timers of these operations, which is the same for all of them."""
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


def _curl(operation: _Operation) -> str:
    path = operation.path
    for parameter in operation.details.get("parameters", []):
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
        lines.append(f"-d '{_shown(_made_current(example))}'")
    return " \\\n  ".join(lines)


def _made_current(example: Any) -> Any:
    """The example with a future instant, and without a key that works only once."""
    if isinstance(example, str):
        return re.sub(r'("executeAt": )"[^"]*Z"', rf'\1"{_EXECUTE_AT}"', example)
    if isinstance(example, list):
        return [_made_current(each) for each in example]
    if not isinstance(example, dict):
        return example
    return {
        name: _EXECUTE_AT if name in ("execute_at", "executeAt") else _member(value)
        for name, value in example.items()
        if name != "idempotency_key"
    }


def _member(value: Any) -> Any:
    return value if isinstance(value, str) else _made_current(value)


def _answer(status: str, answer: Json) -> str:
    kind = "ok" if status < "3" else "bad"
    return (
        f"<details><summary><span class={kind}>{status}</span> "
        f"{escape(answer['description'])}</summary>{_examples(answer)}</details>"
    )


def _examples(owner: Json) -> str:
    """The examples of a body, if there is one."""
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
    known = host.decode() if _HOST.fullmatch(host) else f"localhost:{DEFAULT_PORT}"
    return f"{'https' if scope['scheme'] == 'https' else 'http'}://{known}"
