"""Bulk operations that a command starts and then follows until they end."""

import asyncio
import sys
from collections import deque

from duetime.cli.client.answers import Operation
from duetime.cli.client.v1 import V1Client, refusal
from duetime.cli.output.operation_views import operation_progress
from duetime.clock import SystemClock

START_SECONDS = 60.0
"""Timeout of a request that counts timers; the server takes up to a few seconds for it."""

POLL_SECONDS = 0.2

MAX_WAIT_SECONDS = 300.0
"""Time that the operations of other clients may leave no room for one of ours."""

Body = dict[str, object]


class NoRoom(Exception):
    """Other clients have too many operations running, and that did not change."""


class FollowedOperations:
    """The operations of one command, in the order of their start. A request that gets no answer of
    Duetime's raises `typer.Exit`, after its reason was printed."""

    def __init__(self, client: V1Client, *, quiet: bool) -> None:
        self.running: deque[Operation] = deque()
        self.ended: list[Operation] = []
        self._client = client
        self._clock = SystemClock()
        self._quiet = quiet
        self._has_said = False

    def start(self, body: Body) -> str | None:
        """Start an operation, if need be after earlier ones have ended. Returns the server's reason
        if it refuses. Raises `NoRoom`."""
        give_up_at = self._clock.monotonic() + MAX_WAIT_SECONDS
        while True:
            answer, document = self._client.exchange(
                "POST", "/operations", body=body, timeout_seconds=START_SECONDS
            )
            if answer.is_success:
                self.running.append(self._client.read_as(Operation, document))
                return None
            if answer.status_code != 429:
                return refusal(document, has_issued_key=self._client.has_issued_key)
            if self.running:
                self._follow_oldest()
            elif self._clock.monotonic() < give_up_at:
                self._say_once(refusal(document))
                self._sleep(_seconds_to_wait(answer.headers.get("Retry-After", "")))
            else:
                raise NoRoom(refusal(document))

    def follow(self) -> None:
        """Return when all operations have ended."""
        while self.running:
            self._follow_oldest()

    def _follow_oldest(self) -> None:
        with operation_progress(self.running[0], quiet=self._quiet) as show:
            while (operation := self.running[0]).status == "running":
                self._sleep(POLL_SECONDS)
                document = self._client.request("GET", f"/operations/{operation.id}")
                self.running[0] = self._client.read_as(Operation, document)
                show(self.running[0])
        self.ended.append(self.running.popleft())

    def _say_once(self, reason: str) -> None:
        if not self._quiet and not self._has_said:
            print(f"waiting: {reason}", file=sys.stderr, flush=True)
        self._has_said = True

    def _sleep(self, seconds: float) -> None:
        asyncio.run(self._clock.sleep(seconds))


def _seconds_to_wait(retry_after: str) -> float:
    """The seconds that the server asks for; a proxy may have put something else there."""
    seconds = float(retry_after) if retry_after.isdecimal() else 0.0
    return min(max(seconds, POLL_SECONDS), MAX_WAIT_SECONDS)
