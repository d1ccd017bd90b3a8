"""The handler of the v1 API for links that sign in to the Web UI."""

from typing import Annotated

from msgspec import Meta, Struct, json
from starlette.types import Receive, Scope

from duetime.api.http.answers import JSON_TYPE, Answer
from duetime.api.http.caller import caller_of
from duetime.api.http.types import InstantText
from duetime.domain.instants import format_instant
from duetime.service.security.sessions import Sessions

UI_PATH = "/ui"
SIGN_IN_PATH = f"{UI_PATH}/sign-in"

# The answer has a code, which nothing on the way may keep.
_SECRET_ANSWER = (*JSON_TYPE, (b"cache-control", b"no-store"))


class UiLinkAnswer(Struct, frozen=True, rename="camel"):
    """A link that signs in to the Web UI as the key of the request."""

    path: Annotated[
        str,
        Meta(
            description="Append it to the URL of the server. Where requests need no key, it is the "
            "plain path of the Web UI."
        ),
    ]
    expires_at: Annotated[
        InstantText | None,
        Meta(description="Instant from which the link does not work; null if it always does."),
    ]


class UiLinksV1:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def create(self, scope: Scope, receive: Receive) -> Answer:
        answer = UiLinkAnswer(UI_PATH, None)
        if self._sessions.are_needed:
            issued = await self._sessions.issue_link(caller_of(scope).access)
            answer = UiLinkAnswer(sign_in_path(issued.token), format_instant(issued.expires_at))
        return Answer(201, json.encode(answer), _SECRET_ANSWER)


def sign_in_path(code: str) -> str:
    return f"{SIGN_IN_PATH}?code={code}"
