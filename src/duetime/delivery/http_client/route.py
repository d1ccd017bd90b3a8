"""The way in which some requests connect."""

import ssl
from dataclasses import dataclass
from pathlib import Path

from duetime.delivery.http_client.resolver import Resolve


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """Requests of one route share connections; those of another route never use them.

    `resolve` decides which addresses may be connected to. `ssl_context` is used unchanged, so it
    chooses verification, ALPN and the client certificate.
    """

    resolve: Resolve
    ssl_context: ssl.SSLContext


PoolKey = tuple[Route, str]
"""Requests with the same route and origin may use the same connection."""


def default_ssl_context(
    ca_file: Path | None = None, client_certificate: tuple[Path, Path] | None = None
) -> ssl.SSLContext:
    """Verifies certificate and host name against the system's authorities, and those in `ca_file`.
    `client_certificate` names the files of certificate and key. Raises OSError, which includes
    ssl.SSLError, if a file cannot be used."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    if ca_file is not None:
        context.load_verify_locations(ca_file)
    if client_certificate is not None:
        # With an empty password an encrypted key is an error, and not a question on the terminal.
        context.load_cert_chain(*client_certificate, password="")
    return context
