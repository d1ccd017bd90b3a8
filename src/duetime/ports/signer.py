"""Signatures of callbacks."""

from typing import Protocol


class Signer(Protocol):
    """Signs callbacks with one secret, as Standard Webhooks specifies."""

    @property
    def public_key(self) -> bytes | None:
        """The raw Ed25519 key that verifies the signatures; None if the secret itself does."""
        ...

    def sign(self, content: bytes) -> bytes:
        """A signature for the header `webhook-signature`, with its version: `v1,...`. The content
        is `id.timestamp.body` of the callback. Pure."""
        ...


class SignerView(Protocol):
    """The signers as this process last saw them. Pure and quick."""

    def signers(self, namespace: str) -> "tuple[Signer, ...]":
        """The signers of the namespace; none if its callbacks are not signed. Raises
        `LocalShortage` if they should be signed, and this process cannot: nothing may be sent."""
        ...


class NoSigners:
    """A view without signers, so that nothing is signed."""

    def signers(self, namespace: str) -> tuple[Signer, ...]:
        return ()
