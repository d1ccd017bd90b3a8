"""The operations of the v1 API on the secrets that sign callbacks."""

from duetime.api.http.operation import Body, Operation, Parameter, Response, Tag
from duetime.api.http.types import KEY_TEXT
from duetime.api.v1.routes import examples
from duetime.api.v1.routes import responses as failures
from duetime.api.v1.routes.responses import ok, with_failures
from duetime.api.v1.security.secret_types import NewSecretAnswer, NewSecretBody, SecretListAnswer
from duetime.api.v1.security.secrets import SecretsV1
from duetime.domain.security.access import Role

SECRETS = Tag(
    "Secrets v1",
    "Secrets that sign the callbacks of a namespace, as Standard Webhooks specifies. Every "
    "current secret signs each callback. Without a secret callbacks are not signed.",
)
_NAMESPACE = Parameter(
    "namespace",
    "The namespace's name, percent-encoded in UTF-8; a slash is `%2F`.",
    {"type": "string", **KEY_TEXT},
    place="path",
    example=examples.OTHER_NAMESPACE,
)
_ID = Parameter(
    "secretId", "The secret's id.", {"type": "string"}, place="path", example=examples.SECRET_ID
)
_PATH = "/api/v1/namespaces/{namespace}/secrets"

SECRET_OPERATIONS: tuple[Operation[SecretsV1], ...] = (
    Operation(
        id="createSecretV1",
        method="POST",
        path=_PATH,
        role=Role.ADMIN,
        audit="secret.create",
        handler=SecretsV1.create,
        tag=SECRETS,
        summary="Create a secret, or rotate",
        description="The secret signs from now on, on other nodes within two seconds. Only this "
        "answer shows it. To rotate, give `expireOthersAfter`: until then old and new secrets "
        "sign, and receivers can change from one to the other.",
        parameters=(_NAMESPACE,),
        body=Body(
            NewSecretBody,
            {
                "One more": {},
                "Rotate": {"expireOthersAfter": "24h"},
                "With a public key": {"type": "ed25519"},
            },
            required=False,
        ),
        responses=with_failures(
            Response(
                "201",
                "The new secret.",
                NewSecretAnswer,
                {"HMAC": examples.NEW_SECRET, "Ed25519": examples.NEW_ED25519_SECRET},
            ),
            failures.INVALID_SECRET,
            failures.NO_SUCH_NAMESPACE,
            failures.TOO_MANY_SECRETS,
            failures.TOO_LARGE,
        ),
    ),
    Operation(
        id="listSecretsV1",
        method="GET",
        path=_PATH,
        role=Role.ADMIN,
        handler=SecretsV1.page,
        tag=SECRETS,
        summary="List the secrets of a namespace",
        description="The secrets that sign now, without their texts.",
        parameters=(_NAMESPACE,),
        responses=with_failures(
            ok(
                "The secrets of `WEBHOOK_SECRETS` first, then the oldest.",
                SecretListAnswer,
                {"During a rotation": {"secrets": examples.SECRETS}},
            ),
            failures.UNREADABLE_NAME,
            failures.NO_SUCH_NAMESPACE,
        ),
    ),
    Operation(
        id="revokeSecretV1",
        method="DELETE",
        path=f"{_PATH}/{{secretId}}",
        role=Role.ADMIN,
        audit="secret.revoke",
        handler=SecretsV1.revoke,
        tag=SECRETS,
        summary="Revoke a secret",
        description="The secret signs no more, on other nodes within two seconds.",
        parameters=(_NAMESPACE, _ID),
        responses=with_failures(
            Response("204", "The secret is gone."),
            failures.UNREADABLE_NAME,
            failures.NO_SECRET,
            failures.CONFIGURED_SECRET,
        ),
    ),
)
