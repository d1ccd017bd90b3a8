"""The settings of security. Together with `definitions`, every setting is declared once."""

import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from duetime.domain.limits import MAX_RETENTION_DAYS, MAX_SECRETS
from duetime.domain.security.callback_networks import CallbackNetworks
from duetime.domain.security.secret_text import parse_secret
from duetime.sealing.sealer import SealingKey
from duetime.settings.parsers import choice, encryption_keys, number, readable_file
from duetime.settings.setting import setting
from duetime.settings.values import ClientCertificate, ProxySettings, Switch

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


def proxy_url(text: str) -> ProxySettings:
    """http://user:password@host:port; user and password may be percent-encoded."""
    expected = "a URL such as http://user:password@proxy.example:3128"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError(expected) from None
    if parts.scheme != "http" or not host or not host.isascii():
        # TLS to endpoints is inside the tunnel, so the proxy need not be trusted with anything.
        raise ValueError(expected)
    if not port or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError(f"{expected}, with the port and without a path")
    return ProxySettings(
        host=host,
        port=port,
        user=None if parts.username is None else unquote(parts.username),
        password=unquote(parts.password or ""),
    )


def authorities_file(text: str) -> Path:
    """A PEM file with at least one certificate."""
    path = readable_file(text)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except (ssl.SSLError, ValueError):
        raise ValueError("the path of a file with certificates in PEM") from None
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuritySettings:
    """The settings of security, which are a part of `Settings`. `client_certificates` has the
    namespaces with a certificate of their own."""

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
    callback_networks: CallbackNetworks = setting(
        "Delivery",
        CallbackNetworks.parse,
        "public",
        "public, private, loopback, CIDR, host, *.suffix; each with :port or without",
        "The networks and hosts that HTTP callbacks may go to. Link-local, cloud metadata and "
        "other special ranges are refused unless a CIDR inside the range is listed.",
    )
    callback_proxy: ProxySettings | None = setting(
        "Delivery",
        proxy_url,
        None,
        "url",
        "HTTP proxy through which all HTTP callbacks go (CONNECT), as "
        "http://user:password@host:port.",
        url=True,
    )
    callback_proxy_guard: Switch = setting(
        "Delivery",
        choice(Switch),
        "off",
        "on, off",
        "With CALLBACK_PROXY: on = CALLBACK_NETWORKS applies too, names are resolved here, and the "
        "proxy is given addresses; off = the proxy alone decides.",
    )
    callback_ca_file: Path | None = setting(
        "Delivery",
        authorities_file,
        None,
        "path",
        "Certificates of authorities that endpoints may have theirs from, in PEM, besides those of "
        "the system.",
    )
    client_certificates: dict[str, ClientCertificate] = field(default_factory=dict)

    @property
    def judges_callbacks(self) -> bool:
        """Whether `callback_networks` applies."""
        return self.callback_proxy is None or self.callback_proxy_guard is Switch.ON
