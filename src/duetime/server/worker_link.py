"""A worker's end of the connection to its supervisor.

The messages must stay as they are: a supervisor may start workers of a newer release.
"""

import asyncio
import contextlib
import socket
from collections.abc import MutableMapping
from pathlib import Path

import msgspec
from msgspec import Struct

WORKER_VARIABLE = "DUETIME_WORKER"
STOP = b"stop\n"
DRAIN = b"drain\n"
"""Like `STOP`, but no other worker takes over the connections of this one."""


class WorkerDescriptors(Struct, frozen=True):
    """The worker's number, and the file descriptors of its end of the connection and of the socket
    to listen on. `is_alone` if no other worker was there to serve when it was started.
    `metrics_directory` is the directory of the sockets by which the `workers` ask each other for
    their metrics; older supervisors pass neither. The supervisor passes them in the environment."""

    number: int
    line: int
    listener: int
    is_alone: bool = False
    metrics_directory: str | None = None
    workers: int | None = None


class WorkerMessage(Struct, frozen=True, omit_defaults=True):
    """A worker's message, as one line of JSON: ready, or the error that keeps it from starting."""

    error: str | None = None


class WorkerLink:
    def __init__(self, descriptors: WorkerDescriptors) -> None:
        self.number = descriptors.number
        self.is_alone = descriptors.is_alone
        self.workers = descriptors.workers
        directory = descriptors.metrics_directory
        self.metrics_directory = None if directory is None else Path(directory)
        self.listener = socket.socket(fileno=descriptors.listener)
        self._line = socket.socket(fileno=descriptors.line)
        for inherited in (self.listener, self._line):
            inherited.set_inheritable(False)
        self.drains = True
        """Whether load balancers have to notice the stop. Not if another worker takes over, nor if
        the supervisor is gone: its successor waits for the port."""

    @property
    def port(self) -> int:
        port: int = self.listener.getsockname()[1]
        return port

    def report_ready(self) -> None:
        self._send(WorkerMessage())

    def report_error(self, message: str) -> None:
        self._send(WorkerMessage(message))

    def stop_on_request(self, stopped: asyncio.Event) -> None:
        """Set the event once the supervisor says so, or is gone and the connection breaks. Older
        supervisors do not drain."""
        self._line.setblocking(False)
        loop = asyncio.get_running_loop()

        def hear() -> None:
            heard = b""
            with contextlib.suppress(ConnectionError):
                heard = self._line.recv(64)
            loop.remove_reader(self._line)
            self.drains = heard == DRAIN
            if not heard:
                import structlog

                structlog.get_logger().warning("supervisor.lost")
            stopped.set()

        loop.add_reader(self._line, hear)

    def _send(self, message: WorkerMessage) -> None:
        # The supervisor may be gone.
        with contextlib.suppress(ConnectionError):
            self._line.sendall(msgspec.json.encode(message) + b"\n")


def worker_link(environ: MutableMapping[str, str]) -> WorkerLink | None:
    """The connection to the supervisor that started this process, if one did."""
    text = environ.pop(WORKER_VARIABLE, None)
    return None if text is None else WorkerLink(msgspec.json.decode(text, type=WorkerDescriptors))
