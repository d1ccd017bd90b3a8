"""Tables of pages and actions."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from duetime.api.http.operation import Parameter, Route
from duetime.domain.security.access import Role
from duetime.web.rendering.view import Result
from duetime.web.request import Request

Handle = Callable[[Request], Awaitable[Result]]


class WebEndpoint(NamedTuple):
    """A page or an action, with its handler. Only the views of pages that may be live are rendered
    again while they are open."""

    operation: Route
    handle: Handle
    may_be_live: bool = False


def page(
    id: str,
    path: str,
    handle: Handle,
    *,
    role: Role = Role.READ,
    any_role: bool = False,
    for_all_namespaces: bool = False,
    needs_key: bool = True,
    may_be_live: bool = False,
) -> WebEndpoint:
    """A page, or anything else that is only read."""
    route = Route(
        id=id,
        method="GET",
        path=path,
        role=role,
        any_role=any_role,
        for_all_namespaces=for_all_namespaces,
        needs_key=needs_key,
        parameters=_parameters_of(path),
    )
    return WebEndpoint(route, handle, may_be_live)


def action(
    id: str,
    path: str,
    handle: Handle,
    *,
    audit: str | None,
    role: Role = Role.WRITE,
    any_role: bool = False,
    for_all_namespaces: bool = False,
    needs_key: bool = True,
) -> WebEndpoint:
    """A form that is sent. `audit` is the same word as for the API; None if nothing changes."""
    route = Route(
        id=id,
        method="POST",
        path=path,
        role=role,
        any_role=any_role,
        for_all_namespaces=for_all_namespaces,
        needs_key=needs_key,
        audit=audit,
        parameters=_parameters_of(path),
    )
    return WebEndpoint(route, handle)


def _parameters_of(path: str) -> tuple[Parameter, ...]:
    """The names in braces. The id of a timer may have slashes, encoded or not."""
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    return tuple(
        Parameter(name, "", {}, place="path", takes_slashes=name == "timer_id") for name in names
    )
