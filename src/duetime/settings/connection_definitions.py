"""The settings of connections: to the store, to NATS and to the broker. Together with
`definitions`, every setting is declared once."""

from dataclasses import dataclass
from pathlib import Path

from duetime.domain.limits import MAX_PORT
from duetime.settings.broker_address import broker_url, nats_url
from duetime.settings.parsers import (
    any_text,
    file_path,
    number,
    one_word,
    postgres_hosts,
    readable_file,
    schema_name,
    store_url,
    text_without_nul,
    whole_number,
)
from duetime.settings.postgres_address import PostgresAddress
from duetime.settings.setting import setting
from duetime.settings.values import (
    BrokerSettings,
    MemoryStoreSettings,
    NatsSettings,
    SqliteStoreSettings,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreParts:
    """The settings that make up `Settings.store`."""

    database_url: SqliteStoreSettings | MemoryStoreSettings | PostgresAddress | None = setting(
        "Store",
        store_url,
        None,
        "url",
        "The store of timers: sqlite:///path.db, sqlite:////absolute/path.db, "
        "postgresql://user:password@host:port/database or memory:.",
        url=True,
    )
    timer_db_path: Path = setting(
        "Store",
        file_path,
        "duetime.db",
        "path",
        "The SQLite file, when neither DATABASE_URL nor PG_HOST is set.",
    )
    pg_host: tuple[str, ...] | None = setting(
        "PostgreSQL",
        postgres_hosts,
        None,
        "address",
        "PostgreSQL server, or the directory of its socket; an alternative to DATABASE_URL.",
    )
    pg_port: int = setting(
        "PostgreSQL", whole_number(1, MAX_PORT), "5432", "port", "PostgreSQL port."
    )
    pg_user: str | None = setting("PostgreSQL", text_without_nul, None, "text", "PostgreSQL user.")
    pg_password: str | None = setting(
        "PostgreSQL",
        text_without_nul,
        None,
        "secret",
        "PostgreSQL password, verbatim: no character needs to be escaped.",
        secret=True,
    )
    pg_db_name: str | None = setting(
        "PostgreSQL", text_without_nul, None, "text", "PostgreSQL database."
    )
    pg_schema: str = setting(
        "PostgreSQL",
        schema_name,
        "duetime",
        "text",
        "The schema of Duetime's tables; it is created if it does not exist.",
    )
    pg_pool_size: int = setting(
        "PostgreSQL",
        whole_number(1, 100),
        "8",
        "connections",
        "Connections of a process for reads and changes; its engine needs a few more.",
    )
    pg_statement_timeout_seconds: float = setting(
        "PostgreSQL",
        number(0.1, 3_600),
        "10",
        "seconds",
        "Time that PostgreSQL may spend on one statement before Duetime gives up on it.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerParts:
    """The settings that make up `Settings.nats` and `Settings.broker`."""

    timer_broker_url: BrokerSettings | None = setting(
        "Bus",
        broker_url,
        None,
        "url",
        "The broker of timer commands and events: nats://host:port, tls://host:port, "
        "redis://host:port/database, rediss://host:port/database (or valkey://, valkeys://) or "
        "memory:.",
        url=True,
    )
    nats_url: NatsSettings | None = setting(
        "NATS",
        nats_url,
        None,
        "url",
        "NATS server for NATS callbacks, as nats://user:password@host:port or tls://...; takes "
        "precedence over NATS_HOST.",
        url=True,
    )
    nats_host: str | None = setting(
        "NATS", one_word, None, "address", "NATS server for NATS callbacks, without NATS_URL."
    )
    nats_port: int = setting("NATS", whole_number(1, MAX_PORT), "4222", "port", "NATS port.")
    nats_user: str | None = setting(
        "NATS",
        any_text,
        None,
        "text",
        "NATS user, where the URL names none. This and the settings below apply to a NATS broker, "
        "too.",
    )
    nats_password: str | None = setting(
        "NATS",
        any_text,
        None,
        "secret",
        "NATS password, verbatim: no character needs to be escaped.",
        secret=True,
    )
    nats_credentials_file: Path | None = setting(
        "NATS",
        readable_file,
        None,
        "path",
        "A .creds file with the user's JWT and key, instead of user and password.",
    )
    nats_tls_ca_file: Path | None = setting(
        "NATS",
        readable_file,
        None,
        "path",
        "The certificates to trust, in PEM; those of the system unless given.",
    )
    nats_tls_cert_file: Path | None = setting(
        "NATS",
        readable_file,
        None,
        "path",
        "The certificate to present to the server, in PEM; together with NATS_TLS_KEY_FILE.",
    )
    nats_tls_key_file: Path | None = setting(
        "NATS", readable_file, None, "path", "The key of that certificate, in PEM."
    )
