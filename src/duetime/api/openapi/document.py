"""The OpenAPI document: one for all doors."""

from functools import cache

from msgspec import json

from duetime import __version__
from duetime.api.http.answers import Answer
from duetime.api.openapi import platform_paths as platform
from duetime.api.openapi import v1_namespaces as v1_namespaces
from duetime.api.openapi import v1_paths as v1
from duetime.api.openapi.parts import Json
from duetime.api.openapi.v1_schemas import schemas as v1_schemas

_DESCRIPTION = (
    "Register a callback for an instant, and it is made: durably, on time, at least once. There "
    "are two APIs for the same timers. The platform API, `/timers`, is the small one: its ids are "
    "UUIDs that the service makes. The Timer API v1, `/api/v1`, has namespaces, ids of the "
    "client's own, batches and imports, and callbacks whose answers decide what becomes of the "
    "timer. A timer that came in through one can be read through the other. The third door is the "
    "message bus, whose messages `/asyncapi.json` describes."
)


def openapi_answer() -> Answer:
    return Answer(200, _encoded())


@cache
def _encoded() -> bytes:
    return json.encode(openapi_document())


@cache
def openapi_document() -> Json:
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Duetime",
            "version": __version__,
            "summary": "Durable timers with callbacks over HTTP or NATS, or events on a bus.",
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"apiKey": []}],
        "tags": [
            {"name": platform.TAG, "description": platform.DESCRIPTION},
            {"name": v1.TAG, "description": v1.DESCRIPTION},
            {"name": v1_namespaces.TAG, "description": v1_namespaces.DESCRIPTION},
            {"name": platform.SERVICE_TAG, "description": platform.SERVICE_DESCRIPTION},
        ],
        "paths": {
            **platform.timer_paths(),
            **v1.paths(),
            **v1_namespaces.paths(),
            **v1_namespaces.endpoint_paths(platform.SERVICE_TAG),
            **platform.service_paths(),
        },
        "components": {
            "schemas": {**platform.schemas(), **v1_schemas()},
            "securitySchemes": {
                "apiKey": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "X-API-Key",
                    "description": "The service's key, unless it runs with `AUTH=none`.",
                },
            },
        },
    }
