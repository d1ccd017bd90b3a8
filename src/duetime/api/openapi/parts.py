"""The parts that operations of the OpenAPI document are made of."""

from collections.abc import Mapping

Json = Mapping[str, object]

JSON_MEDIA = "application/json"


def reference(schema: str) -> Json:
    return {"$ref": f"#/components/schemas/{schema}"}


def content(schema: Json, examples: Mapping[str, object], media: str = JSON_MEDIA) -> Json:
    named = {name: {"value": value} for name, value in examples.items()}
    return {media: {"schema": schema, "examples": named}}


def json_body(schema: str, examples: Mapping[str, object]) -> Json:
    return {"required": True, "content": content(reference(schema), examples)}


def choice_parameter(
    name: str, description: str, choices: list[str], default: str | None = None
) -> Json:
    schema: dict[str, object] = {"type": "string", "enum": choices}
    if default is not None:
        schema["default"] = default
    return query_parameter(name, description, schema)


def number_parameter(name: str, description: str, low: int, high: int, default: int) -> Json:
    schema = {"type": "integer", "minimum": low, "maximum": high, "default": default}
    return query_parameter(name, description, schema)


def query_parameter(name: str, description: str, schema: Json) -> Json:
    return {"name": name, "in": "query", "description": description, "schema": schema}


def path_parameter(name: str, description: str, schema: Json, example: str) -> Json:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": description,
        "schema": schema,
        "example": example,
    }
