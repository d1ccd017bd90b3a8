"""A worker as its supervisor sees it: a process, and the messages it sends."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

from duetime.server.worker_link import (
    DRAIN,
    STOP,
    WORKER_VARIABLE,
    WorkerDescriptors,
    WorkerMessage,
)


class Ending(Struct, frozen=True):
    """How a process ended. `status` is negative if a signal ended it; `error` is the message that
    the worker sent before it was ready."""

    status: int
    error: str | None = None

    def facts(self) -> dict[str, object]:
        """For the log."""
        if self.status < 0:
            facts: dict[str, object] = {"signal": signal_name(-self.status)}
        else:
            facts = {"status": self.status}
        return facts if self.error is None else {**facts, "error": self.error}


class Worker(Protocol):
    @property
    def pid(self) -> int: ...

    async def ready(self) -> bool:
        """Wait until the worker serves (True), or has ended before that (False)."""
        ...

    async def ended(self) -> Ending: ...

    def stop(self, *, drains: bool) -> None:
        """Ask the worker to stop gracefully. It `drains` first if no other worker takes over its
        connections. May be called more than once."""
        ...

    def kill(self) -> None: ...


class WorkerProcess:
    """`duetime serve` with the given options; an environment variable makes it a worker.

    The process leads its own session: Ctrl-C on a terminal reaches the supervisor only, which
    then stops the workers gracefully. The worker listens on `listener`; while this process holds
    the socket too, a replacement can take it over.
    """

    def __init__(
        self,
        number: int,
        listener: socket.socket,
        options: Sequence[str],
        *,
        is_alone: bool,
        metrics_directory: Path | None = None,
        workers: int | None = None,
    ) -> None:
        self.listener = listener
        self._line, theirs = socket.socketpair()
        self._line.setblocking(False)
        with theirs:
            descriptors = WorkerDescriptors(
                number,
                theirs.fileno(),
                listener.fileno(),
                is_alone,
                None if metrics_directory is None else str(metrics_directory),
                workers,
            )
            try:
                self._process = subprocess.Popen(
                    # -P keeps modules in the working directory from being imported.
                    [sys.executable, "-P", "-m", "duetime.cli", "serve", *options],
                    env=os.environ | {WORKER_VARIABLE: msgspec.json.encode(descriptors).decode()},
                    pass_fds=[descriptors.line, descriptors.listener],
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError:
                self._line.close()
                listener.close()
                raise
        self._is_ready = asyncio.Event()
        self._watching = asyncio.create_task(self._watch())

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ready(self) -> bool:
        becoming = asyncio.create_task(self._is_ready.wait())
        try:
            await asyncio.wait({becoming, self._watching}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            becoming.cancel()
        return self._is_ready.is_set() and not self._watching.done()

    async def ended(self) -> Ending:
        return await asyncio.shield(self._watching)

    def stop(self, *, drains: bool) -> None:
        self.listener.close()
        with contextlib.suppress(OSError):
            self._line.send(DRAIN if drains else STOP)

    def kill(self) -> None:
        self._process.kill()

    async def _watch(self) -> Ending:
        """Read messages until the connection breaks, which any end of the process causes."""
        error = None
        reader, writer = await asyncio.open_connection(sock=self._line)
        with contextlib.suppress(ConnectionError):
            async for line in reader:
                error = msgspec.json.decode(line, type=WorkerMessage).error
                if error is None:
                    self._is_ready.set()
        # From now on connections go to other workers, or are refused.
        self.listener.close()
        status = await asyncio.to_thread(self._process.wait)
        writer.close()
        return Ending(status, error)


class UnstartedWorker:
    """Stands for a process that the operating system refused to start."""

    pid = 0

    def __init__(self, reason: str) -> None:
        self._ending = Ending(1, reason)

    async def ready(self) -> bool:
        return False

    async def ended(self) -> Ending:
        return self._ending

    def stop(self, *, drains: bool) -> None:
        pass

    def kill(self) -> None:
        pass


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
