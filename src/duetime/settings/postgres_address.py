"""A PostgreSQL server and database: from a URL in any spelling to the one that the driver reads.

The driver splits a URL at its first `@` and takes unknown parameters for server settings. Here a
URL is taken apart, checked and put together again, so that errors show before anything connects.
"""

import re
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from duetime.domain.limits import MAX_PORT

SCHEMES = ("postgresql", "postgres")
DEFAULT_PORT = 5432

_URL = "postgresql://user:password@host:port/database"
_ACCEPTED = _URL + ", with special characters as %xx (@ is %40, / is %2F)"
_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[^\s:\[\]/?#@,]+)(:(?P<port>[^:]*))?")
_PORT = re.compile(r"[0-9]{1,5}")
_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
# Parameters that become fields of the address; the others are passed on to the driver.
_PARTS = ("host", "port", "user", "password", "dbname", "database")
_PASSED_ON = (
    "application_name",
    "gsslib",
    "krbsrvname",
    "options",
    "passfile",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "sslcert",
    "sslcrl",
    "sslkey",
    "sslmode",
    "sslnegotiation",
    "sslpassword",
    "sslrootcert",
    "target_session_attrs",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresAddress:
    """Several hosts are tried in their order. A host that starts with `/` is the directory of a
    Unix socket. Without a user or a password the driver looks where libpq does.
    """

    hosts: tuple[tuple[str, int], ...]
    database: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    parameters: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def from_url(cls, text: str) -> Self:
        """Raises ValueError as a parser does."""
        parts, query = _split(text)
        user_info, _, netloc = parts.netloc.rpartition("@")
        user, _, password = user_info.partition(":")
        given = dict(query)
        if netloc and {"host", "port"} & given.keys():
            raise ValueError(f"{_URL}, with host and port in one place")
        address = cls(
            hosts=_hosts(netloc) if netloc else _hosts_in_query(given),
            database=_first(unquote(parts.path[1:]), given, "dbname", "database") or "",
            user=_first(unquote(user), given, "user"),
            password=_first(unquote(password), given, "password"),
            parameters=tuple((name, value) for name, value in query if name not in _PARTS),
        )
        if not address.database:
            raise ValueError(f"{_URL}, with the name of a database")
        if "\0" in f"{address.user}{address.password}{address.database}":
            raise ValueError(f"{_URL}, without NUL characters")
        return address

    @property
    def url(self) -> str:
        """The URL for the driver. It contains the password: never show or log it."""
        user_info = ":".join(quote(text, safe="") for text in (self.user, self.password) if text)
        if self.password and not self.user:
            user_info = ":" + user_info
        parameters = list(self.parameters)
        netloc = ",".join(_host_and_port(host, port) for host, port in self.hosts)
        if any(host.startswith("/") for host, _ in self.hosts):
            netloc = ""
            parameters.append(("host", ",".join(_bracketed(host) for host, _ in self.hosts)))
            parameters.append(("port", ",".join(str(port) for _, port in self.hosts)))
        start = f"postgresql://{user_info}@" if user_info else "postgresql://"
        end = "?" + urlencode(parameters, safe="/", quote_via=quote) if parameters else ""
        return f"{start}{netloc}/{quote(self.database, safe='')}{end}"

    @property
    def place(self) -> str:
        """Host, port and database, for people to read. No secret is in it."""
        return ",".join(_host_and_port(*host) for host in self.hosts) + "/" + self.database


def _split(text: str) -> tuple[SplitResult, list[tuple[str, str]]]:
    scheme, _, rest = text.partition("://")
    netloc = re.split(r"[/?#]", rest, maxsplit=1)[0]
    try:
        # Newer Pythons refuse brackets around only one of several hosts.
        parts = urlsplit(f"{scheme}://{rest.removeprefix(netloc)}")._replace(netloc=netloc)
        query = parse_qsl(parts.query, strict_parsing=True) if parts.query else []
    except ValueError:
        raise ValueError(_ACCEPTED) from None
    # An unquoted / ? or # in a password would end the user part of the URL.
    if parts.scheme not in SCHEMES or "/" in parts.path[1:] or "@" in parts.path or parts.fragment:
        raise ValueError(_ACCEPTED)
    if not text.startswith(f"{parts.scheme}://") or not text.isprintable():
        raise ValueError(_ACCEPTED)
    for name, value in query:
        if name not in _PARTS + _PASSED_ON:
            raise ValueError(
                f"without the parameter {name}; known are " + ", ".join(sorted(_PASSED_ON))
            )
        if name == "sslmode" and value not in _SSL_MODES:
            raise ValueError("with sslmode one of " + ", ".join(_SSL_MODES))
    return parts, query


def _first(text: str, given: dict[str, str], *names: str) -> str | None:
    found = [text, *(given.get(name, "") for name in names)]
    if len(set(filter(None, found))) > 1:
        raise ValueError(f"{_URL}, with one {names[0]}, not two")
    return next(filter(None, found), None)


def _hosts(netloc: str) -> tuple[tuple[str, int], ...]:
    hosts = []
    for text in netloc.split(","):
        found = _HOST.fullmatch(text)
        if not found:
            raise ValueError(_ACCEPTED)
        hosts.append((unquote(found["host"].strip("[]")), _port(found["port"])))
    return tuple(hosts)


def _hosts_in_query(given: dict[str, str]) -> tuple[tuple[str, int], ...]:
    names = [name for name in given.get("host", "").split(",") if name]
    ports = given.get("port", "").split(",")
    if not names or len(ports) not in (1, len(names)):
        raise ValueError(f"{_URL}, with a host (or ?host=/directory/of/socket)")
    if len(ports) == 1:
        ports *= len(names)
    return tuple((name.strip("[]"), _port(port)) for name, port in zip(names, ports, strict=True))


def _port(text: str | None) -> int:
    if not text:
        return DEFAULT_PORT
    if not _PORT.fullmatch(text) or not 1 <= int(text) <= MAX_PORT:
        raise ValueError(f"{_URL}, with a port from 1 to {MAX_PORT}")
    return int(text)


def _host_and_port(host: str, port: int) -> str:
    return f"{_bracketed(host)}:{port}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("/") else host
