"""A misspelt setting is an error in `.env` and a warning in the environment; the names of other
programs are neither."""

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
        ("BROKER_URL", "TIMER_BROKER_URL"),
        ("RETENTION", "RETENTION_DAYS"),
        ("LOG-LEVEL", "LOG_LEVEL"),
        ("LOG_LVL", "LOG_LEVEL"),
        ("LOG_FMT", "LOG_FORMAT"),
        ("PG_PASS", "PG_PASSWORD"),
        ("NATS_PWD", "NATS_PASSWORD"),
        ("MIN_DELAY_SECS", "MIN_DELAY_SECONDS"),
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
        *("LOG_FILE", "LOG_DIR", "LOG_L", "DB_PASS", "APP_KEY", "API_TOKEN", "PG_SSL", "NATS_PATH"),
        *("API_URL", "TIMER_PATH", "RUST_LIB", "PG_OPTS", "LEASE_FILE", "NATS_PID"),
        *("DUETIME_URL", "DUETIME_API_KEY"),
    ],
)
def test_names_of_other_programs_are_left_alone(tmp_path: Path, name: str) -> None:
    assert problems(tmp_path, f"{name}=x") == []


def test_a_name_is_not_taken_for_a_setting_that_is_given(tmp_path: Path) -> None:
    assert problems(tmp_path, "PORT=1", "PORTS=1-9") == []
    assert problems(tmp_path, "DATABASE_URL=memory:", "PGHOST=db", "PGPASSWORD=secret") == []


def test_a_setting_given_in_toml_is_not_meant_by_a_name_in_dotenv(tmp_path: Path) -> None:
    config = tmp_path / "duetime.toml"
    config.write_text('host = "127.0.0.1"\n', encoding="utf-8")
    assert problems(tmp_path, f"DUETIME_CONFIG={config}", "HOSTS=a") == []


def test_a_line_without_a_value_is_an_error(tmp_path: Path) -> None:
    problem = "line 2: must be NAME=value or a # comment"
    (found,) = problems(tmp_path, "PORT")
    assert found.endswith(problem)
    assert problems(tmp_path, "PORT=1", "export PORT", "export LANG") == []


def test_a_setting_given_twice_is_an_error(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, "PORT=1", "OTHER=1", "", "", "# again", "PORT=1", "OTHER=2")
    assert found.endswith("line 7: PORT is given again; remove one of the lines")


def warnings(**environ: str) -> tuple[str, ...]:
    return load_settings({**environ, "API_KEY": "k" * 32}, dotenv_path=None).warnings


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("RETENTION_DAY", "RETENTION_DAYS"),
        ("PROT", "PORT"),
        ("DUETIME_PORT", "PORT"),
        ("BROKER_URL", "TIMER_BROKER_URL"),
    ],
)
def test_a_misspelt_setting_in_the_environment_is_a_warning(name: str, meant: str) -> None:
    (warning,) = warnings(**{name: "5"})
    assert warning == f"{name!r} in the environment is not a setting; did you mean {meant!r}?"


def test_a_given_setting_is_not_meant_by_another_name(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"{ACCESS}PORT=1\n")
    assert load_settings({"PROT": "2"}, tmp_path / ".env").warnings == ()


USUAL_NAMES = """
    _ CI COLORTERM COLUMNS DBUS_SESSION_BUS_ADDRESS DEBIAN_FRONTEND DISPLAY DOCKER_HOST EDITOR
    GITHUB_TOKEN GITHUB_API_URL GPG_TTY HOME HOSTNAME HOSTTYPE http_proxy HTTPS_PROXY INVOCATION_ID
    JAVA_HOME JOURNAL_STREAM KUBERNETES_PORT KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT LANG
    LANGUAGE LC_ALL LD_LIBRARY_PATH LESS LINES LISTEN_FDS LISTEN_PID LOGNAME LS_COLORS MAIL
    MAKEFLAGS MAKELEVEL MANPATH NO_PROXY NODE_ENV NOTIFY_SOCKET OLDPWD OPENAI_API_KEY PAGER PATH
    PGDATABASE PGHOST PGPASSWORD PGPORT PGUSER PIP_INDEX_URL POSTGRES_DB POSTGRES_HOST
    POSTGRES_PASSWORD POSTGRES_USER PS1 PWD PYTHONPATH PYTHONUNBUFFERED REDIS_HOST REDIS_PORT
    REDIS_URL SHELL SHLVL SSH_AUTH_SOCK SSH_CONNECTION STATE_DIRECTORY SYSTEMD_EXEC_PID TERM TMPDIR
    TMUX TZ USER VIRTUAL_ENV XDG_RUNTIME_DIR XDG_SESSION_ID DUETIME_URL DUETIME_API_KEY DUETIME_SEED
"""


def test_usual_variables_cause_no_warning() -> None:
    assert warnings(**dict.fromkeys(USUAL_NAMES.split(), "x")) == ()


def test_the_variables_that_kubernetes_sets_for_a_service_cause_no_warning() -> None:
    assert warnings(DUETIME_PORT="tcp://10.0.0.7:8080", DUETIME_SERVICE_HOST="10.0.0.7") == ()
