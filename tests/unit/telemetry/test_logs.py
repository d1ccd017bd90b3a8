"""Logs: one line each, the same for our events and for libraries'."""

import io
import json
import logging
import re
import subprocess
from pathlib import Path

import pytest
import structlog

from duetime.telemetry.logs import configure_logs

ALERT_PAGES = Path(__file__).parents[3] / "docs" / "runbooks" / "alerts"

pytestmark = pytest.mark.usefixtures("restored_logging")


def test_an_event_is_a_json_line_with_its_fields() -> None:
    stream = io.StringIO()
    configure_logs("info", "auto", stream)
    structlog.get_logger().info("timer.delivered", id="t1", attempt=2)
    entry = json.loads(stream.getvalue())
    assert entry.pop("timestamp").endswith("Z")
    assert entry == {"level": "info", "event": "timer.delivered", "id": "t1", "attempt": 2}


def test_messages_of_libraries_are_written_in_the_same_way() -> None:
    stream = io.StringIO()
    configure_logs("info", "json", stream)
    logging.getLogger("uvicorn.error").info("Started server process")
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request %s", "received.")
    entry = json.loads(stream.getvalue())
    assert (entry["level"], entry["event"]) == ("warning", "Invalid HTTP request received.")


def test_a_level_that_is_off_costs_no_formatting() -> None:
    stream = io.StringIO()
    configure_logs("warn", "json", stream)

    class Costly:
        def __str__(self) -> str:
            raise AssertionError("formatted although it is off")

    structlog.get_logger().info("timer.delivered", field=Costly())
    assert stream.getvalue() == ""


def test_text_is_readable_and_errors_carry_their_traceback() -> None:
    stream = io.StringIO()
    configure_logs("trace", "text", stream)
    try:
        raise ValueError("broken")
    except ValueError:
        structlog.get_logger().exception("engine.failed", shard=3)
    text = stream.getvalue()
    assert "engine.failed" in text
    assert "shard=3" in text
    assert "ValueError: broken" in text


def test_pages_of_alerts_leave_out_the_lines_that_they_mean_to() -> None:
    stream = io.StringIO()
    configure_logs("debug", "json", stream)
    log = structlog.get_logger()
    log.info("service.started")
    log.error("api.unavailable")
    filters = {
        tuple(pattern)
        for page in ALERT_PAGES.glob("*.md")
        for pattern in re.findall(r"^journalctl .* \| grep (-v) '([^']*)'", page.read_text(), re.M)
    }
    assert filters
    for options, pattern in filters:
        shown = subprocess.run(
            ["grep", options, pattern],
            input=stream.getvalue(),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert [json.loads(line)["event"] for line in shown.splitlines()] == ["api.unavailable"]
