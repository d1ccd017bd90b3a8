"""API keys, their sessions, and the secrets that sign callbacks, as the store keeps them."""

from enum import StrEnum

from msgspec import Struct

from duetime.domain.instants import Instant
from duetime.domain.security.access import Access, Role

KEY_PREFIX = "dt"
"""First part of the text of every key that is made: `dt_<id>_<secret>`."""


GRANT_PREFIX = "ui-"
"""First characters of the id of every session and link, and of no other credential."""


class RateLimit(Struct, frozen=True):
    """A bucket of `burst` requests that is filled again with `per_second` of them."""

    per_second: float
    burst: int


class ApiKey(Struct, frozen=True, kw_only=True, tag="key", omit_defaults=True):
    """A key without its secret: only the SHA-256 of that is kept, in hexadecimal. From
    `expires_at` on the key is not accepted. Without `namespaces` it is for all of them. A key that
    was rotated has the id of its successor in `replaced_by`. Without limits of its own a key has
    those of the settings."""

    id: str
    name: str
    secret_sha256: str
    created_at: Instant
    roles: tuple[Role, ...]
    namespaces: tuple[str, ...] | None = None
    expires_at: Instant | None = None
    rate_limit: RateLimit | None = None
    max_concurrent: int | None = None
    replaced_by: str | None = None

    @property
    def access(self) -> Access:
        return Access(
            name=self.name,
            key_id=self.id,
            roles=frozenset(self.roles),
            namespaces=None if self.namespaces is None else frozenset(self.namespaces),
        )


class SecretKind(StrEnum):
    HMAC = "hmac"
    ED25519 = "ed25519"


class WebhookSecret(Struct, frozen=True, kw_only=True, tag="secret", omit_defaults=True):
    """A secret that signs the callbacks of a namespace until `expires_at`. `secret` is its text
    (`whsec_...` or `whsk_...`); if the service encrypts what it keeps, the sealed text."""

    id: str
    namespace: str
    secret: str
    created_at: Instant
    kind: SecretKind = SecretKind.HMAC
    expires_at: Instant | None = None
    is_sealed: bool = False


class KeyGrant(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The right to act as a key until `expires_at`, for whoever has the token. The id is made from
    the SHA-256 of the token, which itself is not kept. The right ends with its key.

    `key_id` is that of a kept key. A grant of the key of the settings has a `key_proof` instead:
    the HMAC of that key by the token, in hexadecimal. So it ends when the setting changes, and
    tells nothing of the key to those who read the store."""

    id: str
    created_at: Instant
    expires_at: Instant
    key_id: str | None = None
    key_proof: str | None = None


class UiSession(KeyGrant, frozen=True, kw_only=True, tag="session"):
    """Somebody is signed in to the Web UI. The token is in the cookie."""


class UiLink(KeyGrant, frozen=True, kw_only=True, tag="link"):
    """A link that signs in to the Web UI once. The token is its code."""


Credential = ApiKey | WebhookSecret | UiSession | UiLink
