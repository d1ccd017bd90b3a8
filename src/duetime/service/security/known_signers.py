"""The secrets that sign callbacks, as this process last saw them."""

from collections.abc import Callable, Iterable, Sequence

import structlog
from msgspec import Struct

from duetime.domain.instants import Instant
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.domain.security.credentials import Credential, SecretKind, WebhookSecret
from duetime.domain.security.secret_text import parse_secret
from duetime.ports.clock import Clock
from duetime.ports.signer import Signer

MakeSigner = Callable[[SecretKind, bytes], Signer]

OpenSecret = Callable[[WebhookSecret], str]
"""The text of a secret, unsealed if the record is sealed. Raises ValueError if that fails."""

_log = structlog.get_logger()


class PublicKey(Struct, frozen=True):
    """The key that verifies the signatures of the secret with this id."""

    secret_id: str
    key: bytes


class _Ready(Struct, frozen=True):
    """The signers of a namespace, in the order of their signatures, until one expires."""

    by_id: dict[str, Signer]
    signers: tuple[Signer, ...]
    until_exclusive: Instant | None

    def holds(self, clock: Clock) -> bool:
        return self.until_exclusive is None or clock.now() < self.until_exclusive


class _PublicKeys(Struct, frozen=True):
    keys: tuple[PublicKey, ...]
    until_exclusive: Instant | None


def text_of(secret: WebhookSecret) -> str:
    """For a service that encrypts nothing."""
    if secret.is_sealed:
        raise ValueError("it is sealed, and ENCRYPTION_KEYS is not set")
    return secret.secret


class KnownSigners:
    """Implements the signer view port. A `CredentialWatch` shows it the stored secrets; the texts
    in `configured` sign the callbacks of `default` besides them.

    Signers are made when a callback needs them first, so a change costs little however many
    namespaces there are.
    """

    def __init__(
        self,
        clock: Clock,
        make_signer: MakeSigner,
        *,
        configured: Iterable[str] = (),
        open_secret: OpenSecret = text_of,
    ) -> None:
        self._clock = clock
        self._make_signer = make_signer
        self._open_secret = open_secret
        self.configured = tuple(
            WebhookSecret(
                id=f"configured-{number}",
                namespace=DEFAULT_NAMESPACE,
                secret=text,
                kind=parse_secret(text)[0],
                created_at=Instant(0),
            )
            for number, text in enumerate(configured, start=1)
        )
        self._secrets: dict[str, list[WebhookSecret]] = {}
        self._ready: dict[str, _Ready] = {}
        self._public_keys: _PublicKeys | None = None
        self.see(())

    def see(self, credentials: Sequence[Credential]) -> None:
        secrets: dict[str, list[WebhookSecret]] = {}
        for each in (*self.configured, *credentials):
            if isinstance(each, WebhookSecret):
                secrets.setdefault(each.namespace, []).append(each)
        self._ready = {
            namespace: ready
            for namespace, ready in self._ready.items()
            if secrets.get(namespace) == self._secrets.get(namespace)
        }
        self._secrets = secrets
        self._public_keys = None

    def signers(self, namespace: str) -> tuple[Signer, ...]:
        return self._ready_for(namespace).signers if namespace in self._secrets else ()

    def all_secrets(self, namespace: str) -> Sequence[WebhookSecret]:
        """The secrets of the namespace, expired ones too."""
        return self._secrets.get(namespace, ())

    def public_key(self, secret: WebhookSecret) -> bytes | None:
        """The key that verifies the secret's signatures, if there is one."""
        if secret.kind is not SecretKind.ED25519:
            return None
        signer = self._ready_for(secret.namespace).by_id.get(secret.id)
        return None if signer is None else signer.public_key

    def public_keys(self) -> tuple[PublicKey, ...]:
        """All that verify signatures now. The same object as before if nothing changed."""
        known, now = self._public_keys, self._clock.now()
        if known is None or (known.until_exclusive is not None and now >= known.until_exclusive):
            current = [
                secret
                for secrets in self._secrets.values()
                for secret in secrets
                if secret.kind is SecretKind.ED25519 and is_current(secret, now)
            ]
            keys = tuple(
                PublicKey(secret.id, key)
                for secret in current
                if (key := self.public_key(secret)) is not None
            )
            known = self._public_keys = _PublicKeys(keys, _first_expiry(current))
        return known.keys

    def _ready_for(self, namespace: str) -> _Ready:
        ready = self._ready.get(namespace)
        if ready is None or not ready.holds(self._clock):
            ready = self._ready[namespace] = self._made_for(namespace)
        return ready

    def _made_for(self, namespace: str) -> _Ready:
        now = self._clock.now()
        current = [each for each in self.all_secrets(namespace) if is_current(each, now)]
        by_id: dict[str, Signer] = {}
        # HMAC first: every receiver understands it.
        for secret in sorted(current, key=lambda each: each.kind is not SecretKind.HMAC):
            try:
                by_id[secret.id] = self._make_signer(*parse_secret(self._open_secret(secret)))
            except ValueError as error:
                # Other secrets sign. A receiver that expects this one refuses the callbacks.
                _log.error(
                    "secret.unreadable", namespace=namespace, secret=secret.id, reason=str(error)
                )
        return _Ready(by_id, tuple(by_id.values()), _first_expiry(current))


def is_current(secret: WebhookSecret, now: Instant) -> bool:
    return secret.expires_at is None or now < secret.expires_at


def _first_expiry(secrets: Iterable[WebhookSecret]) -> Instant | None:
    return min((each.expires_at for each in secrets if each.expires_at is not None), default=None)
