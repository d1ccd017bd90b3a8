"""PostgreSQL in settings: every way to name it, and contradictions that are refused."""

import string
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.errors import SettingsError
from duetime.settings import PostgresStoreSettings, Settings, load_settings
from duetime.settings.postgres_address import PostgresAddress

NASTY = "p@ss:w/o?r#d %41&=+\\\"'ü€"
PARTS = {
    "PG_HOST": "db.example",
    "PG_USER": "timer",
    "PG_PASSWORD": "secret",
    "PG_DB_NAME": "timers",
}


def load(**env: str) -> Settings:
    return load_settings({"AUTH": "none", **env}, dotenv_path=None)


def postgres(**env: str) -> PostgresStoreSettings:
    store = load(**env).store
    assert isinstance(store, PostgresStoreSettings)
    return store


def problems(**env: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load(**env)
    return caught.value.message.splitlines()


def test_parts_make_a_url() -> None:
    assert postgres(**PARTS) == PostgresStoreSettings(
        url="postgresql://timer:secret@db.example:5432/timers",
        place="db.example:5432/timers",
        schema="duetime",
        pool_size=8,
        statement_timeout_seconds=10,
    )


def test_everything_else_can_be_set() -> None:
    store = postgres(
        **PARTS,
        PG_PORT="6543",
        PG_SCHEMA="other_1",
        PG_POOL_SIZE="3",
        PG_STATEMENT_TIMEOUT_SECONDS="0.5",
        WORKERS="4",
    )
    assert store == PostgresStoreSettings(
        url="postgresql://timer:secret@db.example:6543/timers",
        place="db.example:6543/timers",
        schema="other_1",
        pool_size=3,
        statement_timeout_seconds=0.5,
    )


@pytest.mark.parametrize(
    ("given", "url", "place"),
    [
        ("postgres://u:p@h:1/d", "postgresql://u:p@h:1/d", "h:1/d"),
        ("postgresql://h/d", "postgresql://h:5432/d", "h:5432/d"),
        ("postgresql://u@[::1]:1/d", "postgresql://u@[::1]:1/d", "[::1]:1/d"),
        ("postgresql://u:p%40@h/d", "postgresql://u:p%40@h:5432/d", "h:5432/d"),
        # A common mistake when written by hand: the @ should have been %40.
        ("postgresql://u:p@ss@h/d", "postgresql://u:p%40ss@h:5432/d", "h:5432/d"),
        ("postgresql://a:1,b:2/d", "postgresql://a:1,b:2/d", "a:1,b:2/d"),
        (
            "postgresql://h/d?sslmode=verify-full&sslrootcert=/etc/ca.pem",
            "postgresql://h:5432/d?sslmode=verify-full&sslrootcert=/etc/ca.pem",
            "h:5432/d",
        ),
        (
            "postgresql://u:p@/d?host=/var/run/postgresql",
            "postgresql://u:p@/d?host=/var/run/postgresql&port=5432",
            "/var/run/postgresql:5432/d",
        ),
        (
            "postgresql://%2Frun%2Fpg/d",
            "postgresql:///d?host=/run/pg&port=5432",
            "/run/pg:5432/d",
        ),
        (
            "postgresql://?host=h&port=1&user=u&password=p&dbname=d",
            "postgresql://u:p@h:1/d",
            "h:1/d",
        ),
    ],
)
def test_a_url_may_be_spelt_in_many_ways(given: str, url: str, place: str) -> None:
    store = postgres(DATABASE_URL=given)
    assert (store.url, store.place) == (url, place)


def test_a_socket_is_named_by_its_directory_and_needs_no_password() -> None:
    store = postgres(PG_HOST="/var/run/postgresql", PG_USER="timer", PG_DB_NAME="timers")
    assert store.url == "postgresql://timer@/timers?host=/var/run/postgresql&port=5432"


def test_special_characters_survive() -> None:
    by_parts = postgres(**{**PARTS, "PG_PASSWORD": NASTY, "PG_USER": NASTY, "PG_DB_NAME": NASTY})
    quoted = quote(NASTY, safe="")
    assert by_parts.url == f"postgresql://{quoted}:{quoted}@db.example:5432/{quoted}"
    assert postgres(DATABASE_URL=by_parts.url).url == by_parts.url


texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
hosts = st.one_of(
    st.text(string.ascii_lowercase + string.digits + ".-", min_size=1),
    st.ip_addresses().map(str),
    st.just("/var/run/post gre:sql"),
)


@given(
    address=st.builds(
        PostgresAddress,
        hosts=st.lists(st.tuples(hosts, st.integers(1, 65535)), min_size=1).map(tuple),
        database=texts,
        user=st.none() | texts,
        password=st.none() | texts,
        parameters=st.just(()) | st.tuples(st.tuples(st.just("sslrootcert"), texts)),
    )
)
def test_every_address_survives_being_written_as_a_url(address: PostgresAddress) -> None:
    assert PostgresAddress.from_url(address.url) == address


def test_passwords_are_never_shown() -> None:
    assert "secret" not in repr(load(**PARTS))
    urls = [
        "postgresql://u:secret@host:x/d",
        "postgresql://u:sec/secret@host/d",
        "postgresql://u:sec?secret@host/d",
        "postgresql://host/d?password=secret&port=x",
        "postgresql://host/d?sslpassword=secret&sslmode=x",
        "postgresql://host/d?wrong=x&PASSWORD=secret",
    ]
    for url in urls:
        (line,) = problems(DATABASE_URL=url)
        assert "secret" not in line
        assert "host" in line
    (line,) = problems(**PARTS, DATABASE_URL="postgresql://u2:secret@db.example/timers")
    assert "PG_USER='timer'" in line


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("postgresql://host", "with the name of a database"),
        ("postgresql://host/", "with the name of a database"),
        ("postgresql:///d", "with a host (or ?host=/directory/of/socket)"),
        ("postgresql://host/d?port=1", "with host and port in one place"),
        ("postgresql://u@host/d?user=v", "with one user, not two"),
        ("postgresql://host:0/d", "with a port from 1 to 65535"),
        ("postgresql://host:65536/d", "with a port from 1 to 65535"),
        ("postgresql://host:pg/d", "with a port from 1 to 65535"),
        ("postgresql:host/d", "with special characters as %xx"),
        ("postgresql://host/a/b", "with special characters as %xx"),
        ("postgresql://u:p#w@host/d", "with special characters as %xx"),
        ("postgresql://[::1/d", "with special characters as %xx"),
        ("postgresql://host/d?sslmode", "with special characters as %xx"),
        ("postgresql://host/d?sslmode=on", "with sslmode one of disable, allow, prefer, require"),
        ("postgresql://host/d?connect_timeout=1", "without the parameter connect_timeout; known"),
        ("postgresqls://host/d", "postgresql://user:password@host:port/database, sqlite:///"),
    ],
)
def test_a_wrong_url_is_one_line_that_says_why(url: str, why: str) -> None:
    (line,) = problems(DATABASE_URL=url)
    assert line.startswith("DATABASE_URL=")
    assert why in line


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("PG_HOST", "host:5432"),
        ("PG_HOST", "postgresql://host"),
        ("PG_HOST", "two words"),
        ("PG_HOST", "a,,b"),
        ("PG_PORT", "0"),
        ("PG_SCHEMA", "Upper"),
        ("PG_SCHEMA", "1st"),
        ("PG_SCHEMA", "semi;colon"),
        ("PG_SCHEMA", "pg_mine"),
        ("PG_SCHEMA", "s" * 49),
        ("PG_POOL_SIZE", "0"),
        ("PG_POOL_SIZE", "101"),
        ("PG_STATEMENT_TIMEOUT_SECONDS", "0"),
    ],
)
def test_a_bad_part_is_one_line_that_names_it(name: str, bad: str) -> None:
    (line,) = problems(**{**PARTS, name: bad})
    assert line.startswith(f"{name}={bad!r}: must be ")


