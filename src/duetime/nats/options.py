"""Address of a NATS server, and the credentials and TLS files to use there."""

import base64
import re
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from duetime.nats.failures import NatsFailure

DEFAULT_PORT = 4222

_USER_JWT = re.compile(r"-{3,}BEGIN NATS USER JWT-{3,}\s+(\S+)\s")
_USER_SEED = re.compile(r"-{3,}BEGIN USER NKEY SEED-{3,}\s+(\S+)\s")


class NatsOptions(Struct, frozen=True, kw_only=True):
    """`url` is `nats://host:port` or `tls://host:port`, without a user. With `tls://`, or with any
    of the TLS files, nothing is sent to a server that does not speak TLS.

    A connection to a silent server is dropped after three times `ping_interval_seconds`, if not
    earlier."""

    url: str
    user: str | None = None
    password: str | None = None
    credentials_file: str | None = None
    tls_ca_file: str | None = None
    tls_cert_file: str | None = None
    tls_key_file: str | None = None
    name: str = "duetime"
    connect_timeout_seconds: int = 5
    ping_interval_seconds: float = 5

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def display_name(self) -> str:
        """The URL without any secret."""
        parts = urlsplit(self.url)
        address = parts.netloc.rpartition("@")[2]
        return f"{parts.scheme}://{address if parts.port else f'{address}:{DEFAULT_PORT}'}"

    @property
    def uses_tls(self) -> bool:
        files = (self.tls_ca_file, self.tls_cert_file, self.tls_key_file)
        return urlsplit(self.url).scheme == "tls" or any(files)


def ssl_context(options: NatsOptions) -> ssl.SSLContext | None:
    """Raises `NatsFailure` if the TLS files cannot be used."""
    if not options.uses_tls:
        return None
    try:
        context = ssl.create_default_context(cafile=options.tls_ca_file)
        if options.tls_cert_file:
            context.load_cert_chain(options.tls_cert_file, options.tls_key_file)
    except OSError as error:
        reason = error.strerror or "it holds no certificate"
        files = [options.tls_ca_file, options.tls_cert_file, options.tls_key_file]
        named = ", ".join(file for file in files if file)
        raise NatsFailure(f"cannot use the TLS files {named}: {reason}") from None
    return context


class UserCredentials:
    """A `.creds` file, read for every connection because it may be replaced in between.

    The library could read it, but never returns from a file that is not one.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def jwt(self) -> bytes:
        return self._find(_USER_JWT).encode()

    def sign(self, nonce: str) -> bytes:
        # Imported here: only credentials files need this library.
        import nkeys  # type: ignore[import-untyped]

        pair = nkeys.from_seed(bytearray(self._find(_USER_SEED).encode()))
        try:
            return base64.b64encode(pair.sign(nonce.encode()))
        finally:
            pair.wipe()

    def _find(self, pattern: re.Pattern[str]) -> str:
        try:
            found = pattern.search(Path(self._path).read_text())
        except (OSError, UnicodeDecodeError):
            raise NatsFailure(f"cannot read the credentials file {self._path}") from None
        if found is None:
            raise NatsFailure(f"{self._path} is not a NATS credentials file")
        return found[1]
