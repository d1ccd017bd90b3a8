"""Commands and examples on the docs page, to be read and copied."""

import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, NamedTuple

from msgspec import json

# The page is made once. These are replaced for each visitor.
BASE_URL, EXECUTE_AT = "@base-url@", "@execute-at@"

# OpenAPI is JSON of many shapes. Types for them are not worth it for one page.
Json = Mapping[str, Any]


class Operation(NamedTuple):
    path: str
    method: str
    details: Json

    @property
    def id(self) -> str:
        id: str = self.details["operationId"]
        return id

    @property
    def parameters(self) -> list[Json]:
        parameters: list[Json] = self.details.get("parameters", [])
        return parameters

    @property
    def needs_key(self) -> bool:
        return self.details.get("security") != []

    @property
    def media(self) -> str | None:
        """The media type of the body, if there is one."""
        body: Json = self.details.get("requestBody", {})
        return next(iter(body.get("content", {})), None)

    def body_examples(self) -> dict[str, str]:
        """The examples of the body by name, ready to be sent."""
        if self.media is None:
            return {}
        content: Json = self.details["requestBody"]["content"][self.media]
        return {
            name: shown(_made_current(example["value"]))
            for name, example in content["examples"].items()
        }


def operations_of(document: Json) -> Iterator[Operation]:
    for path, item in document["paths"].items():
        for method, details in item.items():
            yield Operation(path, method, details)


def code_block(text: str, subject: str, id: str = "") -> str:
    """`subject` says to screen readers what the button copies."""
    named = f' id="{id}"' if id else ""
    return (
        f"<div class=code><pre{named}>{escape(text)}</pre>"
        f'<button type=button class="copy js" aria-label="Copy {escape(subject)}">Copy</button>'
        "</div>"
    )


def curl(operation: Operation) -> str:
    path = operation.path
    for parameter in operation.parameters:
        if parameter["in"] == "path":
            path = path.replace("{" + parameter["name"] + "}", parameter["example"])
    verb = "" if operation.method == "get" else f"-X {operation.method.upper()} "
    lines = [f"curl {verb}{BASE_URL}{path}"]
    if operation.needs_key:
        lines.append('-H "X-API-Key: $API_KEY"')
    if operation.media is not None:
        lines.append(f"-H 'Content-Type: {operation.media}'")
        option = "-d" if operation.media == "application/json" else "--data-binary"
        lines.append(f"{option} '{next(iter(operation.body_examples().values()))}'")
    return " \\\n  ".join(lines)


def shown(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.format(json.encode(value), indent=2).decode()


def _made_current(example: Any) -> Any:
    """The example with a future instant, and without a key that works only once."""
    if isinstance(example, str):
        return re.sub(r'("executeAt": )"[^"]*Z"', rf'\1"{EXECUTE_AT}"', example)
    if isinstance(example, list):
        return [_made_current(each) for each in example]
    if not isinstance(example, dict):
        return example
    return {
        name: EXECUTE_AT if name in ("execute_at", "executeAt", "expiresAt") else _member(value)
        for name, value in example.items()
        if name != "idempotency_key"
    }


def _member(value: Any) -> Any:
    return value if isinstance(value, str) else _made_current(value)
