"""Where the database is and how it may be used."""

from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

from duetime.domain.instants import MICROSECONDS_PER_SECOND
from duetime.domain.limits import SCHEMA_NAME_RULE, is_schema_name


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresOptions:
    """`url` is a `postgresql://` URL. It may carry a password, so it is never shown.

    All tables are in one PostgreSQL schema, `schema`, which is created if it is absent.
    `pool_size` is the number of connections for reads and changes; creates and the engine have
    others. `history_partition_seconds` is the width of a partition of the history: timers that
    finished within it are kept, and forgotten, together.
    """

    url: str = field(repr=False)
    schema: str
    pool_size: int
    statement_timeout_seconds: float
    history_partition_seconds: float
    connect_timeout_seconds: float = 5.0

    def __post_init__(self) -> None:
        if not is_schema_name(self.schema):
            raise ValueError(f"schema must be {SCHEMA_NAME_RULE}: {self.schema!r} is not")
        if self.pool_size < 1:
            raise ValueError("pool_size must be at least 1")
        if self.statement_timeout_seconds <= 0 or self.connect_timeout_seconds <= 0:
            raise ValueError("timeouts must be more than 0 seconds")
        if self.history_step < 1:
            raise ValueError("history_partition_seconds must be at least a microsecond")

    @property
    def history_step(self) -> int:
        """The width of a partition of the history, in microseconds."""
        return round(self.history_partition_seconds * MICROSECONDS_PER_SECOND)

    @property
    def has_several_hosts(self) -> bool:
        """Whether the URL names several servers without saying which of them to use."""
        parts = urlsplit(self.url)
        query = parse_qs(parts.query)
        hosts = parts.netloc.rpartition("@")[2] + "".join(query.get("host", []))
        return "," in hosts and "target_session_attrs" not in query

    @property
    def place(self) -> str:
        """Host and database, for messages."""
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2] or parse_qs(parts.query).get("host", [""])[0]
        database = unquote(parts.path.lstrip("/")) or "the default database"
        return f"{database} on {host or 'localhost'}"
