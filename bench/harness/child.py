"""Child processes of the harness: lines of JSON over standard input and output.

The load generator, the receiver and the bare limits never share an interpreter. The parent waits.
"""

import os
import selectors
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import msgspec

ROOT = Path(__file__).resolve().parents[2]
STOP_SECONDS = 5.0

Answer = TypeVar("Answer", bound=msgspec.Struct)


class ChildFailed(Exception):
    """A child process ended or stopped answering. Its standard error was passed through."""


class Child:
    """`python -m <module>`, ended by closing its standard input."""

    def __init__(self, module: str) -> None:
        self.module = module
        self._unread = b""
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin = self._process.stdin
        self._stdout = self._process.stdout
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._stdout, selectors.EVENT_READ)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def ask(self, question: msgspec.Struct, answer: type[Answer], timeout_seconds: float) -> Answer:
        self.tell(question)
        return self.read(answer, timeout_seconds)

    def tell(self, question: msgspec.Struct) -> None:
        """Send a question without waiting; `read` returns the answer."""
        try:
            self._stdin.write(msgspec.json.encode(question) + b"\n")
        except BrokenPipeError as error:
            raise ChildFailed(f"{self.module} has ended") from error

    def read(self, answer: type[Answer], timeout_seconds: float) -> Answer:
        """The next answer. Raises `ChildFailed` when none arrives in time."""
        deadline = time.monotonic() + timeout_seconds
        parts = [self._unread]
        while b"\n" not in parts[-1]:
            if not self._selector.select(max(0.0, deadline - time.monotonic())):
                raise ChildFailed(f"{self.module} did not answer within {timeout_seconds:.0f} s")
            part = os.read(self._stdout.fileno(), 1 << 20)
            if not part:
                raise ChildFailed(f"{self.module} ended without an answer")
            parts.append(part)
        line, _, self._unread = b"".join(parts).partition(b"\n")
        return msgspec.json.decode(line, type=answer)

    def stop(self) -> None:
        self._stdin.close()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._selector.close()
        self._stdout.close()


def answer_parent(answer: msgspec.Struct) -> None:
    """Called in the child: send one line to the parent."""
    sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
    sys.stdout.buffer.flush()
