"""The PostgreSQL servers of a test run: one that all processes share, others for single tests.

The process that pytest was started as owns them: the controller if there are workers. It only
makes a directory; the first test that needs a server starts it, and `guard` ends them all.
"""

import contextlib
import fcntl
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

from tests.postgres import guard
from tests.postgres.binaries import make_directory
from tests.postgres.server import PostgresServer


class TestRun:
    """The process that owns the servers."""

    __test__ = False

    def __init__(self) -> None:
        self.directory = make_directory()
        self._lock = _locked(self.directory / guard.RUN_LOCK)

    def end(self) -> None:
        """Return once every server is gone."""
        self._lock.close()
        guarding = self.directory / guard.GUARD_LOCK
        # The guard may have removed the directory already.
        with contextlib.suppress(FileNotFoundError):
            _locked(guarding).close()
        shutil.rmtree(self.directory, ignore_errors=True)


class Servers:
    """The servers, as any process of the run uses them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def shared_url(self) -> str:
        written = self._directory / "shared.url"
        with _locked(self._directory / "shared.lock"):
            if not written.exists():
                server = self.make()
                server.start()
                written.write_text(server.url)
            return written.read_text()

    def make(
        self,
        *,
        durable: bool = False,
        primary: PostgresServer | None = None,
        slot: str | None = None,
    ) -> PostgresServer:
        """A server that is not started yet."""
        with _locked(self._directory / "making.lock"):
            if not (self._directory / guard.GUARD_LOCK).exists():
                self._start_guard()
        directory = Path(tempfile.mkdtemp(dir=self._directory))
        return PostgresServer(directory, durable=durable, primary=primary, slot=slot)

    def _start_guard(self) -> None:
        process = subprocess.Popen(
            [sys.executable, guard.__file__, self._directory],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            cwd="/",
            start_new_session=True,
        )
        # The guard outlives this process, and Popen would warn about that.
        process.returncode = 0
        assert process.stdout is not None
        with process.stdout as said:
            assert said.readline() == b"guarding\n"


def _locked(path: Path) -> IO[str]:
    """The locked file, once it is free. Closing it, or the end of the process, frees it."""
    file = path.open("a")
    fcntl.flock(file, fcntl.LOCK_EX)
    return file