@pytest.mark.parametrize("name", ["PG_USER", "PG_PASSWORD", "PG_DB_NAME"])
def test_a_part_that_is_missing_is_named(name: str) -> None:
    (line,) = problems(**{**PARTS, name: ""})
    assert line.startswith(f"{name} is missing: ")


@pytest.mark.parametrize("name", ["PG_USER", "PG_PASSWORD", "PG_DB_NAME"])
def test_a_part_without_a_host_is_a_problem(name: str) -> None:
    (line,) = problems(**{name: "hidden"})
    assert line.endswith(": is set without PG_HOST; set that too, or remove this")
    assert line.startswith(name)


@pytest.mark.parametrize(
    ("env", "line"),
    [
        (
            {**PARTS, "DATABASE_URL": "memory:"},
            "PG_HOST='db.example': names another store than DATABASE_URL; remove one of the two",
        ),
        (
            {**PARTS, "TIMER_DB_PATH": "a.db"},
            "TIMER_DB_PATH='a.db': names another store than PG_HOST; remove one of the two",
        ),
        (
            {"DATABASE_URL": "postgresql://h/d", "TIMER_DB_PATH": "a.db"},
            "TIMER_DB_PATH='a.db': names another store than DATABASE_URL; remove one of the two",
        ),
        (
            {"DATABASE_URL": "postgresql://h/d", "PG_HOST": "other"},
            "PG_HOST='other': differs from DATABASE_URL; remove one of the two",
        ),
        (
            {"DATABASE_URL": "postgresql://h/d", "PG_PORT": "5433"},
            "PG_PORT='5433': differs from DATABASE_URL; remove one of the two",
        ),
        (
            {"DATABASE_URL": "postgresql://h/d", "PG_DB_NAME": "other"},
            "PG_DB_NAME='other': differs from DATABASE_URL; remove one of the two",
        ),
        (
            {"DATABASE_URL": "postgresql://u:p@h/d", "PG_PASSWORD": "other"},
            "PG_PASSWORD: differs from DATABASE_URL; remove one of the two",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_one_line(env: dict[str, str], line: str) -> None:
    assert problems(**env) == [line]


def test_parts_may_repeat_the_url_and_complete_it() -> None:
    same = postgres(**PARTS, DATABASE_URL="postgresql://timer:secret@db.example/timers")
    completed = postgres(**PARTS, DATABASE_URL="postgresql://db.example/timers")
    assert same.url == completed.url == postgres(**PARTS).url
