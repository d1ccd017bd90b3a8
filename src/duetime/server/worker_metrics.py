"""The metrics of all workers, which ask each other over sockets in a private directory."""

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

import msgspec
import structlog

from duetime.telemetry.metrics.exposition import Format

ANSWER_SECONDS = 1.0
"""Time that the other workers have to answer. One that is stopped or busy is left out."""

REQUEST_SECONDS = 1.0
"""Time that a worker has to send its question, and then to read the answer."""

MAX_ANSWER_BYTES = 64 * 2**20

Samples = Mapping[str, str]
"""The lines of each metric of a process, by the name of the metric."""

_decoder = msgspec.msgpack.Decoder(dict[str, str])
_log = structlog.get_logger()


@contextlib.contextmanager
def metrics_directory() -> Iterator[Path | None]:
    """A directory that only this user can look into, as long as the supervisor runs. None if there
    can be none; then each worker shows only itself."""
    try:
        directory = Path(tempfile.mkdtemp(prefix="duetime-metrics-"))
    except OSError as error:
        _log_failure(error)
        yield None
        return
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


class WorkerMetrics:
    """A worker's socket, on which it answers the others, and its questions to theirs.

    Sockets have the numbers of their workers. A worker that replaces another takes over the name,
    so that exactly one process is asked for each number. The question is the name of the format;
    the answer is the samples as MessagePack, until the end of the connection.
    """

    def __init__(self, directory: Path | None, number: int, workers: int) -> None:
        """Without a directory nobody can be asked."""
        self.number = number
        self.count = workers
        self._directory = directory
        self._others = [each for each in range(1, workers + 1) if each != number]
        self._server: asyncio.Server | None = None
        self._path: Path | None = None
        self._inode = 0

    async def listen(self, samples: Callable[[Format], Awaitable[Samples]]) -> None:
        """Answer the others from now on. A failure is logged: the others then miss this worker."""

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.closing(writer):
                try:
                    async with asyncio.timeout(REQUEST_SECONDS):
                        name = await reader.readline()
                    writer.write(msgspec.msgpack.encode(await samples(Format[name.decode()[:-1]])))
                    async with asyncio.timeout(REQUEST_SECONDS):
                        await writer.drain()
                except (OSError, TimeoutError, KeyError, ValueError):
                    # The other worker is stopped or of another release. It need not read the rest.
                    writer.transport.abort()

        if self._directory is None:
            return
        new_path = self._directory / f"{self.number}.{os.getpid()}.new"
        try:
            self._server = await asyncio.start_unix_server(answer, new_path)
            self._inode = new_path.stat().st_ino
            self._path = new_path.rename(self._directory / _name(self.number))
        except OSError as error:
            _log_failure(error)

    async def samples_of_others(self, form: Format) -> list[Samples | None]:
        """The samples of each other worker; None for one that does not answer in time."""
        return await asyncio.gather(*(self._ask(number, form) for number in self._others))

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        if self._path is not None:
            with contextlib.suppress(OSError):
                # It may be the socket of a replacement by now.
                if self._path.stat().st_ino == self._inode:
                    self._path.unlink()

    async def _ask(self, number: int, form: Format) -> Samples | None:
        if self._directory is None:
            return None
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return _decoder.decode(await _answer(self._directory / _name(number), form))
        except (OSError, TimeoutError, msgspec.MsgspecError):
            return None


def _name(number: int) -> str:
    return f"{number}.sock"


async def _answer(path: Path, form: Format) -> bytes:
    """Raises OSError, also if the answer is too large."""
    reader, writer = await asyncio.open_unix_connection(path)
    with contextlib.closing(writer):
        writer.write(f"{form.name}\n".encode())
        answer = bytearray()
        while piece := await reader.read(2**20):
            answer += piece
            if len(answer) > MAX_ANSWER_BYTES:
                raise OSError("too large")
        return bytes(answer)


def _log_failure(error: OSError) -> None:
    _log.warning(
        "metrics.workers_apart",
        reason=error.strerror or str(error),
        advice="a scrape shows some workers only: make the directory for temporary files (TMPDIR) "
        "writable",
    )
