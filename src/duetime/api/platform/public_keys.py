"""The public keys that verify the signatures of callbacks."""

from base64 import urlsafe_b64encode
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, json
from starlette.types import Receive, Scope

from duetime.api.http.answers import JSON_TYPE, Answer
from duetime.api.http.lifecycle import Lifecycle
from duetime.api.http.operation import RETRY_HEADER, SERVICE, Operation, OperationGroup, Response
from duetime.api.platform.envelope import Code
from duetime.api.platform.types import Error
from duetime.service.security.known_signers import PublicKey
from duetime.service.security.webhook_secrets import WebhookSecrets

CACHE_SECONDS = 60
"""Time for which a receiver, or a proxy before it, may keep the keys."""

_HEADERS = (*JSON_TYPE, (b"cache-control", b"public, max-age=%d" % CACHE_SECONDS))


class Jwk(Struct, frozen=True):
    """A public key as RFC 8037 writes it."""

    kid: Annotated[str, Meta(description="The id of the secret that signs.")]
    x: Annotated[str, Meta(description="The key, base64url without padding.")]
    kty: Literal["OKP"] = "OKP"
    crv: Literal["Ed25519"] = "Ed25519"
    alg: Literal["EdDSA"] = "EdDSA"
    use: Literal["sig"] = "sig"


class JwkSet(Struct, frozen=True):
    """A JSON Web Key Set (RFC 7517)."""

    keys: list[Jwk]


class PublicKeys:
    """The answer is kept while the keys stay the same: nobody needs an API key to ask."""

    def __init__(self, secrets: WebhookSecrets, lifecycle: Lifecycle) -> None:
        self._secrets = secrets
        self._lifecycle = lifecycle
        self._answered: tuple[PublicKey, ...] | None = None
        self._answer = Answer(200, b"", _HEADERS)

    async def jwks(self, scope: Scope, receive: Receive) -> Answer:
        # The secrets are not known before, and an empty answer would be kept.
        self._lifecycle.check_started()
        keys = self._secrets.public_keys()
        if keys is not self._answered:
            self._answered = keys
            body = JwkSet([Jwk(each.secret_id, _base64url(each.key)) for each in keys])
            self._answer = Answer(200, json.encode(body), _HEADERS)
        return self._answer


def _base64url(key: bytes) -> str:
    return urlsafe_b64encode(key).decode().rstrip("=")


_EXAMPLE = {
    "kid": "0198f2c4-8d5e-7c3a-9b1f-2a6d4e8c0b57",
    "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
    "kty": "OKP",
    "crv": "Ed25519",
    "alg": "EdDSA",
    "use": "sig",
}

_OPERATIONS: tuple[Operation[PublicKeys], ...] = (
    Operation(
        id="publicKeys",
        method="GET",
        path="/.well-known/jwks.json",
        handler=PublicKeys.jwks,
        needs_key=False,
        tag=SERVICE,
        summary="Get the public keys of signatures",
        description="The keys that verify signatures of the version `v1a`: those of all current "
        "Ed25519 secrets, as a JSON Web Key Set. Needs no API key.",
        responses=(
            Response("200", "The keys.", JwkSet, {"One key": {"keys": [_EXAMPLE]}}),
            Response(
                "503",
                "The service starts.",
                Error,
                {
                    "Starting": {
                        "code": int(Code.UNEXPECTED),
                        "message": "the service is starting, try again later",
                        "data": None,
                    }
                },
                headers=RETRY_HEADER,
            ),
        ),
    ),
)

PUBLIC_KEYS: tuple[OperationGroup[Any], ...] = (OperationGroup(PublicKeys, _OPERATIONS),)
