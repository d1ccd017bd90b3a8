"""Authentication: from the key of a request to its caller."""

from collections.abc import Iterable, Mapping
from hmac import compare_digest

from starlette.types import Scope

from duetime.api.http.caller import Caller, set_caller
from duetime.api.http.lifecycle import Lifecycle
from duetime.api.http.operation import Route
from duetime.domain.errors import Unauthorized
from duetime.domain.security.access import EVERYTHING, UNCHECKED
from duetime.service.security.key_ring import KeyRing

API_KEY_HEADER = b"x-api-key"
AUTHORIZATION_HEADER = b"authorization"

REFUSAL = "missing or invalid key: send X-API-Key, or Authorization: Bearer"

_HEADERS = {API_KEY_HEADER: "X-API-Key", AUTHORIZATION_HEADER: "Authorization"}
_SCHEME = b"bearer "
# Keys are often pasted with white space, which is not part of a header's value.
_SPACE = b" \t"


class Authentication:
    """Accepts requests that carry one key, in `X-API-Key` or as `Authorization: Bearer`.

    The key of the settings opens everything, and others what they are for. Without a key in the
    settings every request is accepted: a gateway in front of Duetime has checked it. Comparisons
    take the same time wherever keys differ.
    """

    def __init__(self, api_key: str | None, keys: KeyRing, lifecycle: Lifecycle) -> None:
        self._expected = None if api_key is None else api_key.encode()
        self._keys = keys
        self._lifecycle = lifecycle

    async def admit(self, scope: Scope, operation: Route) -> Caller:
        """The caller of the request, which may do the operation. Raises `Unauthorized`,
        `Forbidden`, `TooManyRequests` and `StoreUnavailable`. Call it before reading the body. The
        caller has entered, and leaves when the request is answered."""
        return let_in(await self._caller_of(scope, operation), scope, operation)

    def admit_known(self, headers: Mapping[bytes, bytes], operation: Route) -> Caller | None:
        """Like `admit`, for a request without any header twice. None if the request is refused, or
        if it takes more than a look at what is in memory to tell. The caller has yet to enter."""
        if self._expected is None:
            return Caller(UNCHECKED)
        given = headers.get(API_KEY_HEADER)
        if AUTHORIZATION_HEADER in headers:
            if given is not None:
                return None
            given = _bearer_key(headers[AUTHORIZATION_HEADER])
        if given is None:
            return None
        given = given.strip(_SPACE)
        if compare_digest(given, self._expected):
            return Caller(EVERYTHING)
        held = self._keys.known(given)
        if held is None or not held.access.may(operation.needed_role):
            return None
        return Caller(held.access, None, held)

    async def _caller_of(self, scope: Scope, operation: Route) -> Caller:
        address = address_of(scope)
        if self._expected is None:
            return Caller(UNCHECKED, address)
        given = _only_key(scope["headers"])
        if given is None:
            raise Unauthorized(REFUSAL)
        return await self.caller_with(given, address, needs_store=operation.needs_store)

    async def caller_with(
        self, given: bytes, address: str | None, *, needs_store: bool = True
    ) -> Caller:
        """The caller with this key, where keys are asked for. Raises `Unauthorized`,
        `TooManyRequests` for too many wrong keys, and `StoreUnavailable`."""
        assert self._expected is not None
        if compare_digest(given, self._expected):
            return Caller(EVERYTHING, address)
        if not needs_store and (held := self._keys.remembered(given)) is not None:
            return Caller(held.access, address, held)
        # Keys are in the store, which is not open before the start.
        self._lifecycle.check_started()
        held = await self._keys.look_up(given)
        if held is None:
            # Only here: a right key gets in, whoever else tries keys from the same address.
            self._keys.wrong_keys.count(address)
            held = await self._keys.look_again(given)
        if held is None:
            self._keys.wrong_keys.note_refused(address)
            raise Unauthorized(REFUSAL)
        return Caller(held.access, address, held)


def let_in(caller: Caller, scope: Scope, operation: Route) -> Caller:
    """The caller, who enters. Raises `TooManyRequests` and `Forbidden`."""
    # Before the checks: the audit log names the caller of a refused request, too.
    set_caller(scope, caller)
    caller.enter()
    if not operation.any_role:
        caller.check_role(operation.needed_role)
    if operation.for_all_namespaces:
        caller.check_everywhere()
    return caller


def _only_key(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """The key of a request. Raises `Unauthorized` if there may be two: a gateway in front may have
    checked the other one."""
    given: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in _HEADERS:
            if name in given:
                raise Unauthorized(f"{_HEADERS[name]} is given more than once")
            given[name] = value
    bearer = given.pop(AUTHORIZATION_HEADER, None)
    keys = {key.strip(_SPACE) for key in given.values()}
    if bearer is not None and (key := _bearer_key(bearer)) is not None:
        keys.add(key)
    if len(keys) > 1:
        raise Unauthorized("X-API-Key and Authorization have different keys: send one of them")
    return keys.pop() if keys else None


def _bearer_key(value: bytes) -> bytes | None:
    """The key in the value of `Authorization`; None if that has another scheme."""
    value = value.strip(_SPACE)
    if value[: len(_SCHEME)].lower() != _SCHEME:
        return None
    return value[len(_SCHEME) :].strip(_SPACE)


def address_of(scope: Scope) -> str | None:
    """The address that a request came from."""
    client = scope.get("client")
    return None if client is None else str(client[0])
