"""The caller of a request: their access, and the part of the service that the request is about."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import UNSET
from starlette.types import Scope

from duetime.domain.errors import Forbidden, NamespaceNotFound
from duetime.domain.keys import TimerKey
from duetime.domain.security.access import Access, Role
from duetime.telemetry.current_work import CurrentWork

_IN_SCOPE = "duetime.caller"


class Place(Protocol):
    """A key, and the room that it has for requests."""

    def check_still_valid(self) -> None:
        """Raises `Unauthorized`."""
        ...

    def enter(self) -> None:
        """Raises `TooManyRequests`."""
        ...

    def leave(self) -> None:
        """Once for every `enter` that did not raise."""
        ...


class Caller:
    """One per request. Handlers name each namespace and timer that a request is about through it,
    before anything else is done with them. So a namespace that the caller may not see is refused
    in the same way, and as fast, as one that does not exist.

    For the audit log, `action` is the word for a request whose operation has none, `replaced` says
    that a create replaced a timer, and `has_begun` that the request may have changed something even
    if it fails. `work` is set for requests that have no task of their own.
    """

    __slots__ = (
        "_entered",
        "_place",
        "access",
        "action",
        "address",
        "details",
        "has_begun",
        "namespace",
        "replaced",
        "target",
        "work",
    )

    def __init__(
        self, access: Access, address: str | None = None, place: Place | None = None
    ) -> None:
        self._place = place
        self._entered = False
        self.access = access
        self.address = address
        self.action: str | None = None
        self.namespace: str | None = None
        self.target: str | None = None
        self.details: str | None = None
        self.replaced = False
        self.has_begun = False
        self.work: CurrentWork | None = None

    def enter(self) -> None:
        """Begin the request; `leave` ends it. Raises `TooManyRequests`."""
        if self._place is not None:
            self._place.enter()
            self._entered = True

    def leave(self) -> None:
        """May be called at any time, and any number of times."""
        if self._entered:
            self._entered = False
            assert self._place is not None
            self._place.leave()

    def check_still_valid(self) -> None:
        """Raises `Unauthorized` if the key was revoked or has expired, as far as this node knows.
        To be called when the body of a request has been read, which may take hours."""
        if self._place is not None:
            self._place.check_still_valid()

    def reach(self, namespace: str, target: str | None = None) -> str:
        """The namespace, which the request is about from now on. `target` is the id of a timer or
        of another thing in it. Raises `NamespaceNotFound`."""
        self.namespace = namespace
        self.target = target
        if not self.access.sees(namespace):
            raise NamespaceNotFound(namespace)
        return namespace

    def reach_timer(self, key: TimerKey) -> TimerKey:
        """Raises `NamespaceNotFound`."""
        self.reach(key.namespace, key.id)
        return key

    def note(self, details: Mapping[str, object]) -> None:
        """Add words about the request for the audit log, besides what `reach` was told. Absent
        values are left out. Neither secrets nor payloads belong there."""
        words = [
            name if value is True else f"{name}={value}"
            for name, value in details.items()
            if value is not None and value is not UNSET
        ]
        if words:
            self.details = ", ".join(words if self.details is None else [self.details, *words])

    def check_role(self, role: Role) -> None:
        """Raises `Forbidden`."""
        if not self.access.may(role):
            raise Forbidden(f"this key lacks the role {role.value!r}")

    def check_everywhere(self) -> None:
        """Raises `Forbidden` unless the caller may see all namespaces."""
        if self.access.namespaces is not None:
            raise Forbidden("this key is for some namespaces only, and this needs one for all")


def set_caller(scope: Scope, caller: Caller) -> None:
    scope[_IN_SCOPE] = caller


def caller_if_known(scope: Scope) -> Caller | None:
    """None for a request that has not been authenticated, or was refused because of its key."""
    return scope.get(_IN_SCOPE)


def caller_of(scope: Scope) -> Caller:
    """The caller of a request that has been authenticated."""
    caller: Caller = scope[_IN_SCOPE]
    return caller


def leave(scope: Scope) -> None:
    """End the request of its caller, if it has one."""
    caller: Caller | None = scope.get(_IN_SCOPE)
    if caller is not None:
        caller.leave()
