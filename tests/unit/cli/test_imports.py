"""Modules that a command imports: a client starts without the code of the server."""

import subprocess
import sys

import pytest

from duetime.cli.main import COMMANDS

CLIENTS = [
    name
    for name, command in COMMANDS.items()
    if command.module.startswith(("security.", "timers."))
]
SERVER_SIDE = (
    *("apsw", "asyncpg", "httptools", "nats", "redis", "starlette", "uvicorn", "uvloop"),
    *(f"duetime.{part}" for part in ("api", "bus", "composition", "delivery", "engine")),
    *(f"duetime.{part}" for part in ("local_process", "logs", "nats", "server", "service")),
    *(f"duetime.{part}" for part in ("settings", "stores", "testing")),
)
# `duetime bus` talks to a broker, with the code of the bus and the settings of the server.
NEEDED_BY_BUS = {"duetime.bus", "duetime.nats", "duetime.service", "duetime.settings"}

# `duetime listen` is an HTTP server of its own, and reads callbacks as delivery writes them.
NEEDED_BY_LISTEN = {"duetime.delivery", "httptools", "uvloop"}


def imported_by(*names: str) -> set[str]:
    """The modules in a fresh process that runs the commands' `--help` as `duetime` would."""
    script = f"""
import sys
from duetime.cli.main import main
for name in {names!r}:
    sys.argv = ["duetime", name, "--help"]
    try:
        main()
    except SystemExit as end:
        assert end.code == 0, end.code
print("\\n" + " ".join(sys.modules))
"""
    finished = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(finished.stdout.splitlines()[-1].split())


def test_client_commands_import_nothing_of_the_server() -> None:
    imported = imported_by(*CLIENTS)
    assert "duetime.cli.client.platform" in imported
    assert imported.isdisjoint(SERVER_SIDE)


def test_the_bus_command_imports_nothing_of_the_server_beyond_the_bus() -> None:
    imported = imported_by("bus")
    assert "duetime.bus.messages" in imported
    assert imported.isdisjoint(set(SERVER_SIDE) - NEEDED_BY_BUS)


def test_listen_imports_nothing_of_the_service() -> None:
    imported = imported_by("listen")
    assert "duetime.listener" in imported
    assert imported.isdisjoint(set(SERVER_SIDE) - NEEDED_BY_LISTEN)


@pytest.mark.parametrize("name", ["serve", "migrate", "bus"])
def test_the_help_of_other_commands_needs_no_driver(name: str) -> None:
    assert imported_by(name).isdisjoint({"apsw", "asyncpg", "nats", "redis", "uvicorn"})
