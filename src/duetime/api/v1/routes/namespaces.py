"""The operations of the v1 API on namespaces."""

from duetime.api.http.operation import Body, Operation, Parameter, Tag
from duetime.api.http.types import KEY_LENGTH, KEY_TEXT
from duetime.api.v1.answer_types import NamespaceAnswer, NamespaceListAnswer
from duetime.api.v1.namespaces import FORCE, NamespacesV1
from duetime.api.v1.request_types import NamespaceBody
from duetime.api.v1.routes import examples
from duetime.api.v1.routes import responses as failures
from duetime.api.v1.routes.bulk_operations import ACCEPTED
from duetime.api.v1.routes.responses import ok, with_failures
from duetime.domain.security.access import Role

NAMESPACES = Tag("Namespaces v1", "Scopes of ids, each with settings for its timers.")

# A slash in a namespace's name has to be encoded. Otherwise a slash at the end of the path would
# create another namespace.
_NAME = Parameter(
    "name",
    "The namespace's name, percent-encoded in UTF-8; a slash is `%2F`.",
    {"type": "string", **KEY_TEXT},
    place="path",
    example=examples.OTHER_NAMESPACE,
)
# Letters of other alphabets are accepted as well.
_NEW_NAME = Parameter(
    "name",
    f"{_NAME.description} A new name must not need quotes in a shell.",
    {"type": "string", **KEY_LENGTH, "pattern": "^[A-Za-z0-9._/@%+=:,^][A-Za-z0-9._/@%+=:,^-]*$"},
    place="path",
    example=examples.OTHER_NAMESPACE,
)

NAMESPACE_OPERATIONS: tuple[Operation[NamespacesV1], ...] = (
    Operation(
        id="listNamespacesV1",
        method="GET",
        path="/api/v1/namespaces",
        handler=NamespacesV1.page,
        tag=NAMESPACES,
        summary="List the namespaces",
        responses=with_failures(
            ok(
                "All namespaces, ordered by name.",
                NamespaceListAnswer,
                {"Namespaces": {"namespaces": [examples.NAMESPACE_IN_LIST]}},
            ),
            failures.UNKNOWN_PARAMETER,
        ),
    ),
    Operation(
        id="getNamespaceV1",
        method="GET",
        path="/api/v1/namespaces/{name}",
        handler=NamespacesV1.get,
        tag=NAMESPACES,
        summary="Get a namespace and the number of its timers",
        parameters=(_NAME,),
        responses=with_failures(
            ok("The namespace.", NamespaceAnswer, {"Namespace": examples.NAMESPACE_ANSWER}),
            failures.UNREADABLE_NAME,
            failures.NO_SUCH_NAMESPACE,
        ),
    ),
    Operation(
        id="putNamespaceV1",
        method="PUT",
        role=Role.ADMIN,
        path="/api/v1/namespaces/{name}",
        audit="namespace.put",
        handler=NamespacesV1.put,
        tag=NAMESPACES,
        summary="Create or change a namespace",
        description="Absent members stay as they are, and have their defaults in a new namespace. "
        "The number of shards is fixed once the namespace exists. A key for some namespaces "
        "changes `retention`, `retryPolicy` and `slo` only: to create a namespace or to change its "
        "limits (`concurrency`, `maxPayloadBytes`, `maxPending`, `callbackNetworks`) takes a key "
        "for all.",
        parameters=(_NEW_NAME,),
        body=Body(NamespaceBody, {"All members": examples.NAMESPACE_BODY}),
        responses=with_failures(
            ok(
                "The namespace as it is now.",
                NamespaceAnswer,
                {"Namespace": examples.NAMESPACE_ANSWER},
            ),
            failures.INVALID_SHARDS,
            failures.TOO_LARGE,
            failures.NO_ROOM,
        ),
    ),
    Operation(
        id="deleteNamespaceV1",
        method="DELETE",
        role=Role.ADMIN,
        path="/api/v1/namespaces/{name}",
        audit="namespace.delete",
        handler=NamespacesV1.delete,
        tag=NAMESPACES,
        summary="Delete a namespace",
        description="A bulk operation that forgets the namespace's timers and then the namespace. "
        "From now on the namespace takes no new timers. Without `force` the request is refused "
        "while timers are pending or executing.",
        parameters=(_NAME, FORCE),
        responses=with_failures(
            ACCEPTED,
            failures.UNDELETABLE,
            failures.NO_SUCH_NAMESPACE,
            failures.NOT_EMPTY,
            failures.TOO_MANY_OPERATIONS,
            failures.NO_ROOM,
        ),
    ),
)
