"""The docs page, made from the OpenAPI document. It loads its own style and script, and no more."""

from functools import cache
from html import escape

from starlette.types import Scope

from duetime.api.docs.code_blocks import (
    BASE_URL,
    EXECUTE_AT,
    Json,
    Operation,
    operations_of,
)
from duetime.api.docs.fields import paragraphs
from duetime.api.docs.sections import badge, callback_id, callback_of, group
from duetime.api.http.answers import Answer, Headers
from duetime.api.http.host import base_url_of
from duetime.api.openapi.document import openapi_document
from duetime.api.v1.routes.timers import TIMERS_NAMED_IN_THE_BODY
from duetime.domain.instants import Instant, format_instant, plus_ms

EXAMPLE_DELAY_MS = 3_600_000

# Trusted types keep text from becoming markup even if the script had a fault.
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    b"require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS: Headers = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", _POLICY),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-cache"),
)


def docs_answer(scope: Scope, now: Instant) -> Answer:
    """The page, with commands that work when pasted: for this server and a future instant."""
    return Answer(200, render(base_url_of(scope), now).encode(), _HEADERS)


def render(base_url: str, now: Instant) -> str:
    execute_at = format_instant(plus_ms(Instant(now - now % 1_000_000), EXAMPLE_DELAY_MS))
    return _page().replace(BASE_URL, escape(base_url)).replace(EXECUTE_AT, execute_at)


@cache
def _page() -> str:
    """The page with placeholders for the server and the instant. It is made once, because making
    it takes longer than a timer may be late."""
    document: Json = openapi_document()
    info, operations = document["info"], list(operations_of(document))
    menu, groups, callbacks = [], [], []
    for tag in document["tags"]:
        mine = [each for each in operations if tag["name"] in each.details["tags"]]
        callback = callback_of(mine)
        if callback in callbacks:
            callback = None
        callbacks.append(callback)
        menu.append(_menu_group(tag, mine, callback))
        groups.append(group(tag, mine, callback))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(info['title'])} API</title>"
        '<link rel="icon" href="/docs/icon.svg"><link rel="stylesheet" href="/docs/docs.css">'
        '<script type="module" src="/docs/docs.js"></script></head><body id=top>'
        f"{_bar(info)}{_menu(menu)}<main id=content><div class=intro>{_intro(info)}</div>"
        f"{''.join(groups)}</main></body></html>"
    )


def _bar(info: Json) -> str:
    return (
        '<header class=bar><a class=unseen href="#content">Skip to the content</a>'
        f'<a class=brand href="#top">{escape(info["title"])} '
        f"<small>{escape(info['version'])}</small></a>"
        '<a class=menu-link href="#menu">Menu</a>'
        "<form role=search class=js><label for=search class=unseen>Search the operations</label>"
        '<input id=search type=search placeholder="Search  /" aria-keyshortcuts="/" '
        "aria-describedby=found autocomplete=off spellcheck=false></form>"
        "<span id=found role=status></span></header>"
    )


def _menu(groups: list[str]) -> str:
    return (
        '<nav id=menu aria-label="Operations"><a class=menu-close href="#closed">Close the menu</a>'
        f"{''.join(groups)}<b>More</b><ul>"
        '<li><a href="/openapi.json">OpenAPI document</a></li>'
        '<li><a href="/asyncapi.json">AsyncAPI document of the bus</a></li></ul></nav>'
    )


def _menu_group(tag: Json, operations: list[Operation], callback: Json | None) -> str:
    """The menu's part for one tag. It is closed for the operations that name the timer in the body,
    because they repeat those above them."""
    links = [
        f'<li><a href="#{each.id}">{badge(each.method)} {escape(each.details["summary"])}</a></li>'
        for each in operations
    ]
    if callback is not None:
        links.append(f'<li><a href="#{callback_id(tag)}">The callback</a></li>')
    is_open = "" if tag["name"] == TIMERS_NAMED_IN_THE_BODY.name else " open"
    return (
        f"<details{is_open}><summary>{escape(tag['name'])}</summary>"
        f"<ul>{''.join(links)}</ul></details>"
    )


def _intro(info: Json) -> str:
    return (
        f"<h1>{escape(info['title'])} API</h1><p class=lead>{escape(info['summary'])}</p>"
        f"{paragraphs(info['description'])}"
        "<p>Send your key with every request: <code>X-API-Key: $API_KEY</code>, "
        "or <code>Authorization: Bearer $API_KEY</code>. "
        "The commands below read it from your shell: <code>export API_KEY=...</code></p>"
        '<div class="key js"><label for=api-key>API key for requests from this page</label>'
        "<input id=api-key type=password autocomplete=off spellcheck=false "
        "aria-describedby=key-note>"
        "<p id=key-note>It stays in this tab and is gone when you close it. Each operation below "
        "has a form: <b>Send a request</b>.</p></div>"
    )
