"""Secrets that sign callbacks, sealed where they are stored."""

from msgspec.structs import replace

from duetime.domain.errors import CannotUnseal
from duetime.domain.security.credentials import WebhookSecret
from duetime.sealing.sealer import Sealer


class SecretSealer:
    """Seals the text of a secret for its id and namespace."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def sealed(self, secret: WebhookSecret) -> WebhookSecret:
        """The record as it is stored, sealed by the first key; the same one if it is sealed so
        already, if it cannot be unsealed, or if there are no keys."""
        if not self._sealer.can_seal:
            return secret
        if secret.is_sealed and self._sealer.is_sealed_by_first(secret.secret):
            return secret
        try:
            text = self.text_of(secret)
        except CannotUnseal:
            return secret
        sealed = self._sealer.seal(text.encode(), _about(secret))
        return replace(secret, secret=sealed, is_sealed=True)

    def text_of(self, secret: WebhookSecret) -> str:
        """Raises `CannotUnseal`."""
        if not secret.is_sealed:
            return secret.secret
        return self._sealer.unseal(secret.secret, _about(secret)).decode()


def _about(secret: WebhookSecret) -> bytes:
    return f"webhook secret\0{secret.namespace}\0{secret.id}".encode()
