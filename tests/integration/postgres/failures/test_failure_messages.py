"""Messages for an operator whose database cannot be used: one line that says what to do."""

from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from duetime.domain.errors import StoreUnavailable
from duetime.domain.limits import MAX_SCHEMA_CHARACTERS
from duetime.stores.postgres import PostgresOptions, PostgresStore, schema
from duetime.stores.postgres.connections import ANY_PLAN, connected
from tests.postgres.options import store_options

SECRET = "pa55word"


async def message_of(options: PostgresOptions) -> str:
    with pytest.raises(StoreUnavailable) as caught:
        await PostgresStore(options).open()
    message = caught.value.message
    assert "\n" not in message
    assert SECRET not in message
    assert SECRET not in repr(options)
    return message


def address(options: PostgresOptions) -> str:
    return urlsplit(options.url).netloc.rpartition("@")[2]


@pytest.fixture
def options(new_options: PostgresOptions) -> PostgresOptions:
    return new_options


async def test_a_wrong_password(options: PostgresOptions) -> None:
    parts = urlsplit(options.url)
    if parts.password is None:
        pytest.skip("this server does not ask for passwords")
    url = options.url.replace(f":{parts.password}@", f":{SECRET}@")
    message = await message_of(replace(options, url=url))
    assert f"postgres on {address(options)}" in message
    assert "check the user name and the password" in message


async def test_an_unknown_database(options: PostgresOptions) -> None:
    url = urlsplit(options.url)._replace(path="/nowhere").geturl()
    message = await message_of(replace(options, url=url))
    assert f"nowhere on {address(options)}" in message
    assert "create it, or correct the database URL" in message


async def test_a_host_that_does_not_exist() -> None:
    url = f"postgresql://me:{SECRET}@no-such-host.invalid:5432/timers"
    message = await message_of(store_options(url))
    assert "timers on no-such-host.invalid:5432" in message
    assert "is it running, and reachable?" in message


async def test_a_port_without_a_listener() -> None:
    url = f"postgresql://me:{SECRET}@127.0.0.1:1/timers"
    message = await message_of(store_options(url))
    assert "timers on 127.0.0.1:1" in message
    assert "is it running, and reachable?" in message


@pytest.mark.parametrize(
    "url", [f"http://me:{SECRET}@a.example/timers", f"postgresql://me:{SECRET}@a.example:port/x"]
)
async def test_a_url_that_cannot_be_read(url: str) -> None:
    message = await message_of(store_options(url))
    assert "postgresql://user:password@host:5432/database" in message


async def test_missing_privileges(options: PostgresOptions) -> None:
    await schema.migrate(options)
    role = f"{options.schema}_user"
    async with connected(options, ANY_PLAN) as connection:
        await connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{SECRET}'")
    limited = replace(options, url=f"postgresql://{role}:{SECRET}@{address(options)}/postgres")
    message = await message_of(limited)
    async with connected(options, ANY_PLAN) as connection:
        await connection.execute(f"DROP ROLE {role}")
    assert f"permission denied for schema {options.schema}" in message
    assert "grant it, or use a role that may" in message


async def test_a_server_that_only_reads(options: PostgresOptions) -> None:
    separator = "&" if "?" in options.url else "?"
    url = f"{options.url}{separator}default_transaction_read_only=on"
    message = await message_of(replace(options, url=url))
    assert "the URL must lead to the primary server" in message


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"schema": "Bad Name"}, "schema"),
        ({"schema": "x" * (MAX_SCHEMA_CHARACTERS + 1)}, "schema"),
        ({"schema": "pg_duetime"}, "schema"),
        ({"pool_size": 0}, "pool_size"),
        ({"statement_timeout_seconds": 0.0}, "timeouts"),
        ({"history_partition_seconds": 0.0}, "history_partition_seconds"),
    ],
)
def test_options_that_make_no_sense(wrong: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        replace(store_options("postgresql://localhost"), **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://me:secret@db.example:5433/timers", "timers on db.example:5433"),
        ("postgresql://me@a.example,b.example/timers", "timers on a.example,b.example"),
        ("postgresql:///timers?host=/run/postgresql", "timers on /run/postgresql"),
        ("postgresql://", "the default database on localhost"),
    ],
)
def test_messages_name_the_database_without_the_password(url: str, place: str) -> None:
    assert store_options(url).place == place
