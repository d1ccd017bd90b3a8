"""A server that stops observing itself on a signal, so that one process can be measured with its
metrics and traces and without them. Two processes of the same code differ by more than these cost.

    python -m bench.harness.switched_server serve
"""

import signal
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from duetime.api.http.answers import Answer
from duetime.api.http.caller import Caller
from duetime.api.platform.fast_create import FastCreate
from duetime.cli.main import main
from duetime.domain.outcome import Outcome
from duetime.domain.timer import Claim
from duetime.engine.meters import EngineMeters
from duetime.ports.destination import MaySend
from duetime.telemetry.measured_store import StoreCalls
from duetime.telemetry.metrics.recording import Series
from duetime.telemetry.metrics.requests import OperationRequests
from duetime.telemetry.traces import exporting
from duetime.telemetry.traces.destination import TracedDestination
from duetime.telemetry.traces.exporting import Exporting

OFF = signal.SIGUSR1
ON = signal.SIGUSR2

_is_on = True
_timed, _handle = StoreCalls._timed, FastCreate.handle
_exporting: list[Exporting] = []


def _do_nothing(*_: object) -> None:
    """Records nothing."""


def _deliver_untraced(
    self: TracedDestination, claim: Claim, may_send: MaySend
) -> Coroutine[Any, Any, Outcome]:
    return self._destination.deliver(claim, may_send)


def _handle_untraced(
    self: FastCreate, caller: Caller, body: bytes, respond: Callable[[Answer], None]
) -> None:
    tracer, self._tracer = self._tracer, None
    try:
        _handle(self, caller, body, respond)
    finally:
        self._tracer = tracer


def _timed_while_on(
    self: StoreCalls, operation: str, call: Callable[..., Awaitable[Any]]
) -> Callable[..., Awaitable[Any]]:
    timed = _timed(self, operation, call)
    return lambda *values, **named: (timed if _is_on else call)(*values, **named)


# A method is replaced rather than wrapped: a wrapper costs as much as some of these.
_REPLACED_WHILE_OFF: list[tuple[type, str, Callable[..., Any]]] = [
    (EngineMeters, "attempt_made", _do_nothing),
    (Series, "observe", _do_nothing),
    (OperationRequests, "answered", _do_nothing),
    (TracedDestination, "deliver", _deliver_untraced),
    (FastCreate, "handle", _handle_untraced),
]
_ORIGINALS = [(kind, name, getattr(kind, name)) for kind, name, _ in _REPLACED_WHILE_OFF]


def _switch(number: int, _: object) -> None:
    global _is_on
    was_on, _is_on = _is_on, number == ON
    for kind, name, method in _ORIGINALS if _is_on else _REPLACED_WHILE_OFF:
        setattr(kind, name, method)
    if was_on and not _is_on:
        # The time without observation must not pay for exports of the time before.
        for processor in (each for known in _exporting for each in known._processors):
            processor.force_flush()


class _KnownExporting(Exporting):
    def __init__(self, *values: Any) -> None:
        super().__init__(*values)
        _exporting.append(self)


if __name__ == "__main__":
    StoreCalls._timed = _timed_while_on  # type: ignore[method-assign]
    exporting.Exporting = _KnownExporting  # type: ignore[assignment, misc]
    for number in (OFF, ON):
        signal.signal(number, _switch)
    main()
