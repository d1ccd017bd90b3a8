"""The bodies about secrets that the v1 API reads and writes."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from duetime.api.http.types import DURATION, InstantText
from duetime.domain.instants import format_duration
from duetime.domain.limits import MAX_SECRET_OVERLAP_MS

PublicKeyText = Annotated[
    str | UnsetType,
    Meta(description="With `ed25519`: the key that verifies the signatures, `whpk_` and base64."),
]


class NewSecretBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A secret to create. All members may be absent."""

    type: Annotated[
        Literal["hmac", "ed25519"] | UnsetType,
        Meta(
            description="`hmac`: receivers verify with the secret itself. `ed25519`: they verify "
            "with a public key. Unless given, the type of the other secrets of the namespace, "
            "or `hmac` if there are none."
        ),
    ] = UNSET
    expire_others_after: Annotated[
        str | UnsetType,
        Meta(
            description="Rotate: the other secrets of this type sign for this time and no longer. "
            f'At most {format_duration(MAX_SECRET_OVERLAP_MS)}; "0s" ends them at once. Unless '
            "given, they sign as before.",
            extra_json_schema=DURATION,
            examples=["24h"],
        ),
    ] = UNSET


class SecretAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """A secret without its text."""

    id: str
    type: Literal["hmac", "ed25519"]
    created_at: Annotated[
        InstantText | None, Meta(description="null for a secret of `WEBHOOK_SECRETS`.")
    ]
    expires_at: Annotated[
        InstantText | None, Meta(description="From this instant on the secret does not sign.")
    ]
    public_key: PublicKeyText = UNSET


class NewSecretAnswer(SecretAnswer, frozen=True, kw_only=True, rename="camel"):
    """A new secret, with its text."""

    secret: Annotated[
        str,
        Meta(description="`whsec_` or `whsk_` and base64. This is the only time that it is shown."),
    ]


class SecretListAnswer(Struct, frozen=True):
    """The secrets that sign the callbacks of the namespace now."""

    secrets: list[SecretAnswer]
