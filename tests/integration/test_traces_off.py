"""Without an exporter, or without the library, no part of OpenTelemetry is imported. Wrong
variables end the start."""

import subprocess
import sys
from pathlib import Path

import pytest

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}


def run(code: str, **environment: str) -> str:
    """The output of the code in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


ASSEMBLE = """
import sys
{before}
from duetime.composition import assemble
from duetime.domain.errors import DuetimeError
from duetime.settings import load_settings
try:
    assemble(load_settings({{"API_KEY": "x" * 32, "TIMER_DB_PATH": "unused.db"}}, dotenv_path=None))
except DuetimeError as error:
    print(error.message)
print(sorted(name for name, found in sys.modules.items() if name == "opentelemetry" and found))
"""


def test_nothing_is_imported_while_traces_are_off() -> None:
    assert run(ASSEMBLE.format(before="")) == "[]"
    assert run(ASSEMBLE.format(before=""), OTEL_SDK_DISABLED="true", **ENDPOINT) == "[]"


def test_a_missing_extra_is_named() -> None:
    without = "sys.modules['opentelemetry'] = None"
    message, imported = run(ASSEMBLE.format(before=without), **ENDPOINT).splitlines()
    assert "pip install 'duetime[otel]'" in message
    assert imported == "[]"


@pytest.mark.parametrize("command", ["serve", "dev"])
def test_a_wrong_variable_is_a_wrong_setting(tmp_path: Path, command: str) -> None:
    """Its status is that of other wrong settings, and the message is one line."""
    done = subprocess.run(
        [sys.executable, "-m", "duetime.cli", command, "--port", "0"],
        env={"API_KEY": "x" * 32, "OTEL_TRACES_SAMPLER": "nonsense", **ENDPOINT},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "OTEL_TRACES_SAMPLER must be one of" in line
