"""Warnings of OpenTelemetry's library as events of ours, without secrets of the variables."""

import logging
import re
from collections.abc import Collection

import structlog

from duetime.ports.clock import Clock

REMIND_SECONDS = 60.0
"""Time between two log lines about exports."""

MAX_PROBLEM_CHARACTERS = 1_000

_LIBRARIES = ("opentelemetry", "urllib3")
"""The libraries that know the collector. The second one logs requests with their queries."""

_MAX_READ_CHARACTERS = 4 * MAX_PROBLEM_CHARACTERS
_USER_INFO = re.compile(r"//\S*@")
_QUERY = re.compile(r"\?\S*")

_log = structlog.get_logger()


def without_secrets(words: str, secrets: Collection[str]) -> str:
    """The beginning of the words without these secrets, and without the queries, names and
    passwords of URLs."""
    words = words[:_MAX_READ_CHARACTERS]
    for secret in secrets:
        words = words.replace(secret, "...")
    return _QUERY.sub("?...", _USER_INFO.sub("//", words))[:MAX_PROBLEM_CHARACTERS]


class LibraryLog(logging.Handler):
    """Handles the warnings of the libraries in this process. Before `start` they are about
    variables, and each is logged once. Later ones are logged at most once a minute: a collector
    that is away fails every few seconds, and a full queue with every span."""

    def __init__(self, clock: Clock, secrets: Collection[str]) -> None:
        super().__init__(logging.WARNING)
        self._clock = clock
        self._secrets = secrets
        self._known: set[str] | None = set()
        self._remind_seconds = -REMIND_SECONDS
        self._count = 0
        self._is_quiet = False

    def install(self) -> None:
        for name in _LIBRARIES:
            library = logging.getLogger(name)
            library.handlers[:] = [self]
            library.propagate = False

    def start(self) -> None:
        """The libraries have read their variables."""
        self._known = None

    def stop(self) -> None:
        """Log nothing more, because the service stops."""
        self._is_quiet = True

    def cleaned(self, words: str) -> str:
        return without_secrets(words, self._secrets)

    def emit(self, record: logging.LogRecord) -> None:
        if self._known is not None:
            problem = self._problem_of(record)
            if problem not in self._known:
                self._known.add(problem)
                _log.warning("traces.setting_ignored", problem=problem)
            return
        self._count += 1
        now_seconds = self._clock.monotonic()
        if self._is_quiet or now_seconds < self._remind_seconds:
            return
        self._remind_seconds = now_seconds + REMIND_SECONDS
        _log.warning("traces.export_troubled", problem=self._problem_of(record), count=self._count)
        self._count = 0

    def _problem_of(self, record: logging.LogRecord) -> str:
        problem = record.getMessage()
        if record.exc_info is not None and record.exc_info[1] is not None:
            problem += f" {record.exc_info[1]}"
        return self.cleaned(problem)
