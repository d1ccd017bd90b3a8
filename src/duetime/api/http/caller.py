"""The caller of a request: their access, and the part of the service that the request is about."""

from starlette.types import Scope

from duetime.domain.errors import Forbidden, NamespaceNotFound
from duetime.domain.keys import TimerKey
from duetime.domain.security.access import Access, Role

_IN_SCOPE = "duetime.caller"


class Caller:
    """One per request. Handlers name each namespace and timer that a request is about through it,
    before anything else is done with them. So a namespace that the caller may not see is refused
    in the same way, and as fast, as one that does not exist."""

    __slots__ = ("access", "address", "namespace", "target")

    def __init__(self, access: Access, address: str | None = None) -> None:
        self.access = access
        self.address = address
        self.namespace: str | None = None
        self.target: str | None = None

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


def caller_of(scope: Scope) -> Caller:
    """The caller of a request that has been authenticated."""
    caller: Caller = scope[_IN_SCOPE]
    return caller
