"""Create, list, rotate and revoke the secrets that sign callbacks."""

import asyncio
from collections.abc import Callable, Iterable
from secrets import token_bytes
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from duetime.domain.errors import (
    InvalidInput,
    NamespaceDeleting,
    NoSuchNamespace,
    SecretConfigured,
    SecretNotFound,
    StoreUnavailable,
    TooManySecrets,
)
from duetime.domain.instants import Instant, format_duration, plus_ms
from duetime.domain.limits import MAX_SECRET_OVERLAP_MS, MAX_SECRETS, SEED_BYTES
from duetime.domain.security.credentials import SecretKind, WebhookSecret
from duetime.domain.security.secret_text import format_secret
from duetime.ports.clock import Clock
from duetime.ports.security import SecurityStore
from duetime.service.namespaces import Namespaces
from duetime.service.security.credential_watch import CredentialWatch
from duetime.service.security.known_signers import KnownSigners, is_current

MAX_SHORTENINGS = 10
"""Tries to let a secret expire earlier while other nodes change it."""

SealSecret = Callable[[WebhookSecret], WebhookSecret]
"""The record as it is stored, sealed if the service encrypts what it keeps."""


class ListedSecret(Struct, frozen=True):
    """A secret without its text. One that is configured was never created."""

    id: str
    kind: SecretKind
    created_at: Instant | None
    expires_at: Instant | None
    public_key: bytes | None


class NewSecret(Struct, frozen=True):
    """A secret with its text, which is not shown again."""

    listed: ListedSecret
    text: str


def _as_it_is(secret: WebhookSecret) -> WebhookSecret:
    return secret


