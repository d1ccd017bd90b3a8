"""The callback of the v1 API in the OpenAPI document, as its receiver sees it."""

from typing import Annotated

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from duetime.api.http.constraints import INSTANT
from duetime.api.openapi.callbacks import callback_headers
from duetime.api.openapi.parts import Json, content, json_body, reference
from duetime.api.openapi.v1_examples import CALLBACK, NEXT_EXECUTE_AT
from duetime.api.platform.types import InstantText

_DESCRIPTION = (
    "At its instant the timer's callback is made: a POST to its `callbackUrl`. A 200 with "
    '`{"ok": true}` completes the timer. A 200 with `{"ok": false, "nextExecuteAt": ...}` '
    "reschedules it: it is pending again, and its attempts start over. A 200 with "
    '`{"ok": false}`, any other answer, also a 201, 202 or 204, a timeout and no connection are '
    "failures, which are tried again by the timer's `retryPolicy`; `Retry-After` is honoured up to "
    "`maxInterval`. With "
    "the `callbackProtocol` `status` the payload alone is sent, and any 2xx completes the timer."
)


class CallbackRequest(Struct, frozen=True, rename="camel"):
    """What the receiver of a callback is told."""

    namespace: Annotated[str, Meta(description="The timer's namespace.")]
    id: Annotated[str, Meta(description="The timer's id.")]
    execute_at: Annotated[InstantText, Meta(description="The instant it was meant for.")]
    attempt: Annotated[
        int,
        Meta(description="1 for the first attempt of a firing.", extra_json_schema={"minimum": 1}),
    ]
    payload: Annotated[Raw, Meta(description="As it was given; null without one.")]


class CallbackAnswer(Struct, frozen=True, rename="camel"):
    """What the receiver decides."""

    ok: Annotated[bool, Meta(description="Whether the timer is done.")]
    next_execute_at: Annotated[
        str | UnsetType | None,
        Meta(
            description="With `ok` false: when to fire again, ISO 8601 with a UTC offset. One "
            "that has passed means now.",
            extra_json_schema=INSTANT,
        ),
    ] = UNSET
    message: Annotated[
        str | UnsetType,
        Meta(
            description="With `ok` false and no `nextExecuteAt`: why. It is shown in the timer's "
            "`lastError`, up to 200 characters of it. What is not a string is ignored."
        ),
    ] = UNSET
    error: Annotated[
        str | UnsetType,
        Meta(description="The same, if there is no `message`, or it is blank or not a string."),
    ] = UNSET


def callbacks() -> Json:
    return {
        "timerDue": {
            "{$request.body#/callbackUrl}": {
                "post": {
                    "summary": "The callback of a timer",
                    "description": _DESCRIPTION,
                    "security": [],
                    "parameters": callback_headers(),
                    "requestBody": json_body("V1CallbackRequest", {"Due": CALLBACK}),
                    "responses": {
                        "200": {
                            "description": "The answer decides what becomes of the timer.",
                            "content": content(
                                reference("V1CallbackAnswer"),
                                {
                                    "Done": {"ok": True},
                                    "Failed": {"ok": False, "message": "no such order"},
                                    "Rescheduled": {
                                        "ok": False,
                                        "nextExecuteAt": NEXT_EXECUTE_AT,
                                    },
                                },
                            ),
                        },
                        "default": {"description": "The attempt failed."},
                    },
                }
            }
        }
    }
