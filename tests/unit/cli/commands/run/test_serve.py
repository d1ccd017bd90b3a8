"""`duetime serve` does not open its door to everyone by accident."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from duetime.cli.main import command_line
from duetime.settings.definitions import SETTINGS


@pytest.fixture(autouse=True)
def empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(*options: str, **environ: str) -> tuple[int, str]:
    """The status and the message. Nothing is started before these checks."""
    result = CliRunner().invoke(command_line(), ["serve", *options], env=environ)
    return result.exit_code, result.stderr


def test_the_key_of_the_example_is_refused(tmp_path: Path) -> None:
    example = (Path(__file__).parents[5] / ".env.example").read_text(encoding="utf-8")
    (tmp_path / ".env").write_text(example, encoding="utf-8")
    status, message = refused(HOST="127.0.0.1")
    assert status == 2
    assert message.startswith("API_KEY is the one of .env.example, which everyone knows: set it")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "timers.example", ""])
def test_no_key_on_an_address_that_others_reach_is_refused(host: str) -> None:
    status, message = refused(AUTH="none", HOST=host)
    assert status == 2
    shown = host or "0.0.0.0"
    assert message.startswith(f"AUTH=none lets everyone use the API who can reach HOST={shown}: ")
    assert "--insecure" in message
    assert refused("--host", "0.0.0.0", AUTH="none", HOST="127.0.0.1")[0] == 2
