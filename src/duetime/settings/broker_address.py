"""From the URL of a NATS or Redis server to its settings."""

import re
from urllib.parse import SplitResult, quote, unquote, urlsplit

from duetime.settings.values import (
    BrokerSettings,
    MemoryBrokerSettings,
    NatsBrokerSettings,
    NatsSettings,
    RedisBrokerSettings,
)

DEFAULT_NATS_PORT = 4222
DEFAULT_REDIS_PORT = 6379

_NATS_SCHEMES = ("nats", "tls")
_REDIS_SCHEMES = ("redis", "rediss", "valkey", "valkeys")
_NATS_ACCEPTED = (
    "nats://host:port or tls://host:port of one server, with user:password@ before the host if "
    "needed"
)
SERVER_ACCEPTED = (
    "nats://host:port or tls://host:port, redis://host:port/database or "
    "rediss://host:port/database (or valkey://, valkeys://), each with user:password@ before the "
    "host if needed"
)
_BROKER_ACCEPTED = f"{SERVER_ACCEPTED}; or memory:"
_DATABASE = re.compile(r"/?|/(0|[1-9][0-9]{0,8})")


def nats_url(text: str) -> NatsSettings:
    """Raises ValueError as a parser does."""
    parts = _split(text, _NATS_ACCEPTED)
    if parts.scheme not in _NATS_SCHEMES or parts.path.strip("/"):
        raise ValueError(_NATS_ACCEPTED)
    return NatsSettings(
        url=f"{parts.scheme}://{_place(parts, DEFAULT_NATS_PORT)}",
        user=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
    )


def broker_url(text: str, accepted: str = _BROKER_ACCEPTED) -> BrokerSettings:
    """The broker that the scheme names. Raises ValueError with `accepted`."""
    if text in ("memory:", "memory://"):
        return MemoryBrokerSettings()
    parts = _split(text, accepted)
    if parts.scheme in _NATS_SCHEMES and not parts.path.strip("/"):
        return NatsBrokerSettings(nats=nats_url(text))
    if parts.scheme in _REDIS_SCHEMES and _DATABASE.fullmatch(parts.path):
        return _redis(parts)
    raise ValueError(accepted)


def host_in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _redis(parts: SplitResult) -> RedisBrokerSettings:
    place = f"{_place(parts, DEFAULT_REDIS_PORT)}{parts.path.rstrip('/')}"
    user, password = (quote(unquote(text or ""), "") for text in (parts.username, parts.password))
    user_info = f"{user}:{password}@" if password else f"{user}@" if user else ""
    return RedisBrokerSettings(
        url=f"{parts.scheme}://{user_info}{place}", name=f"{parts.scheme}://{place}"
    )


def _split(text: str, accepted: str) -> SplitResult:
    """The parts of the URL. Several hosts, a query and a fragment are refused."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError(accepted) from None
    host = parts.hostname or ""
    # Unprintable characters would be dropped by urlsplit, or would garble the log.
    if not text.isprintable() or not host or set(host) & set(", ") or port == 0:
        raise ValueError(accepted)
    if parts.query or parts.fragment:
        raise ValueError(accepted)
    return parts


def _place(parts: SplitResult, default_port: int) -> str:
    return f"{host_in_url(parts.hostname or '')}:{parts.port or default_port}"
