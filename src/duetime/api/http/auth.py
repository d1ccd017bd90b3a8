"""Authentication: from the key of a request to its caller."""

from collections.abc import Iterable, Mapping
from hmac import compare_digest
from typing import Any

from starlette.types import Scope

from duetime.api.http.caller import Caller, set_caller
from duetime.api.http.operation import Operation
from duetime.domain.errors import Unauthorized
from duetime.domain.security.access import EVERYTHING, UNCHECKED, Access

API_KEY_HEADER = b"x-api-key"


class Authentication:
    """Accepts requests that carry a key in their only `X-API-Key`.

    Without a key in the settings every request is accepted: a gateway in front of Duetime has
    checked it. The comparison takes the same time wherever the keys differ.
    """

    def __init__(self, api_key: str | None) -> None:
        self._expected = None if api_key is None else api_key.encode()

    async def admit(self, scope: Scope, operation: Operation[Any]) -> Caller:
        """The caller of the request, which may do the operation. Raises `Unauthorized` and
        `Forbidden`. Call it before reading the body."""
        access = self._access(_only_key(scope["headers"]))
        if access is None:
            raise Unauthorized("missing or invalid X-API-Key")
        caller = Caller(access, _address_of(scope))
        # Before the checks: the audit log names the caller of a refused request, too.
        set_caller(scope, caller)
        caller.check_role(operation.needed_role)
        if operation.for_all_namespaces:
            caller.check_everywhere()
        return caller

    def admit_known(
        self, headers: Mapping[bytes, bytes], operation: Operation[Any]
    ) -> Caller | None:
        """Like `admit`, for a request without any header twice. None if the request is refused, or
        if it takes more than a look at what is in memory to tell."""
        access = self._access(headers.get(API_KEY_HEADER))
        if access is None or not access.may(operation.needed_role):
            return None
        return Caller(access)

    def _access(self, given: bytes | None) -> Access | None:
        if self._expected is None:
            return UNCHECKED
        # Keys are often pasted with white space, which is not part of a header's value.
        if given is not None and compare_digest(given.strip(b" \t"), self._expected):
            return EVERYTHING
        return None


def _only_key(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    given: bytes | None = None
    for name, value in headers:
        if name == API_KEY_HEADER:
            if given is not None:
                # A gateway in front may have checked the other one.
                raise Unauthorized("X-API-Key is given more than once")
            given = value
    return given


def _address_of(scope: Scope) -> str | None:
    client = scope.get("client")
    return None if client is None else str(client[0])
