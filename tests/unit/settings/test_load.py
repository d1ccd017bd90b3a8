"""Settings: which source wins, which values are accepted, and the report of all problems."""

from pathlib import Path

import pytest

from duetime.domain.errors import SettingsError
from duetime.domain.namespace import ConfiguredNamespace
from duetime.settings import (
    LogFormat,
    LogLevel,
    MemoryStoreSettings,
    Settings,
    SqliteStoreSettings,
    load_settings,
)

KEY = "k" * 32


def load(toml_path: Path | None = None, dotenv_path: Path | None = None, /, **env: str) -> Settings:
    return load_settings({"API_KEY": KEY, **env}, dotenv_path=dotenv_path, toml_path=toml_path)


def problems(**env: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load(**env)
    return caught.value.message.splitlines()


def test_only_the_api_key_is_needed() -> None:
    settings = load()
    assert settings == Settings(
        api_key=KEY,
        host="0.0.0.0",
        port=8080,
        workers=1,
        namespaces=(ConfiguredNamespace("default"),),
        store=SqliteStoreSettings(Path("duetime.db")),
        nats=None,
        broker=None,
        min_delay_seconds=5,
        max_body_bytes=1024 * 1024,
        max_bodies_bytes=128 * 1024 * 1024,
        max_payload_bytes=256 * 1024,
        delivery_concurrency=4096,
        delivery_concurrency_per_endpoint=1024,
        claim_horizon_ms=50,
        claim_batch_size=500,
        polling_interval_ms=5000,
        lease_seconds=10,
        clock_skew_limit_ms=500,
        callback_timeout_seconds=30,
        shutdown_grace_seconds=10,
        drain_seconds=0,
        retention_days=30,
        log_level=LogLevel.INFO,
        log_format=LogFormat.AUTO,
    )


def test_environment_wins_over_dotenv_over_toml_over_default(tmp_path: Path) -> None:
    dotenv = tmp_path / ".env"
    dotenv.write_text("PORT=2\nHOST=from-dotenv\n")
    toml = tmp_path / "duetime.toml"
    toml.write_text('port = 3\nhost = "from-toml"\n[any.table]\nmin_delay_seconds = 0.5\n')
    settings = load(toml, dotenv, PORT="1")
    assert (settings.port, settings.host) == (1, "from-dotenv")
    assert settings.min_delay_seconds == 0.5
    assert settings.retention_days == 30


def test_the_toml_file_can_be_named_by_a_variable(tmp_path: Path) -> None:
    toml = tmp_path / "duetime.toml"
    toml.write_text("port = 3")
    assert load(DUETIME_CONFIG=str(toml)).port == 3


def test_an_empty_value_stands_for_the_default(tmp_path: Path) -> None:
    dotenv = tmp_path / ".env"
    dotenv.write_text("PORT=2\nNATS_USER=\n")
    assert load(None, dotenv, PORT="").port == 8080


def test_all_problems_are_reported_at_once_one_line_each() -> None:
    assert problems(API_KEY="", PORT="80a", MIN_DELAY_SECONDS="-1", LOG_LEVEL="loud") == [
        "API_KEY is missing: set it to a secret of at least 32 characters "
        "(openssl rand -hex 32 makes one), or set AUTH=none behind a gateway that checks callers",
        "PORT='80a': must be a whole number from 0 to 65535",
        "MIN_DELAY_SECONDS='-1': must be a number from 0 to 86400",
        "LOG_LEVEL='loud': must be one of trace, debug, info, warn, error",
    ]


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("PORT", "65536"),
        ("PORT", "8080.0"),
        ("PORT", "٣"),
        ("MIN_DELAY_SECONDS", "nan"),
        ("MIN_DELAY_SECONDS", "1e3"),
        ("RETENTION_DAYS", "inf"),
        ("DELIVERY_CONCURRENCY", "0"),
        ("MAX_BODY_BYTES", "1MB"),
        ("TIMER_BATCH_SIZE", "0"),
        ("CALLBACK_TIMEOUT_SECONDS", "0"),
        ("AUTH", "basic"),
        ("LOG_FORMAT", "xml"),
        ("HOST", "two words"),
        ("WORKERS", "0"),
        ("WORKERS", "65"),
        ("LEASE_SECONDS", "0.5"),
        ("LEASE_SECONDS", "301"),
        ("CLOCK_SKEW_LIMIT_MS", "0.5"),
        ("AUDIT_CREATES", "0%"),
        ("AUDIT_CREATES", "1"),
        ("AUDIT_CREATES", "101%"),
        ("AUDIT_RETENTION_DAYS", "-1"),
        ("PG_PORT", "x"),
        ("NATS_PORT", "x"),
        ("NATS_URL", "http://localhost"),
        ("NATS_URL", "nats://host:port"),
        ("TIMER_BROKER_URL", "localhost"),
        ("DATABASE_URL", "sqlite://duetime.db"),
        ("DATABASE_URL", "sqlite:///"),
        ("DATABASE_URL", "sqlite:///:memory:"),
        ("DATABASE_URL", "sqlite:///a.db?mode=ro"),
        ("DATABASE_URL", "mysql://localhost/db"),
    ],
)
def test_a_bad_value_is_one_line_that_names_it(name: str, bad: str) -> None:
    (line,) = problems(**{name: bad})
    assert line.startswith(f"{name}={bad!r}: must be ")


@pytest.mark.parametrize("bad", ["short-secret", " " + "k" * 40, "ü" * 40, "k" * 40 + "\n"])
def test_a_secret_is_never_shown(bad: str) -> None:
    (line,) = problems(API_KEY=bad)
    assert line.startswith("API_KEY: must be ")
    assert bad not in line


