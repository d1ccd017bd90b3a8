"""From the types of a door to the schemas of its part of the OpenAPI document."""

from collections.abc import Iterable
from typing import Any

from msgspec import json

Schemas = dict[str, Any]


def schemas_of(types: Iterable[type], prefix: str = "") -> Schemas:
    """The schemas of the types and of all they refer to, by name. The prefix tells the types of
    one door from those of another that have the same name."""
    template = f"#/components/schemas/{prefix}{{name}}"
    _, found = json.schema_components(types, ref_template=template)
    return {
        prefix + name: _tidy(schema) | {"title": prefix + name} for name, schema in found.items()
    }


def refuse_together(schema: Schemas, *pairs: tuple[str, str]) -> None:
    """Say of members that mean the same that only one of them may be given."""
    schema["not"] = {"anyOf": [{"required": list(pair)} for pair in pairs]}


def _tidy(schema: Any) -> Any:
    """The same schema, in the words that generators of clients understand best.

    Choices say that they are strings, and "anything, or null" is anything. A default of null
    goes: null is what absence means, and a client need not send it.
    """
    if isinstance(schema, list):
        return [_tidy(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    tidied = {
        name: value if name in ("examples", "enum", "required") else _tidy(value)
        for name, value in schema.items()
        if not (name == "default" and value is None)
    }
    if all(isinstance(choice, str) for choice in tidied.get("enum", [0])):
        tidied.setdefault("type", "string")
    if {} in tidied.get("anyOf", []):
        del tidied["anyOf"]
    return tidied
