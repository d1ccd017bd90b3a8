"""Admission to the UI: from the cookie of a request to its caller."""

from starlette.types import Scope

from duetime.api.http.auth import API_KEY_HEADER, Authentication, address_of, let_in
from duetime.api.http.caller import Caller
from duetime.api.http.lifecycle import Lifecycle
from duetime.api.http.operation import Route
from duetime.domain.errors import Unauthorized
from duetime.domain.security.access import UNCHECKED
from duetime.service.security.sessions import HeldSession, Sessions
from duetime.web.cookies import cookies_of, session_cookie

REFUSAL = "sign in first"


class SessionAdmission:
    """Implements `Admission`. Where requests need no key, everybody is admitted. A request with
    `X-API-Key` is admitted by that, as in the API: a gateway may add it, and programs may."""

    def __init__(
        self, sessions: Sessions, authentication: Authentication, lifecycle: Lifecycle
    ) -> None:
        self._sessions = sessions
        self._authentication = authentication
        self._lifecycle = lifecycle

    async def admit(self, scope: Scope, operation: Route) -> Caller:
        if any(name == API_KEY_HEADER for name, _ in scope["headers"]):
            return await self._authentication.admit(scope, operation)
        if not self._sessions.are_needed:
            return let_in(Caller(UNCHECKED, address_of(scope)), scope, operation)
        session = await self.session_of(scope, needs_store=operation.needs_store)
        if session is None:
            raise Unauthorized(REFUSAL)
        return let_in(Caller(session.access, address_of(scope), session), scope, operation)

    async def session_of(self, scope: Scope, *, needs_store: bool = True) -> HeldSession | None:
        """The session that the cookie names, if it has not ended. Raises `StoreUnavailable`."""
        token = cookies_of(scope).get(session_cookie(scope))
        if not token:
            return None
        if not needs_store and (held := self._sessions.remembered(token)) is not None:
            return held
        # Sessions are in the store, which is not open before the start.
        self._lifecycle.check_started()
        return await self._sessions.look_up(token)
