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
        """The record as it is stored; the same one if there are no keys."""
        if not self._sealer.can_seal or secret.is_sealed:
            return secret
        text = self._sealer.seal(secret.secret.encode(), _about(secret))
        return replace(secret, secret=text, is_sealed=True)

    def text_of(self, secret: WebhookSecret) -> str:
        """Raises ValueError that names the key if it is missing."""
        if not secret.is_sealed:
            return secret.secret
        try:
            return self._sealer.unseal(secret.secret, _about(secret)).decode()
        except CannotUnseal as error:
            raise ValueError(error.message) from None


def _about(secret: WebhookSecret) -> bytes:
    return f"webhook secret\0{secret.namespace}\0{secret.id}".encode()
