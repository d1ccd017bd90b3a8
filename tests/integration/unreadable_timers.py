"""The log line of a timer that cannot be read, alike on all stores."""

from collections.abc import Sequence

from structlog.typing import EventDict


def assert_logged_without_content(logs: Sequence[EventDict]) -> None:
    """Exactly one line, which names the timer t2 and quotes nothing of it."""
    (line,) = logs
    assert line["reason"]
    assert "secret" not in line["reason"]
    assert {**line, "reason": ""} == {
        "event": "timer.unreadable",
        "log_level": "error",
        "namespace": "default",
        "id": "t2",
        "reason": "",
    }
