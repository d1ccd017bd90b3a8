"""The operations of the v1 API on keys."""

from duetime.api.http.operation import Body, Operation, Parameter, Response, Tag
from duetime.api.v1.routes import responses as failures
from duetime.api.v1.routes.responses import ok, with_failures
from duetime.api.v1.security.key_types import (
    IssuedKeyAnswer,
    KeyBody,
    KeyListAnswer,
    RotationBody,
)
from duetime.api.v1.security.keys import KeysV1
from duetime.domain.security.access import Role

KEYS = Tag(
    "Keys v1",
    "Keys for teams and programs, each with roles, namespaces and limits. All of this needs a key "
    "with the role `admin` for all namespaces. A change holds on every node within 5 seconds.",
)

_KEY_ID = "9c1f4b7e20d85a63"
_COMMON = {
    "id": _KEY_ID,
    "name": "billing",
    "roles": ["read", "write"],
    "namespaces": ["billing"],
    "expiresAt": "2030-12-31T00:00:00Z",
    "createdAt": "2029-12-31T10:30:00Z",
    "rateLimit": {"perSecond": 100.0, "burst": 200},
}
_ISSUED = {**_COMMON, "key": f"dt_{_KEY_ID}_{'0123456789abcdef' * 4}"}
_LISTED = {
    **_COMMON,
    "lastUsedAt": "2030-01-01T11:59:00Z",
    "maxConcurrent": None,
    "replacedBy": None,
}
_NEW = {
    "name": "billing",
    "roles": ["read", "write"],
    "namespaces": ["billing"],
    "expiresAt": "2030-12-31T00:00:00Z",
    "rateLimit": {"perSecond": 100, "burst": 200},
}

_ID = Parameter(
    "keyId",
    "The key's id, which is the middle part of its text.",
    {"type": "string"},
    place="path",
    example=_KEY_ID,
)


def _issued(description: str) -> Response:
    return Response("201", description, IssuedKeyAnswer, {"The only time": _ISSUED})


KEY_OPERATIONS: tuple[Operation[KeysV1], ...] = (
    Operation(
        id="createKeyV1",
        method="POST",
        role=Role.ADMIN,
        for_all_namespaces=True,
        path="/api/v1/keys",
        handler=KeysV1.create,
        audit="key.create",
        tag=KEYS,
        summary="Create a key",
        description="The answer has the text of the key. It is not kept, and never shown again.",
        body=Body(KeyBody, {"A team's key": _NEW}),
        responses=with_failures(
            _issued("The key was created."),
            failures.INVALID_KEY,
            failures.TOO_MANY_KEYS,
            failures.TOO_LARGE,
        ),
    ),
    Operation(
        id="listKeysV1",
        method="GET",
        role=Role.ADMIN,
        for_all_namespaces=True,
        path="/api/v1/keys",
        handler=KeysV1.page,
        tag=KEYS,
        summary="List the keys",
        description="Without their texts. Expired keys are listed for about 30 days.",
        responses=with_failures(
            ok("All keys, the oldest first.", KeyListAnswer, {"One": {"keys": [_LISTED]}}),
            failures.UNKNOWN_PARAMETER,
        ),
    ),
    Operation(
        id="rotateKeyV1",
        method="POST",
        role=Role.ADMIN,
        for_all_namespaces=True,
        path="/api/v1/keys/{keyId}/rotate",
        handler=KeysV1.rotate,
        audit="key.rotate",
        tag=KEYS,
        summary="Replace a key",
        description="Creates a key with the same settings. The old one works on for the `overlap`, "
        "unless it expires earlier. A key that expires has a successor that lives as long as it "
        "was to live.",
        parameters=(_ID,),
        body=Body(RotationBody, {"A week for the change": {"overlap": "7d"}}, required=False),
        responses=with_failures(
            _issued("The successor of the key."),
            failures.INVALID_ROTATION,
            failures.NO_KEY,
            failures.KEY_NOT_ACTIVE,
            failures.TOO_LARGE,
        ),
    ),
    Operation(
        id="revokeKeyV1",
        method="DELETE",
        role=Role.ADMIN,
        for_all_namespaces=True,
        path="/api/v1/keys/{keyId}",
        handler=KeysV1.revoke,
        audit="key.revoke",
        tag=KEYS,
        summary="Revoke a key",
        description="The key stops at once on the node that answers, and within 5 seconds on all "
        "others. It cannot be restored.",
        parameters=(_ID,),
        responses=with_failures(
            Response("204", "The key is gone."),
            failures.UNREADABLE_KEY_ID,
            failures.NO_KEY,
        ),
    ),
)