class WebhookSecrets:
    """A change holds on this node at once, and on the others within two seconds. Secrets that have
    expired are forgotten when those of their namespace are asked for."""

    def __init__(
        self,
        store: SecurityStore,
        watch: CredentialWatch,
        known: KnownSigners,
        namespaces: Namespaces,
        clock: Clock,
        *,
        seal: SealSecret = _as_it_is,
    ) -> None:
        self._store = store
        self._watch = watch
        self._known = known
        self._namespaces = namespaces
        self._clock = clock
        self._seal = seal
        self._changing = asyncio.Lock()

    async def create(
        self,
        namespace: str,
        kind: SecretKind | None = None,
        expire_others_after_ms: int | None = None,
    ) -> NewSecret:
        """Create a secret that signs besides the others. With `expire_others_after_ms` the others
        of its kind sign for that time only. Without a `kind` the new one is of the kind that the
        others are, else HMAC.

        The new secret is stored first: after a crash the others may sign without an end, but never
        is there no secret. If several calls let a secret expire, the earliest instant counts.
        Raises `NoSuchNamespace`, `NamespaceDeleting`, `InvalidInput`, `TooManySecrets` and
        `StoreUnavailable`.
        """
        if expire_others_after_ms is not None:
            _check_overlap(expire_others_after_ms)
        async with self._changing:
            # Before the check, so that a deletion of the namespace that begins after it finds the
            # secret older than itself.
            created_at = self._clock.now()
            await self._check_namespace(namespace)
            current = await self._current(namespace)
            kind = kind or _kind_like(current)
            replaced: list[WebhookSecret] = []
            if expire_others_after_ms is not None:
                replaced = [each for each in self._stored(current) if each.kind is kind]
            leaving = replaced if expire_others_after_ms == 0 else ()
            if len(current) - len(leaving) >= MAX_SECRETS:
                raise TooManySecrets(namespace, MAX_SECRETS)
            text = format_secret(kind, token_bytes(SEED_BYTES))
            secret = WebhookSecret(
                # Strangers see it beside the public key, and it must not tell when it was made.
                id=str(uuid4()),
                namespace=namespace,
                secret=text,
                kind=kind,
                created_at=created_at,
            )
            await self._store.add_credential(self._seal(secret))
            if expire_others_after_ms is not None:
                await self._expire(replaced, plus_ms(created_at, expire_others_after_ms))
            await self._watch.refresh()
            return NewSecret(self._listed(secret), text)

    async def current(self, namespace: str) -> list[ListedSecret]:
        """The secrets that sign now: those of the settings, then by age. Raises
        `NoSuchNamespace`."""
        await self._check_namespace(namespace, may_be_deleting=True)
        return [self._listed(each) for each in await self._current(namespace)]

    async def namespaces(self) -> list[str]:
        """The namespaces that have secrets, expired ones too. Raises `StoreUnavailable`."""
        await self._watch.refresh()
        return self._known.namespaces()

    def count(self, namespace: str) -> int:
        """The number of its secrets that sign now."""
        now = self._clock.now()
        return sum(is_current(each, now) for each in self._known.all_secrets(namespace))

    async def revoke(self, namespace: str, id: str) -> None:
        """Let the secret sign no more. Raises `NoSuchNamespace`, `SecretNotFound` and
        `SecretConfigured`."""
        await self._check_namespace(namespace, may_be_deleting=True)
        async with self._changing:
            current = await self._current(namespace)
            if id not in [each.id for each in current]:
                raise SecretNotFound
            if id in [each.id for each in self._known.configured]:
                raise SecretConfigured(id)
            await self._store.remove_credential(id)
            await self._watch.refresh()

    async def forget(self, namespace: str, created_until_inclusive: Instant) -> None:
        """Forget the secrets of a namespace that is gone, but not those of one that was created
        under its name since."""
        await self._watch.refresh()
        await self._remove(
            each
            for each in self._stored(self._known.all_secrets(namespace))
            if each.created_at <= created_until_inclusive
        )

    async def seal_again(self) -> None:
        """Seal what is not sealed by the first key of this process, so that the others can be
        given up. A secret that cannot be unsealed is left as it is.

        Several nodes may do so at once, and again after a crash: each record is replaced as a
        whole, and means the same before and after. One that another node has changed or removed
        meanwhile is left to the next start.
        """
        async with self._changing:
            await self._watch.refresh()
            for secret in self._known.all_stored():
                sealed = self._seal(secret)
                if sealed is not secret:
                    await self._store.replace_credential(sealed, expected=secret)
            await self._watch.refresh()

    def public_keys(self, namespace: str) -> dict[str, bytes]:
        """The keys that verify signatures of the namespace now, by the ids of their secrets; none
        for an unknown namespace."""
        return self._known.public_keys(namespace)

    async def _check_namespace(self, name: str, *, may_be_deleting: bool = False) -> None:
        namespace = await self._namespaces.current(name)
        if namespace is None:
            raise NoSuchNamespace(name)
        if namespace.options.deleting and not may_be_deleting:
            raise NamespaceDeleting(name)

    async def _current(self, namespace: str) -> list[WebhookSecret]:
        """The secrets as the store has them now, without expired ones."""
        await self._watch.refresh()
        now = self._clock.now()
        secrets = self._known.all_secrets(namespace)
        await self._remove(each for each in secrets if not is_current(each, now))
        current = [each for each in secrets if is_current(each, now)]
        return sorted(current, key=lambda each: (each.created_at, each.id))

    def _stored(self, secrets: Iterable[WebhookSecret]) -> list[WebhookSecret]:
        configured = {each.id for each in self._known.configured}
        return [each for each in secrets if each.id not in configured]

    async def _expire(self, secrets: Iterable[WebhookSecret], at: Instant) -> None:
        """One that expires earlier already is left as it is."""
        for secret in secrets:
            if at <= self._clock.now():
                await self._store.remove_credential(secret.id)
            else:
                await self._shorten(secret, at)

    async def _shorten(self, secret: WebhookSecret, at: Instant) -> None:
        """Another node may change the secret meanwhile: then the earlier instant counts."""
        for _ in range(MAX_SHORTENINGS):
            if secret.expires_at is not None and secret.expires_at <= at:
                return
            shortened = replace(secret, expires_at=at)
            if await self._store.replace_credential(shortened, expected=secret):
                return
            await self._watch.refresh()
            by_id = {each.id: each for each in self._known.all_secrets(secret.namespace)}
            if secret.id not in by_id:
                return
            secret = by_id[secret.id]
        raise StoreUnavailable("the secrets are being changed elsewhere, try again later")

    async def _remove(self, secrets: Iterable[WebhookSecret]) -> None:
        doomed = [each.id for each in secrets]
        for id in doomed:
            await self._store.remove_credential(id)
        if doomed:
            await self._watch.refresh()

    def _listed(self, secret: WebhookSecret) -> ListedSecret:
        return ListedSecret(
            id=secret.id,
            kind=secret.kind,
            created_at=secret.created_at if self._stored([secret]) else None,
            expires_at=secret.expires_at,
            public_key=self._known.public_key(secret),
        )


def _check_overlap(overlap_ms: int) -> None:
    if not 0 <= overlap_ms <= MAX_SECRET_OVERLAP_MS:
        longest = format_duration(MAX_SECRET_OVERLAP_MS)
        raise InvalidInput("expire_others_after", f"must be from 0s to {longest}")


def _kind_like(secrets: Iterable[WebhookSecret]) -> SecretKind:
    kinds = {each.kind for each in secrets}
    if len(kinds) > 1:
        raise InvalidInput("type", "is needed: the namespace has secrets of both types")
    return kinds.pop() if kinds else SecretKind.HMAC
