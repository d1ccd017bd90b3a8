"""The callback of the v1 API as its receiver sees it, for the OpenAPI document."""

from typing import Annotated

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from duetime.api.http.operation import Body, Callback, Response
from duetime.api.http.types import INSTANT, InstantText
from duetime.api.v1.routes.examples import CALLBACK, NEXT_EXECUTE_AT
from duetime.domain.limits import MAX_REASON_CHARACTERS


class CallbackRequest(Struct, frozen=True, rename="camel"):
    """The body that the receiver of a callback gets."""

    namespace: Annotated[str, Meta(description="The timer's namespace.")]
    id: Annotated[str, Meta(description="The timer's id.")]
    execute_at: Annotated[InstantText, Meta(description="The instant that the timer was set for.")]
    attempt: Annotated[
        int,
        Meta(description="1 for the first attempt of a firing.", extra_json_schema={"minimum": 1}),
    ]
    payload: Annotated[Raw, Meta(description="The payload as given, or null.")]


class CallbackAnswer(Struct, frozen=True, rename="camel"):
    """The receiver's decision."""

    ok: Annotated[bool, Meta(description="Whether the timer is done.")]
    next_execute_at: Annotated[
        str | UnsetType | None,
        Meta(
            description="With `ok` false: the instant to fire again, ISO 8601 with a UTC offset. "
            "An instant in the past means now.",
            extra_json_schema=INSTANT,
        ),
    ] = UNSET
    message: Annotated[
        str | UnsetType,
        Meta(
            description="With `ok` false and no `nextExecuteAt`: the reason. The timer's "
            f"`lastError` shows its first {MAX_REASON_CHARACTERS} characters. A value that is not "
            "a string is ignored."
        ),
    ] = UNSET
    error: Annotated[
        str | UnsetType,
        Meta(description="The reason, if `message` is absent, blank or not a string."),
    ] = UNSET


TIMER_CALLBACK = Callback(
    "{$request.body#/callbackUrl}",
    "The callback of a timer",
    "At the timer's instant Duetime sends a POST to its `callbackUrl`. A 200 with "
    '`{"ok": true}` completes the timer. A 200 with `{"ok": false, "nextExecuteAt": ...}` '
    "reschedules it: the timer is pending again, and its attempts start over. A 200 with "
    '`{"ok": false}`, any other answer (201, 202 and 204 included), a timeout and a failed '
    "connection are failures, which are retried by the timer's `retryPolicy`; `Retry-After` is "
    "honoured up to `maxInterval`. With the `callbackProtocol` `status` the payload alone is sent, "
    "and any 2xx completes the timer.",
    Body(CallbackRequest, {"Due": CALLBACK}),
    (
        Response(
            "200",
            "The answer decides what happens to the timer.",
            CallbackAnswer,
            {
                "Done": {"ok": True},
                "Failed": {"ok": False, "message": "no such order"},
                "Rescheduled": {"ok": False, "nextExecuteAt": NEXT_EXECUTE_AT},
            },
        ),
        Response("default", "The attempt failed."),
    ),
)