def test_passwords_in_urls_are_never_shown() -> None:
    for name in ("DATABASE_URL", "NATS_URL", "TIMER_BROKER_URL"):
        (line,) = problems(**{name: "ftp://user:pa/ss@host/x"})
        assert "pa/ss" not in line
        assert "host" in line
    settings = load(NATS_URL="nats://user:pa55@host", TIMER_BROKER_URL="nats://user:pa55@host")
    assert "pa55" not in repr(settings)
    assert KEY not in repr(settings)


def test_without_authentication_no_key_is_needed() -> None:
    assert load(API_KEY="", AUTH="none").api_key is None
    assert load(AUTH="none").api_key is None


@pytest.mark.parametrize(
    ("env", "store"),
    [
        ({"DATABASE_URL": "sqlite:///a/b.db"}, SqliteStoreSettings(Path("a/b.db"))),
        ({"DATABASE_URL": "sqlite:////a/b.db"}, SqliteStoreSettings(Path("/a/b.db"))),
        ({"DATABASE_URL": "memory:"}, MemoryStoreSettings()),
        ({"TIMER_DB_PATH": "./b.db"}, SqliteStoreSettings(Path("b.db"))),
        (
            {"TIMER_DB_PATH": "./b.db", "DATABASE_URL": "sqlite:///b.db"},
            SqliteStoreSettings(Path("b.db")),
        ),
        (
            {"PG_PORT": "5432", "PG_SCHEMA": "x", "PG_POOL_SIZE": "1"},
            SqliteStoreSettings(Path("duetime.db")),
        ),
        (
            {"TIMER_DB_PATH": "./b.db", "PG_USER": "timer"},
            SqliteStoreSettings(Path("b.db")),
        ),
    ],
)
def test_the_store_is_named_by_url_or_path(
    env: dict[str, str], store: SqliteStoreSettings | MemoryStoreSettings
) -> None:
    assert load(**env).store == store


def test_two_different_stores_are_a_problem() -> None:
    (line,) = problems(DATABASE_URL="memory:", TIMER_DB_PATH="a.db")
    assert line == (
        "TIMER_DB_PATH='a.db': names another store than DATABASE_URL; remove one of the two"
    )


@pytest.mark.parametrize("url", ["", "sqlite:///a.db", "memory:"])
def test_several_processes_need_a_store_they_can_share(url: str) -> None:
    (line,) = problems(DATABASE_URL=url, WORKERS="2")
    assert line == (
        "WORKERS='2': more than one process needs a store they can share; set DATABASE_URL or "
        "PG_HOST to a PostgreSQL server, or WORKERS=1"
    )


def test_a_store_that_cannot_be_read_is_the_only_problem_of_several_processes() -> None:
    (line,) = problems(DATABASE_URL="postgresql://host", WORKERS="2")
    assert line.startswith("DATABASE_URL=")


@pytest.mark.parametrize(
    ("text", "share"), [("off", 0), ("all", 1), ("ALL", 1), ("1%", 0.01), ("0.5 %", 0.005)]
)
def test_a_share_of_creates_is_audited(text: str, share: float) -> None:
    assert load(AUDIT_CREATES=text).audit_creates == pytest.approx(share)


def test_the_memory_for_bodies_has_room_for_the_largest() -> None:
    assert load(MAX_BODY_BYTES="7340032").max_bodies_bytes == 128 * 2**20
    assert load(MAX_BODY_BYTES="67108864").max_bodies_bytes == -(-8 * 67_108_864 * 8 // 7)
    assert load(MAX_BODIES_BYTES="9586981").max_bodies_bytes == 9_586_981
    (line,) = problems(MAX_BODIES_BYTES="9586980")
    assert line == (
        "MAX_BODIES_BYTES='9586980': must be at least 9586981, so that a batch of 8388608 bytes (8 "
        "times MAX_BODY_BYTES) fits"
    )


def test_the_log_level_has_two_names() -> None:
    assert load(RUST_LOG="DEBUG").log_level is LogLevel.DEBUG
    assert load(RUST_LOG="debug", LOG_LEVEL="warning").log_level is LogLevel.WARN


def test_files_that_cannot_be_read_are_problems(tmp_path: Path) -> None:
    dotenv = tmp_path / ".env"
    dotenv.write_text("PORT=x\nthis is no assignment\n")
    toml = tmp_path / "duetime.toml"
    toml.write_text('prot = 1\nPORT = 2\nhost = ["a"]\n[a]\nauth = "none"\n[b]\nauth = "none"\n')
    with pytest.raises(SettingsError) as caught:
        load(toml, dotenv)
    assert caught.value.message.splitlines() == [
        f"{dotenv}, line 2: must be NAME=value or a # comment",
        f"{toml}: 'prot' is not a setting; did you mean 'port'?",
        f"{toml}: 'PORT' is not a setting; did you mean 'port'?",
        f"{toml}: 'host' must be a text or a number",
        f"{toml}: 'auth' is set more than once",
        f"PORT='x' (from {dotenv}): must be a whole number from 0 to 65535",
    ]


def test_a_missing_or_broken_toml_file_is_a_problem(tmp_path: Path) -> None:
    missing = tmp_path / "missing.toml"
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        load(missing)
    missing.write_text("port = ")
    with pytest.raises(SettingsError, match="is not valid TOML"):
        load(missing)
    missing.write_bytes(b"\xff")
    with pytest.raises(SettingsError, match="it is not UTF-8"):
        load(missing)
