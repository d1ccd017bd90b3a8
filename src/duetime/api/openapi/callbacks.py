"""What the OpenAPI document says of the requests that the service makes."""

from duetime.api.openapi import platform_examples as examples
from duetime.api.openapi.parts import Json, content

_DESCRIPTION = (
    "At its instant the timer's callback is made: a POST to its URL with its payload as the body "
    "(no body without a payload) and its headers. Any 2xx answer completes the timer. Anything "
    "else is a failure, which is tried again if there is a `retry_policy`."
)


def platform_callbacks() -> Json:
    return {
        "timerDue": {
            "{$request.body#/callback/url}": {
                "post": {
                    "summary": "The callback of a platform timer",
                    "description": _DESCRIPTION,
                    "security": [],
                    "parameters": callback_headers(),
                    "requestBody": {"content": content({}, {"Payload": examples.PAYLOAD})},
                    "responses": {
                        "2XX": {"description": "The timer is completed."},
                        "default": {"description": "The attempt failed."},
                    },
                }
            }
        }
    }


def callback_headers() -> list[Json]:
    """What comes with every callback, of either API."""
    return [
        _header(
            "webhook-id",
            "Names the firing, and is the same in every repeat of it: remember it, and ignore "
            "one that was handled already.",
            {"type": "string"},
            "01977f3e-7a10-7cc3-8a2b-6f0d3b8d9c11",
        ),
        _header(
            "webhook-timestamp",
            "When this attempt was sent, in seconds since 1970 UTC.",
            {"type": "integer"},
            1893499200,
        ),
        _header(
            "Timer-Attempt",
            "1 for the first attempt of a firing, then 2, 3 and so on.",
            {"type": "integer", "minimum": 1},
            1,
        ),
    ]


def _header(name: str, description: str, schema: Json, example: str | int) -> Json:
    return {
        "name": name,
        "in": "header",
        "required": True,
        "description": description,
        "schema": schema,
        "example": example,
    }
