"""The handlers of the v1 API for the secrets that sign callbacks."""

from msgspec import UNSET, json
from msgspec.structs import asdict
from starlette.types import Receive, Scope

from duetime.api.http.answers import JSON_TYPE, Answer, Headers
from duetime.api.http.auditing import given_members
from duetime.api.http.body import read_body
from duetime.api.http.caller import caller_of
from duetime.api.http.decoding import BodyDecoder
from duetime.api.http.values import instant_or_none
from duetime.api.v1.answers import NO_CONTENT, ok
from duetime.api.v1.requests import path_text
from duetime.api.v1.security.secret_types import (
    NewSecretAnswer,
    NewSecretBody,
    SecretAnswer,
    SecretListAnswer,
)
from duetime.domain.errors import InvalidInput, NamespaceNotFound, NoSuchNamespace
from duetime.domain.instants import parse_duration_ms
from duetime.domain.security.credentials import SecretKind
from duetime.domain.security.secret_text import format_public_key
from duetime.service.security.webhook_secrets import ListedSecret, WebhookSecrets

_NEVER_STORED: Headers = ((b"cache-control", b"no-store"),)

_decode = BodyDecoder(NewSecretBody, {"type": "'hmac' or 'ed25519'"}).decode


class SecretsV1:
    """Each method answers a request or raises."""

    def __init__(self, secrets: WebhookSecrets, *, max_body_bytes: int) -> None:
        self._secrets = secrets
        self._max_body_bytes = max_body_bytes

    async def create(self, scope: Scope, receive: Receive) -> Answer:
        namespace = _namespace_in_path(scope)
        content = await read_body(scope, receive, self._max_body_bytes)
        body = _decode(content) if content else NewSecretBody()
        caller_of(scope).note(given_members(body, "type", "expireOthersAfter"))
        new = await self._secrets.create(
            namespace,
            None if body.type is UNSET else SecretKind(body.type),
            None if body.expire_others_after is UNSET else _overlap_ms(body.expire_others_after),
        )
        caller_of(scope).reach(namespace, new.listed.id)
        answer = NewSecretAnswer(**asdict(_answer_of(new.listed)), secret=new.text)
        return Answer(201, json.encode(answer), JSON_TYPE + _NEVER_STORED)

    async def page(self, scope: Scope, receive: Receive) -> Answer:
        current = await self._secrets.current(_namespace_in_path(scope))
        return ok(SecretListAnswer([_answer_of(each) for each in current]))

    async def revoke(self, scope: Scope, receive: Receive) -> Answer:
        id = path_text(scope, "secretId", "secret_id")
        await self._secrets.revoke(_namespace_in_path(scope, id), id)
        return NO_CONTENT


def _namespace_in_path(scope: Scope, id: str | None = None) -> str:
    name = path_text(scope, "namespace", "namespace")
    try:
        return caller_of(scope).reach(name, id)
    except NamespaceNotFound:
        raise NoSuchNamespace(name) from None


def _overlap_ms(text: str) -> int:
    try:
        return parse_duration_ms(text)
    except ValueError as error:
        raise InvalidInput("expire_others_after", str(error)) from None


def _answer_of(secret: ListedSecret) -> SecretAnswer:
    key = secret.public_key
    return SecretAnswer(
        id=secret.id,
        type=secret.kind.value,
        created_at=instant_or_none(secret.created_at),
        expires_at=instant_or_none(secret.expires_at),
        public_key=UNSET if key is None else format_public_key(key),
    )
