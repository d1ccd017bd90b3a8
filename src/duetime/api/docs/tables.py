"""The tables of the docs page: one row for each parameter or member."""

import re
from collections.abc import Mapping
from html import escape
from typing import Any

from msgspec import json

from duetime.api.openapi.document import openapi_document

Json = Mapping[str, Any]


def parameter_table(parameters: list[Json]) -> str:
    return _table("".join(_row(each["name"], each["schema"], each) for each in parameters))


def body_table(body: Json, *, given_by_client: bool = True) -> str:
    """The description of a body, and a table of its members if it has any."""
    schema = next(iter(body["content"].values()))["schema"]
    described = f"<p>{prose(_resolved(schema).get('description', ''))}</p>"
    if "properties" not in _resolved(schema):
        return described
    return described + _table(_member_rows(schema, "", given_by_client))


def answer_table(answers: Json) -> str:
    """The members of the answer to a successful request. Members of an envelope get no rows."""
    success = next(answer for status, answer in answers.items() if status < "3")
    if "content" not in success:
        return ""
    schema = next(iter(success["content"].values()))["schema"]
    members = _resolved(schema)["properties"]
    if {"code", "data"} <= members.keys():
        rows = _member_rows(members["data"], "data.", given_by_client=False)
    else:
        rows = _member_rows(schema, "", given_by_client=False)
    return f"{_header_table(success)}<h4>Fields of the answer</h4>{_table(rows)}"


def _header_table(answer: Json) -> str:
    """The headers of the answer, if the document describes any."""
    if "headers" not in answer:
        return ""
    rows = [
        _row(name, header["schema"], {"description": header["description"]})
        for name, header in answer["headers"].items()
    ]
    return f"<h4>Headers of the answer</h4>{_table(''.join(rows))}"


def prose(text: str) -> str:
    """Escaped, with `code` marked up."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))


def _member_rows(schema: Json, prefix: str, given_by_client: bool = True) -> str:
    """A row per member. Members of inner objects follow their owner under a dotted name."""
    rows = []
    resolved = _resolved(schema)
    for name, member in resolved.get("properties", {}).items():
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
    """A heading that describes the object that follows, if there is a description."""
    types = schema["properties"].get("type", {}).get("enum")
    parts = [f"{escape(name)} of type {escape(types[0])}"] if types else []
    if "description" in schema:
        parts.append(prose(schema["description"]))
    return f"<tr><th colspan=3>{': '.join(parts)}</th></tr>" if parts else ""


def _row(name: str, schema: Json, details: Json) -> str:
    description = details.get("description") or schema.get("description", "")
    notes = [prose(description)] if description else []
    if "enum" in schema:
        notes.append(
            "One of " + ", ".join(f"<code>{escape(str(v))}</code>" for v in schema["enum"]) + "."
        )
    if "maximum" in schema and schema["maximum"] < 2**31:
        notes.append(f"From {schema['minimum']} to {schema['maximum']}.")
    if "minLength" in schema:
        notes.append(f"{schema['minLength']} to {schema['maxLength']} characters.")
    if schema.get("default") is not None:
        default = json.encode(schema["default"]).decode().strip('"')
        notes.append(f"Default <code>{escape(default)}</code>.")
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
