"""From the types of bodies to the schemas of the OpenAPI document."""

from collections.abc import Iterable
from typing import Any

from msgspec import json

from duetime.api.openapi.descriptions import describe
from duetime.api.v1.errors import ERRORS

Schemas = dict[str, Any]


def schema_name(body: type[Any]) -> str:
    """The prefix tells types of v1 from those of the platform API that have the same name."""
    return _prefix(body) + body.__name__


def schemas_of(types: Iterable[type[Any]]) -> Schemas:
    """The schemas of the types and of all types they refer to, by name."""
    by_prefix: dict[str, list[type[Any]]] = {}
    for each in types:
        by_prefix.setdefault(_prefix(each), []).append(each)
    schemas: Schemas = {}
    for prefix, group in by_prefix.items():
        template = f"#/components/schemas/{prefix}{{name}}"
        _, found = json.schema_components(group, ref_template=template)
        for name, schema in found.items():
            schemas[prefix + name] = _tidy(schema) | {"title": prefix + name}
    describe(schemas)
    _constrain(schemas)
    return schemas


def _prefix(body: type[Any]) -> str:
    return "V1" if body.__module__.startswith("duetime.api.v1.") else ""


def _constrain(schemas: Schemas) -> None:
    """Add the rules that types cannot express."""
    for name, count in (
        ("UpdateTimerBody", 1),
        ("V1UpdateBody", 1),
        ("V1SelectedUpdateBody", 2),
        ("V1RedriveBody", 1),
    ):
        schemas[name]["minProperties"] = count
    for name in ("V1ErrorAnswer", "V1ItemError", "V1LineError"):
        schemas[name]["properties"]["error"]["enum"] = list(ERRORS)
    for name, pair in (
        ("CreateTimerBody", ("execute_at", "execute_in")),
        ("V1CreateBody", ("executeAt", "executeIn")),
    ):
        schemas[name]["not"] = {"anyOf": [{"required": list(pair)}, _neither(*pair)]}
    for name in ("V1UpdateBody", "V1SelectedUpdateBody"):
        _refuse_together(schemas[name], ("executeAt", "executeIn"))
    _refuse_together(schemas["UpdateTimerBody"], ("execute_at", "execute_in"))


def _neither(*members: str) -> Schemas:
    return {"not": {"anyOf": [{"required": [member]} for member in members]}}


def _refuse_together(schema: Schemas, *pairs: tuple[str, str]) -> None:
    """Allow only one member of each pair, since both mean the same."""
    schema["not"] = {"anyOf": [{"required": list(pair)} for pair in pairs]}


def _tidy(schema: Any) -> Any:
    """The same schema in a form that client generators understand best.

    Choices state that they are strings, and "anything, or null" becomes anything. A default of
    null goes: it means the same as absence, and clients need not send it.
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
