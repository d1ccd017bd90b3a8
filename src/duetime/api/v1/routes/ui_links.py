"""The operation of the v1 API for links that sign in to the Web UI."""

from duetime.api.http.operation import Operation, Response, Tag
from duetime.api.v1.routes import responses as failures
from duetime.api.v1.routes.responses import with_failures
from duetime.api.v1.security.ui_links import UiLinkAnswer, UiLinksV1, sign_in_path
from duetime.service.security.sessions import LINK_MS, SESSION_MS

WEB_UI = Tag("Web UI v1", "Links for people, made by programs that have a key.")

_LINK = {
    "path": sign_in_path("Zk3v0Yx1uT8sQ5rW7aB2cD4eF6gH9iJkLmNoPqRsTuV"),
    "expiresAt": "2030-01-01T12:01:00Z",
}

UI_LINK_OPERATIONS: tuple[Operation[UiLinksV1], ...] = (
    Operation(
        id="createUiLinkV1",
        method="POST",
        any_role=True,
        path="/api/v1/ui-links",
        handler=UiLinksV1.create,
        audit="link.create",
        tag=WEB_UI,
        summary="Create a link that signs in to the Web UI",
        description="Whoever opens the link is signed in as the key of this request, for "
        f"{SESSION_MS // 3_600_000} hours. The link works once, and for {LINK_MS // 1_000} s. "
        "`duetime open` asks for one and opens it. A body is not read.",
        responses=with_failures(
            Response("201", "The link was created.", UiLinkAnswer, {"The only time": _LINK}),
            failures.UNKNOWN_PARAMETER,
        ),
    ),
)
