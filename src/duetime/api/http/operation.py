"""An operation of an API. Tables of operations make the routes, the OpenAPI document and
the docs page."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from msgspec import Struct
from starlette.types import Receive, Scope

from duetime.api.http.answers import RETRY_AFTER_SECONDS, Answer
from duetime.domain.security.access import Role

Json = Mapping[str, object]
Examples = Mapping[str, object]
Handler = Callable[[Scope, Receive], Awaitable[Answer]]
H = TypeVar("H")

JSON_MEDIA = "application/json"


class Tag(Struct, frozen=True):
    """A group of operations in the OpenAPI document and on the docs page."""

    name: str
    description: str


RETRY_HEADER: Json = {
    "Retry-After": {
        "description": "Seconds after which the request may be sent again.",
        "required": True,
        "schema": {"type": "integer", "example": RETRY_AFTER_SECONDS},
    }
}

CHALLENGE_HEADER: Json = {
    "WWW-Authenticate": {
        "description": "The way to send a key.",
        "required": True,
        "schema": {"type": "string", "example": 'Bearer realm="duetime"'},
    }
}

SERVICE = Tag("Service", "The state of the service itself.")


class Parameter(Struct, frozen=True):
    """A parameter outside the body. Parameters of the query are always optional. A parameter in the
    path needs an example, and ends at the next slash unless it `takes_slashes`."""

    name: str
    description: str
    schema: Json
    place: Literal["query", "path", "header"] = "query"
    example: str | int | None = None
    takes_slashes: bool = False
    optional: bool = False


class Body(Struct, frozen=True):
    """A request body: a type, or a JSON Schema where there is no type."""

    schema: type[Any] | Json
    examples: Examples
    media: tuple[str, ...] = (JSON_MEDIA,)
    required: bool = True


class Response(Struct, frozen=True):
    """One answer to expect. Without a `schema` the answer has no body."""

    status: str
    description: str
    schema: type[Any] | Json | None = None
    examples: Examples = {}
    headers: Json = {}
    links: Json = {}
    media: tuple[str, ...] = (JSON_MEDIA,)


class Callback(Struct, frozen=True):
    """The request that Duetime makes to `url`, an OpenAPI runtime expression, for a timer."""

    url: str
    summary: str
    description: str
    body: Body
    responses: tuple[Response, ...]


class Route(Struct, frozen=True, kw_only=True):
    """One method of one path, and who may use it.

    Without a `role` a GET needs `read`, and everything else needs `write`, unless `any_role` will
    do. One `for_all_namespaces` is not for keys that see some of them only. One that `needs_store`
    is refused until the service has started; others also accept keys that were right when the store
    was last read.

    `audit` is the word for it in the audit log, such as `timer.cancel`; those that only read have
    none, and are recorded if they show secrets. One that `replaces` may do so with a timer that
    exists, and is then recorded in any case.
    """

    id: str
    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    needs_key: bool = True
    needs_store: bool = True
    role: Role | None = None
    any_role: bool = False
    for_all_namespaces: bool = False
    audit: str | None = None
    replaces: bool = False
    parameters: tuple[Parameter, ...] = ()

    @property
    def needed_role(self) -> Role:
        if self.role is not None:
            return self.role
        return Role.READ if self.method == "GET" else Role.WRITE

    @property
    def reads_query(self) -> bool:
        return any(parameter.place == "query" for parameter in self.parameters)


class Operation(Route, Generic[H], frozen=True, kw_only=True):
    """A route of an API, answered by a method of the class `H`. Without a `tag` the OpenAPI
    document and the docs page leave the operation out."""

    handler: Callable[[H, Scope, Receive], Awaitable[Answer]]
    tag: Tag | None = None
    summary: str = ""
    description: str = ""
    body: Body | None = None
    responses: tuple[Response, ...] = ()
    callback: Callback | None = None


class Endpoint(NamedTuple):
    """An operation and its handler, which has its services."""

    operation: Operation[Any]
    handle: Handler


_IN_SCOPE = "duetime.operation"


def note_operation(scope: Scope, operation: Route) -> None:
    scope[_IN_SCOPE] = operation


def noted_operation(scope: Scope) -> Route | None:
    """The operation that a request is for; None if it is for none."""
    return scope.get(_IN_SCOPE)


class OperationGroup(Struct, Generic[H], frozen=True):
    """Operations that one object of the class `handlers` answers."""

    handlers: type[H]
    operations: tuple[Operation[H], ...]


def bind(groups: Iterable[OperationGroup[Any]], *handlers: object) -> tuple[Endpoint, ...]:
    """The endpoints of all groups. Each group needs one object of its class."""
    by_class = {type(each): each for each in handlers}
    return tuple(
        Endpoint(operation, partial(operation.handler, by_class[group.handlers]))
        for group in groups
        for operation in group.operations
    )


def links(parameters: Json, **operation_ids: str) -> Json:
    """Links from a created timer to the operations on it."""
    return {
        name: {"operationId": operation_id, "parameters": parameters}
        for name, operation_id in operation_ids.items()
    }


def choice_parameter(
    name: str, description: str, choices: Iterable[str], default: str | None = None
) -> Parameter:
    schema: dict[str, object] = {"type": "string", "enum": list(choices)}
    if default is not None:
        schema["default"] = default
    return Parameter(name, description, schema)


def number_parameter(name: str, description: str, low: int, high: int, default: int) -> Parameter:
    schema = {"type": "integer", "minimum": low, "maximum": high, "default": default}
    return Parameter(name, description, schema)


class Bound(Protocol):
    """A route with its handler."""

    @property
    def operation(self) -> Route: ...


E = TypeVar("E", bound=Bound)


def asked_for(scope: Scope) -> tuple[bytes, str]:
    """The path as it was sent, without the query, and the method. HEAD is like GET."""
    method = "GET" if scope["method"] == "HEAD" else scope["method"]
    path: bytes = scope["raw_path"]
    return path.partition(b"?")[0], method


class PathTable(Generic[E]):
    """Matches the path as sent, because an id may contain slashes, encoded or not.

    Two operations may match the same path, and the method decides: a POST to a path that ends in
    `/cancel` cancels a timer, and a GET reads the timer whose id ends so.
    """

    def __init__(self, endpoints: Iterable[E]) -> None:
        self._exact: dict[bytes, dict[str, E]] = {}
        self._patterns: dict[re.Pattern[bytes], dict[str, E]] = {}
        for endpoint in endpoints:
            operation = endpoint.operation
            if "{" in operation.path:
                methods = self._patterns.setdefault(_pattern_of(operation), {})
            else:
                methods = self._exact.setdefault(operation.path.encode(), {})
            methods[operation.method] = endpoint

    def methods_of(self, path: bytes, scope: Scope, method: str) -> dict[str, E]:
        """The operations of the path, by method: those that have `method` come first. The scope
        gets the parameters of the path."""
        exact = self._exact.get(path)
        if exact is not None:
            return exact
        others: dict[str, E] = {}
        for pattern, methods in self._patterns.items():
            match = pattern.fullmatch(path)
            if match is None:
                continue
            if method in methods:
                scope["path_params"] = match.groupdict()
                return methods
            others = others | methods
        return others


def _pattern_of(operation: Route) -> re.Pattern[bytes]:
    pattern = re.escape(operation.path)
    for parameter in operation.parameters:
        allowed = ".+" if parameter.takes_slashes else "[^/]+"
        name = re.escape("{" + parameter.name + "}")
        pattern = pattern.replace(name, f"(?P<{parameter.name}>{allowed})")
    return re.compile(pattern.encode(), re.DOTALL)
