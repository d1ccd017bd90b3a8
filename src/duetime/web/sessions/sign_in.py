"""The page on which people sign in, by a key or by a link, and the way out."""

import re

from duetime.api.http.auth import Authentication, address_of
from duetime.api.http.caller import Caller, set_caller
from duetime.api.http.operation import Route
from duetime.domain.errors import TooManyRequests, Unauthorized
from duetime.domain.security.access import Access, Role
from duetime.service.security.sessions import SESSION_MS, Sessions
from duetime.web.app import PREFIX, SIGN_IN, UNDONE_FIELD
from duetime.web.cookies import SetCookie, cookies_of, session_cookie, set_cookie
from duetime.web.endpoint import WebEndpoint, action
from duetime.web.rendering.view import Redirect, Result, View
from duetime.web.request import Request
from duetime.web.sessions.admission import SessionAdmission

SIGN_OUT = "/ui/sign-out"
CREATE = "/ui/create"

WRONG_KEY = "This key is not right. It may have been revoked, or have expired."
NO_KEY = "Type or paste an API key."
WRONG_LINK = (
    "This link has been used, or is more than a minute old. Run duetime open again, or sign in "
    "with an API key."
)
ENDED = "Your session has ended. Sign in to go on."
UNDONE = "Your session had ended, so nothing was changed. Sign in, and try again."
SIGNED_OUT = "You are signed out."

_BEGIN = "session.create"
_END = "session.end"

_LOCAL = re.compile(r"/ui(/[!-\[\]-~]*)?(\?[!-\[\]-~]*)?", re.ASCII)
"""A path of the UI with its query, without backslashes, which browsers take for slashes."""


class SignInPage:
    def __init__(
        self, sessions: Sessions, authentication: Authentication, admission: SessionAdmission
    ) -> None:
        self._sessions = sessions
        self._authentication = authentication
        self._admission = admission

    def endpoints(self) -> tuple[WebEndpoint, ...]:
        # A link is opened by a GET, and signs in.
        show = Route(id="uiSignIn", method="GET", path=SIGN_IN, needs_key=False, audit=_BEGIN)
        return (
            WebEndpoint(show, self.show),
            action("uiBeginSession", SIGN_IN, self.begin, audit=_BEGIN, needs_key=False),
            action("uiEndSession", SIGN_OUT, self.end, audit=_END, any_role=True),
        )

    async def show(self, request: Request) -> Result:
        target = local_target(request.query.get("next"))
        if not self._sessions.are_needed:
            return Redirect(target)
        code = request.query.get("code")
        if code is not None:
            if _is_sent_by_browser(request):
                return await self._by_code(request, code, target)
            return _form(target, code=code)
        if await self._admission.session_of(request.scope) is not None:
            return Redirect(target)
        if _token_in(request) is not None:
            return _form(target, notice=UNDONE if request.query.has(UNDONE_FIELD) else ENDED)
        if _comes_from_elsewhere(request):
            # The browser keeps the cookie back, and sends it when our own page goes there.
            return View(template="pages/go_on.html", title="Duetime", values={"target": target})
        return _form(target)

    async def begin(self, request: Request) -> Result:
        target = local_target(request.form.get("next"))
        if not self._sessions.are_needed:
            return Redirect(target)
        code, key = request.form.get("code"), request.form.get("key")
        if code is not None:
            return await self._by_code(request, code, target)
        if key is None:
            return _form(target, error=NO_KEY, status=400)
        try:
            caller = await self._authentication.caller_with(key.encode(), address_of(request.scope))
            caller.enter()
        except Unauthorized:
            return _form(target, error=WRONG_KEY, status=401)
        except TooManyRequests as error:
            words = f"{error.message[:1].upper()}{error.message[1:]}. Wait a little."
            return _form(target, error=words, status=429)
        set_caller(request.scope, caller)
        return await self._signed_in(request, caller.access, target)

    async def end(self, request: Request) -> Result:
        await self._forget_session(request)
        return Redirect(SIGN_IN, SIGNED_OUT, (_cookie(request, "", 0),))

    async def _by_code(self, request: Request, code: str, target: str) -> Result:
        access = await self._sessions.redeem(code)
        if access is None:
            if await self._admission.session_of(request.scope) is not None:
                # The same link was opened twice, or that of a `duetime dev` before the last one.
                return Redirect(target)
            return _form(target, notice=WRONG_LINK, status=401)
        set_caller(request.scope, Caller(access, address_of(request.scope)))
        return await self._signed_in(request, access, target)

    async def _signed_in(self, request: Request, access: Access, target: str) -> Redirect:
        await self._forget_session(request)
        issued = await self._sessions.begin(access)
        if target == PREFIX and not access.may(Role.READ):
            # The overview would be refused.
            target = CREATE
        cookie = _cookie(request, issued.token, SESSION_MS // 1_000)
        return Redirect(target, cookies=(cookie,))

    async def _forget_session(self, request: Request) -> None:
        token = _token_in(request)
        if token is not None:
            await self._sessions.end(token)


def local_target(given: str | None) -> str:
    """The page to go to after the sign-in: the given one if it is one of the UI."""
    if given is None or not _LOCAL.fullmatch(given) or given.startswith((SIGN_IN, SIGN_OUT)):
        return PREFIX
    path = given.partition("?")[0]
    return PREFIX if "//" in path or "/.." in path else given


def _token_in(request: Request) -> str | None:
    return cookies_of(request.scope).get(session_cookie(request.scope)) or None


def _cookie(request: Request, token: str, seconds: int) -> SetCookie:
    return set_cookie(request.scope, session_cookie(request.scope), token, seconds=seconds)


def _form(
    target: str,
    *,
    error: str | None = None,
    notice: str | None = None,
    code: str | None = None,
    status: int = 200,
) -> View:
    return View(
        template="pages/sign_in.html",
        title="Sign in",
        values={"target": target, "error": error, "notice": notice, "code": code},
        status=status,
    )


def _is_sent_by_browser(request: Request) -> bool:
    """Whether a person has opened the link: no other site, and no program that looks at links. The
    others would use up the code, or sign a person in who did not ask for it."""
    return request.scope["method"] == "GET" and not _comes_from_elsewhere(request)


def _comes_from_elsewhere(request: Request) -> bool:
    return (b"sec-fetch-site", b"cross-site") in list(request.scope["headers"])
