"""The settings of security. Together with `definitions`, every setting is declared once."""

from dataclasses import dataclass

from duetime.domain.limits import MAX_SECRETS
from duetime.domain.security.secret_text import parse_secret
from duetime.settings.setting import setting


def webhook_secrets(text: str) -> tuple[str, ...]:
    secrets = tuple(part.strip() for part in text.split(",") if part.strip())
    for number, secret in enumerate(secrets, start=1):
        try:
            parse_secret(secret)
        except ValueError as error:
            raise ValueError(f"a list of secrets, and number {number} must be {error}") from None
    if len(set(secrets)) < len(secrets):
        raise ValueError("a list of secrets that are all different")
    if len(secrets) > MAX_SECRETS:
        raise ValueError(f"a list of at most {MAX_SECRETS} secrets")
    return secrets


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuritySettings:
    """The settings of security, which are a part of `Settings`."""

    webhook_secrets: tuple[str, ...] | None = setting(
        "Delivery",
        webhook_secrets,
        None,
        "secret, ...",
        "Secrets that sign the callbacks of the namespace default, besides those made by duetime "
        "secrets: whsec_... (HMAC) or whsk_... (Ed25519), with commas between them.",
        secret=True,
    )
