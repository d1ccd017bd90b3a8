"""A misspelt setting in `.env` is an error; the names of other programs are not."""

from pathlib import Path

import pytest

from duetime.domain.errors import SettingsError
from duetime.settings import load_settings

ACCESS = "API_KEY=a-key-of-at-least-thirty-two-characters\n"


def problems(tmp_path: Path, *lines: str) -> list[str]:
    dotenv = tmp_path / ".env"
    dotenv.write_text(ACCESS + "\n".join(lines), encoding="utf-8")
    try:
        load_settings({}, dotenv)
    except SettingsError as error:
        return [line.removeprefix(f"{dotenv}: ") for line in error.message.splitlines()]
    return []


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("PROT", "PORT"),
        ("port", "PORT"),
        ("HSOT", "HOST"),
        ("WORKER", "WORKERS"),
        ("RETENTION_DAY", "RETENTION_DAYS"),
        ("CALLBACK_TIMEOUT", "CALLBACK_TIMEOUT_SECONDS"),
        ("DATABASE_URI", "DATABASE_URL"),
        ("PGHOST", "PG_HOST"),
        ("LOGLEVEL", "LOG_LEVEL"),
        ("DUETIME_PORT", "PORT"),
        ("DUETIME_WORKER", "WORKERS"),
        ("TIMER_BROKER_ULR", "TIMER_BROKER_URL"),
    ],
)
def test_a_misspelt_setting_is_an_error_with_a_suggestion(
    tmp_path: Path, name: str, meant: str
) -> None:
    problem = f"{name!r} is not a setting; did you mean {meant!r}?"
    assert problems(tmp_path, f"{name}=1") == [problem]


def test_an_own_name_that_is_like_no_setting_is_an_error(tmp_path: Path) -> None:
    assert problems(tmp_path, "DUETIME_COLOUR=red") == ["'DUETIME_COLOUR' is not a setting"]


@pytest.mark.parametrize(
    "name",
    [
        *("NODE_ENV", "COMPOSE_PROJECT_NAME", "POSTGRES_USER", "POSTGRES_PASSWORD", "DB_HOST"),
        *("DB_PORT", "DB_PASSWORD", "REDIS_URL", "AWS_REGION", "TZ", "DEBUG", "SECRET_KEY"),
        *("STRIPE_API_KEY", "SENTRY_DSN", "HTTP_PROXY", "PYTHONPATH", "PATH", "HOME", "LANG"),
        *("DUETIME_URL", "DUETIME_API_KEY"),
    ],
)
def test_names_of_other_programs_are_left_alone(tmp_path: Path, name: str) -> None:
    assert problems(tmp_path, f"{name}=x") == []


def test_a_name_is_not_taken_for_a_setting_that_is_given(tmp_path: Path) -> None:
    assert problems(tmp_path, "PORT=1", "PORTS=1-9") == []
    assert problems(tmp_path, "DATABASE_URL=memory:", "PGHOST=db", "PGPASSWORD=secret") == []


def test_the_environment_may_have_any_names(tmp_path: Path) -> None:
    environ = {"API_KEY": "a-key-of-at-least-thirty-two-characters", "PROT": "1"}
    assert load_settings(environ, tmp_path / ".env").port == 8080
