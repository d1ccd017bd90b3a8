"""The secrets that sign callbacks, as this process last saw them."""

from collections.abc import Callable, Iterable, Sequence

import structlog
from msgspec import Struct

from duetime.domain.errors import CannotUnseal, LocalShortage
from duetime.domain.instants import Instant
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.domain.security.credentials import Credential, SecretKind, WebhookSecret
from duetime.domain.security.secret_text import parse_secret
from duetime.ports.clock import Clock
from duetime.ports.signer import Signer

MakeSigner = Callable[[SecretKind, bytes], Signer]

OpenSecret = Callable[[WebhookSecret], str]
"""The text of a secret, unsealed if the record is sealed. Raises `CannotUnseal`, or
ValueError if it is damaged."""

_log = structlog.get_logger()


class _Ready(Struct, frozen=True):
    """The signers of a namespace, in the order of their signatures, until one expires. `lacks`
    names the resource without which one of them cannot be made."""

    by_id: dict[str, Signer]
    signers: tuple[Signer, ...]
    until_exclusive: Instant | None
    lacks: str | None

    def holds(self, clock: Clock) -> bool:
        return self.until_exclusive is None or clock.now() < self.until_exclusive


def text_of(secret: WebhookSecret) -> str:
    """For a service that encrypts nothing."""
    if secret.is_sealed:
        raise ValueError("it is sealed, and ENCRYPTION_KEYS is not set")
    return secret.secret


class KnownSigners:
    """Implements the signer view port. A `CredentialWatch` shows it the stored secrets; the texts
    in `configured` sign the callbacks of `default` besides them.

    Signers are made when a callback needs them first, so a change costs little however many
    namespaces there are. A namespace with a current secret that cannot be opened has a shortage
    instead of signers: its callbacks must never go out without that signature.
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

    def signers(self, namespace: str) -> tuple[Signer, ...]:
        if namespace not in self._secrets:
            return ()
        ready = self._ready_for(namespace)
        if ready.lacks is not None:
            raise LocalShortage(ready.lacks)
        return ready.signers

    def all_secrets(self, namespace: str) -> Sequence[WebhookSecret]:
        """The secrets of the namespace, expired ones too."""
        return self._secrets.get(namespace, ())

    def namespaces(self) -> list[str]:
        """The namespaces that have secrets, expired ones too."""
        return list(self._secrets)

    def public_key(self, secret: WebhookSecret) -> bytes | None:
        """The key that verifies the secret's signatures, if there is one."""
        if secret.kind is not SecretKind.ED25519:
            return None
        signer = self._ready_for(secret.namespace).by_id.get(secret.id)
        return None if signer is None else signer.public_key

    def public_keys(self, namespace: str) -> dict[str, bytes]:
        """The keys that verify signatures of the namespace now, by the ids of their secrets."""
        if namespace not in self._secrets:
            return {}
        signers = self._ready_for(namespace).by_id.items()
        return {id: each.public_key for id, each in signers if each.public_key is not None}

    def all_stored(self) -> list[WebhookSecret]:
        """The stored secrets of all namespaces, expired ones too."""
        every = [each for secrets in self._secrets.values() for each in secrets]
        return [each for each in every if each not in self.configured]

    def _ready_for(self, namespace: str) -> _Ready:
        ready = self._ready.get(namespace)
        if ready is None or not ready.holds(self._clock):
            ready = self._ready[namespace] = self._made_for(namespace)
        return ready

    def _made_for(self, namespace: str) -> _Ready:
        now = self._clock.now()
        current = [each for each in self.all_secrets(namespace) if is_current(each, now)]
        by_id: dict[str, Signer] = {}
        lacks = None
        # HMAC first: every receiver understands it.
        for secret in sorted(current, key=lambda each: each.kind is not SecretKind.HMAC):
            try:
                by_id[secret.id] = self._make_signer(*parse_secret(self._open_secret(secret)))
            except (CannotUnseal, ValueError) as error:
                lacks = f"readable webhook secret ({secret.id})"
                if isinstance(error, CannotUnseal):
                    lacks = f"encryption key {error.key_id}"
                _log.error(
                    "secret.unreadable", namespace=namespace, secret=secret.id, reason=str(error)
                )
        return _Ready(by_id, tuple(by_id.values()), _first_expiry(current), lacks)


def is_current(secret: WebhookSecret, now: Instant) -> bool:
    return secret.expires_at is None or now < secret.expires_at


def _first_expiry(secrets: Iterable[WebhookSecret]) -> Instant | None:
    return min((each.expires_at for each in secrets if each.expires_at is not None), default=None)
