"""The lists of fields on the docs page: one entry for each parameter or member."""

import re
from collections.abc import Mapping
from html import escape
from typing import Any

from msgspec import json

from duetime.api.openapi.document import openapi_document

Json = Mapping[str, Any]


def parameter_list(parameters: list[Json]) -> str:
    return _list("".join(_entry(each["name"], each["schema"], each) for each in parameters))


def body_fields(body: Json, *, given_by_client: bool = True) -> str:
    """The description of a body, and a list of its members if it has any."""
    schema = next(iter(body["content"].values()))["schema"]
    described = f"<p>{prose(_resolved(schema).get('description', ''))}</p>"
    if "properties" not in _resolved(schema):
        return described
    return described + _list(_member_entries(schema, "", given_by_client))


def answer_fields(answers: Json) -> str:
    """The members of the answer to a successful request. Members of an envelope are left out."""
    success = next(answer for status, answer in answers.items() if status < "3")
    if "content" not in success:
        return ""
    schema = next(iter(success["content"].values()))["schema"]
    if "properties" not in _resolved(schema):
        return ""
    members = _resolved(schema)["properties"]
    if {"code", "data"} <= members.keys():
        entries = _member_entries(members["data"], "data.", given_by_client=False)
    else:
        entries = _member_entries(schema, "", given_by_client=False)
    return f"{_answer_headers(success)}<h4>Fields of the answer</h4>{_list(entries)}"


def _answer_headers(answer: Json) -> str:
    """The headers of this answer. The document only refers to those that all answers have."""
    entries = [
        _entry(name, header["schema"], {"description": header["description"]})
        for name, header in answer["headers"].items()
        if "schema" in header
    ]
    if not entries:
        return ""
    return f"<h4>Headers of the answer</h4>{_list(''.join(entries))}"


def paragraphs(text: str) -> str:
    return "".join(f"<p>{prose(each)}</p>" for each in text.split("\n\n"))


def prose(text: str) -> str:
    """Escaped, with `code` marked up."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))


def _member_entries(schema: Json, prefix: str, given_by_client: bool = True) -> str:
    """An entry per member. Members of inner objects follow their owner under a dotted name."""
    entries = []
    resolved = _resolved(schema)
    for name, member in resolved.get("properties", {}).items():
        required = given_by_client and name in resolved["required"]
        entries.append(_entry(prefix + name, member, {"required": required}))
        for option in _options(member):
            inner = option.get("items", option)
            if "$ref" in inner:
                entries.append(_object_entry(name, _resolved(inner)))
                suffix = "[]." if "items" in option else "."
                entries.append(_member_entries(inner, prefix + name + suffix, given_by_client))
    return "".join(entries)


def _object_entry(name: str, schema: Json) -> str:
    """A heading that describes the object that follows, if there is a description."""
    types = schema["properties"].get("type", {}).get("enum")
    if not types and "description" not in schema:
        return ""
    title = f"{escape(name)} of type {escape(types[0])}" if types else escape(name)
    return (
        f"<div class=object><dt>{title}</dt><dd>{prose(schema.get('description', ''))}</dd></div>"
    )


def _entry(name: str, schema: Json, details: Json) -> str:
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
    required = " <em>required</em>" if details.get("required") else ""
    return (
        f"<div><dt><code>{escape(name)}</code> <small>{escape(_type(schema))}</small>{required}"
        f"</dt><dd>{' '.join(notes)}</dd></div>"
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


def _list(entries: str) -> str:
    return f"<dl>{entries}</dl>"
