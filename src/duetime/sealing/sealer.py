"""Sealed texts: AES-256-GCM under one of several keys, which the text names."""

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from duetime.domain.errors import CannotUnseal

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

SETTING = "ENCRYPTION_KEYS"
SEALING_KEY_BYTES = 32
NONCE_BYTES = 12
"""Length of the random nonce. Under one key 2^32 texts may be sealed before two nonces are the same
with a chance of 2^-32."""


class SealingKey(NamedTuple):
    """`secret` has `SEALING_KEY_BYTES`. `id` is stored with every text that the key seals."""

    id: str
    secret: bytes

    def __repr__(self) -> str:
        return f"SealingKey({self.id!r})"


class Sealer:
    """The first key seals, and every key unseals. Without keys nothing can be sealed.

    A text is sealed `about` something, such as the key of a timer, and can be unsealed for that
    only: it cannot be moved elsewhere.
    """

    def __init__(self, keys: Sequence[SealingKey] = ()) -> None:
        self._ciphers = {key.id: _cipher(key) for key in keys}
        self._first = keys[0].id if keys else None

    @property
    def can_seal(self) -> bool:
        return self._first is not None

    def seal(self, text: bytes, about: bytes) -> str:
        """The id of the key, a dot, and nonce and ciphertext in base64."""
        assert self._first is not None, f"{SETTING} is not set"
        nonce = os.urandom(NONCE_BYTES)
        ciphertext = self._ciphers[self._first].encrypt(nonce, text, about)
        return f"{self._first}.{urlsafe_b64encode(nonce + ciphertext).decode()}"

    def is_sealed_by_first(self, sealed: str) -> bool:
        return sealed.rpartition(".")[0] == self._first

    def unseal(self, sealed: str, about: bytes) -> bytes:
        """Raises `CannotUnseal`, which names the key."""
        key_id, _, encoded = sealed.rpartition(".")
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            raise CannotUnseal(key_id, f"the key {key_id!r} is not among {SETTING}")
        from cryptography.exceptions import InvalidTag

        try:
            content = urlsafe_b64decode(encoded)
            return cipher.decrypt(content[:NONCE_BYTES], content[NONCE_BYTES:], about)
        except (InvalidTag, ValueError):
            problem = f"it was altered, or {key_id!r} is another key in {SETTING} than it was"
            raise CannotUnseal(key_id, problem) from None


def _cipher(key: SealingKey) -> "AESGCM":
    # Takes a while to import, and most services do without.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key.secret)
