"""The handlers of the v1 API for keys."""

from collections.abc import Sequence
from math import ceil

from msgspec import UNSET, UnsetType, json
from starlette.types import Receive, Scope

from duetime.api.http.answers import JSON_TYPE, Answer
from duetime.api.http.body import read_body
from duetime.api.http.caller import caller_of
from duetime.api.http.decoding import BodyDecoder
from duetime.api.http.values import instant_or_none, parse_instant
from duetime.api.v1.answers import NO_CONTENT, ok
from duetime.api.v1.requests import path_text
from duetime.api.v1.security.key_types import (
    IssuedKeyAnswer,
    KeyAnswer,
    KeyBody,
    KeyListAnswer,
    RateLimitAnswer,
    RateLimitBody,
    RoleText,
    RotationBody,
)
from duetime.domain.defaults import DEFAULT_OVERLAP_MS
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Instant, format_instant, parse_duration_ms
from duetime.domain.security.access import Role
from duetime.domain.security.credentials import ApiKey, RateLimit
from duetime.service.security.keys import ALL_NAMESPACES, IssuedKey, Keys, ListedKey, NewKey

# The answer has the text of a key, which nothing on the way may keep.
_SECRET_ANSWER = (*JSON_TYPE, (b"cache-control", b"no-store"))

_decode_key = BodyDecoder(KeyBody, {"roles": "'read', 'write' or 'admin'"}).decode
_decode_rotation = BodyDecoder(RotationBody, {}).decode


class KeysV1:
    """Each method answers a request or raises."""

    def __init__(self, keys: Keys, *, max_body_bytes: int) -> None:
        self._keys = keys
        self._max_body_bytes = max_body_bytes

    async def create(self, scope: Scope, receive: Receive) -> Answer:
        body = _decode_key(await read_body(scope, receive, self._max_body_bytes))
        caller = caller_of(scope)
        caller.note(key_details(body.roles, body.namespaces))
        issued = await self._keys.create(
            NewKey(
                name=body.name,
                roles=[Role(role) for role in body.roles],
                namespaces=body.namespaces,
                expires_at=_instant_or_none(body.expires_at),
                rate_limit=rate_limit_of(body.rate_limit),
                max_concurrent=None if body.max_concurrent is UNSET else body.max_concurrent,
            )
        )
        caller.target = issued.key.id
        return _issued_answer(issued)

    async def page(self, scope: Scope, receive: Receive) -> Answer:
        return ok(KeyListAnswer([_key_answer(each) for each in await self._keys.all()]))

    async def rotate(self, scope: Scope, receive: Receive) -> Answer:
        id = _id_in_path(scope)
        content = await read_body(scope, receive, self._max_body_bytes)
        overlap = _decode_rotation(content).overlap if content else UNSET
        return _issued_answer(await self._keys.rotate(id, _overlap_ms(overlap)))

    async def revoke(self, scope: Scope, receive: Receive) -> Answer:
        await self._keys.revoke(_id_in_path(scope))
        return NO_CONTENT


def key_details(roles: Sequence[str], namespaces: Sequence[str]) -> dict[str, object]:
    """The words about a new key for the audit log. As JSON: a namespace may have any name."""
    members = {"roles": roles, "namespaces": namespaces}
    return {name: json.encode(each).decode() for name, each in members.items()}


def _id_in_path(scope: Scope) -> str:
    id = path_text(scope, "keyId", "key_id")
    caller_of(scope).target = id
    return id


def _issued_answer(issued: IssuedKey) -> Answer:
    key = issued.key
    answer = IssuedKeyAnswer(
        id=key.id,
        key=issued.text,
        name=key.name,
        roles=_roles(key),
        namespaces=_namespaces(key),
        expires_at=instant_or_none(key.expires_at),
        created_at=format_instant(key.created_at),
        rate_limit=_rate_limit_answer(key) or UNSET,
        max_concurrent=key.max_concurrent or UNSET,
    )
    return Answer(201, json.encode(answer), _SECRET_ANSWER)


def _key_answer(listed: ListedKey) -> KeyAnswer:
    key = listed.key
    return KeyAnswer(
        id=key.id,
        name=key.name,
        roles=_roles(key),
        namespaces=_namespaces(key),
        expires_at=instant_or_none(key.expires_at),
        created_at=format_instant(key.created_at),
        last_used_at=instant_or_none(listed.last_used_at),
        rate_limit=_rate_limit_answer(key),
        max_concurrent=key.max_concurrent,
        replaced_by=key.replaced_by,
    )


def _rate_limit_answer(key: ApiKey) -> RateLimitAnswer | None:
    limit = key.rate_limit
    return None if limit is None else RateLimitAnswer(limit.per_second, limit.burst)


def _roles(key: ApiKey) -> list[RoleText]:
    return [role.value for role in key.roles]


def _namespaces(key: ApiKey) -> list[str]:
    return [ALL_NAMESPACES] if key.namespaces is None else list(key.namespaces)


def _instant_or_none(text: str | UnsetType | None) -> Instant | None:
    return parse_instant("expires_at", text) if isinstance(text, str) else None


def rate_limit_of(body: RateLimitBody | UnsetType | None) -> RateLimit | None:
    if not isinstance(body, RateLimitBody):
        return None
    burst = max(1, ceil(body.per_second)) if body.burst is UNSET else body.burst
    return RateLimit(body.per_second, burst)


def _overlap_ms(text: str | UnsetType) -> int:
    if text is UNSET:
        return DEFAULT_OVERLAP_MS
    try:
        return parse_duration_ms(text)
    except ValueError as error:
        raise InvalidInput("overlap", str(error)) from None
