"""The settings of security. Together with `definitions`, every setting is declared once."""

import re
from dataclasses import dataclass

from duetime.domain.limits import MAX_RETENTION_DAYS, MAX_SECRETS
from duetime.domain.security.secret_text import parse_secret
from duetime.sealing.sealer import SealingKey
from duetime.settings.parsers import encryption_keys, number
from duetime.settings.setting import setting

_SHARE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)\s*%")


def webhook_secrets(text: str) -> tuple[str, ...]:
    secrets = tuple(part.strip() for part in text.split(",") if part.strip())
    for position, secret in enumerate(secrets, start=1):
        try:
            parse_secret(secret)
        except ValueError as error:
            raise ValueError(f"a list of secrets, and number {position} must be {error}") from None
    if len(set(secrets)) < len(secrets):
        raise ValueError("a list of secrets that are all different")
    if len(secrets) > MAX_SECRETS:
        raise ValueError(f"a list of at most {MAX_SECRETS} secrets")
    return secrets


def share(text: str) -> float:
    """The share of requests, from 0 to 1."""
    match text.lower():
        case "off":
            return 0.0
        case "all":
            return 1.0
    percent = _SHARE.fullmatch(text)
    if percent is None or not 0 < float(percent[1]) <= 100:
        raise ValueError("off, all, or a share such as 1% (above 0%, at most 100%)")
    return float(percent[1]) / 100


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
    audit_creates: float = setting(
        "Access",
        share,
        "off",
        "off, all or a share such as 1%",
        "Creates in the audit log, and commands of the bus: their rate is high, so that only a "
        "sample of them may be recorded. Everything else that changes something is always "
        "recorded.",
    )
    audit_retention_days: float = setting(
        "Access",
        number(0, MAX_RETENTION_DAYS),
        "90",
        "days",
        "Time for which entries of the audit log are kept; 0 = for ever.",
    )
    encryption_keys: tuple[SealingKey, ...] | None = setting(
        "Store",
        encryption_keys,
        None,
        "id:base64, ...",
        "Keys that encrypt the headers and payloads of callbacks, and the secrets that sign them, "
        "in the store. Each has an id of your choice and 32 random bytes in base64 (openssl rand "
        "-base64 32 makes them). The first key encrypts, all of them decrypt.",
        secret=True,
    )
