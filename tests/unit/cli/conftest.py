"""A scripted server for the commands that talk to one."""

from pathlib import Path

import pytest

from tests.unit.cli.scripted_server import ScriptedServer, scripted_server


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ScriptedServer:
    monkeypatch.chdir(tmp_path)
    return scripted_server(monkeypatch)
