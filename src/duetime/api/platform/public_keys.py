"""The public keys that verify the signatures of callbacks."""

from base64 import urlsafe_b64encode
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, json
from starlette.types import Receive, Scope

from duetime.api.http.answers import JSON_TYPE, Answer
from duetime.api.http.lifecycle import Lifecycle
from duetime.api.http.operation import (
    RETRY_HEADER,
    SERVICE,
    Operation,
    OperationGroup,
    Parameter,
    Response,
)
from duetime.api.http.query import parameters
from duetime.api.platform.envelope import Code
from duetime.api.platform.types import Error
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.service.security.webhook_secrets import WebhookSecrets

CACHE_SECONDS = 60
"""Time for which a receiver, or a proxy before it, may keep the keys."""

_HEADERS = (*JSON_TYPE, (b"cache-control", b"public, max-age=%d" % CACHE_SECONDS))


_NAMESPACE = Parameter(
    "namespace",
    "The namespace whose signatures the keys verify; `default` if not given.",
    {"type": "string", "default": DEFAULT_NAMESPACE},
)
_KNOWN = frozenset({_NAMESPACE.name})


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
    """Nobody needs an API key to ask, so an unknown namespace is answered like one without keys."""

    def __init__(self, secrets: WebhookSecrets, lifecycle: Lifecycle) -> None:
        self._secrets = secrets
        self._lifecycle = lifecycle

    async def jwks(self, scope: Scope, receive: Receive) -> Answer:
        # The secrets are not known before, and an empty answer would be kept.
        self._lifecycle.check_started()
        given = parameters(scope["query_string"], _KNOWN)
        keys = self._secrets.public_keys(given.get(_NAMESPACE.name, DEFAULT_NAMESPACE))
        body = JwkSet([Jwk(secret_id, _base64url(key)) for secret_id, key in keys.items()])
        return Answer(200, json.encode(body), _HEADERS)


def _base64url(key: bytes) -> str:
    return urlsafe_b64encode(key).decode().rstrip("=")


_EXAMPLE = {
    "kid": "5a0c1d6e-93b7-4f28-8e41-7bd20c9f3a65",
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
        description="The keys that verify signatures of the version `v1a`: those of the current "
        "Ed25519 secrets of one namespace, as a JSON Web Key Set. A receiver asks for the "
        "namespace of its timers, and so accepts no callback of another. Needs no API key, and the "
        "answer for a namespace without keys and for an unknown one is the same: an empty set.",
        parameters=(_NAMESPACE,),
        responses=(
            Response("200", "The keys.", JwkSet, {"One key": {"keys": [_EXAMPLE]}}),
            Response(
                "400",
                "A parameter is wrong.",
                Error,
                {
                    "Unknown parameter": {
                        "code": int(Code.VALIDATION),
                        "message": "ns is not a known parameter: this operation takes namespace",
                        "data": None,
                    }
                },
            ),
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
