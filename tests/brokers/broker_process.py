"""A broker as a child process: started, stopped, killed and started again on its port."""

import contextlib
import ctypes
import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

HOST = "127.0.0.1"
PATIENCE_SECONDS = 30
POLL_MS = 20

_PR_SET_PDEATHSIG = 1


class BrokerProcess:
    """Runs `command`, which listens on `port`; its output goes to the file `log`. With a
    `probe`, a line and the beginning of a busy answer, the broker is ready once it answers the line
    in another way.

    The broker ends with the process that started it, however that ends.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        port: int,
        log: Path,
        probe: tuple[bytes, bytes] | None = None,
    ) -> None:
        self._command = list(map(str, command))
        self._port = port
        self._log = log
        self._probe = probe
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def start(self) -> None:
        """Return once the port answers."""
        assert not self.is_running
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_end_with_parent(),
            )
        self.wait_until_it_answers()

    def wait_until_it_answers(self) -> None:
        assert self._process is not None
        for _ in range(PATIENCE_SECONDS * 1_000 // POLL_MS):
            if self._process.poll() is not None:
                break
            if self._answers():
                return
            # Ends early if the process ends.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(POLL_MS / 1_000)
        self.kill()
        raise RuntimeError(f"{self._command[0]} did not start:\n{self.log}")

    def _answers(self) -> bool:
        try:
            with socket.create_connection((HOST, self._port), timeout=1) as connection:
                if self._probe is None:
                    return True
                line, busy = self._probe
                connection.sendall(line)
                answer = connection.recv(1_024)
                return bool(answer) and not answer.startswith(busy)
        except OSError:
            return False

    def stop(self) -> None:
        """SIGTERM. Returns when the process has ended."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL: the process neither tells its clients nor writes anything more."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Fall silent but keep the connections, as when the host hangs."""
        os.kill(self.pid, signal.SIGSTOP)
        # The threads stop one after the other; this returns after the last one.
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def _end(self, how: signal.Signals) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(how)
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def find_program(name: str, *directories: Path) -> Path | None:
    """The program of that name on the PATH, beside this Python, or in one of the directories."""
    on_path = shutil.which(name)
    candidates = [Path(on_path)] if on_path else []
    candidates += [
        Path(sys.executable).parent / name,
        *(directory / name for directory in directories),
    ]
    return next((each for each in candidates if os.access(each, os.X_OK)), None)


def skip_without(program: Path | None, missing: str) -> Path:
    """Skips the test without the program, but fails it where the variable CI is set."""
    if program is not None:
        return program
    if os.environ.get("CI"):
        pytest.fail(missing, pytrace=False)
    pytest.skip(missing)


@functools.cache
def _end_with_parent() -> "functools.partial[int] | None":
    if sys.platform != "linux":
        return None
    # Looked up here: little is safe between fork and exec.
    libc = ctypes.CDLL(None, use_errno=True)
    return functools.partial(libc.prctl, _PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
