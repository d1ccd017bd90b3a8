"""The `duetime` command as a process."""

import asyncio
import json
import signal
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from tests.polling import PATIENCE_SECONDS
from tests.real_server.server_process import API_KEY, DUETIME, ServerProcess


class Finished(NamedTuple):
    status: int
    output: str
    errors: str


async def run_command(
    *arguments: str, directory: Path, stdin: str = "", program: str = DUETIME, **environ: str
) -> Finished:
    """Run `duetime` to its end."""
    return await _run(program, *arguments, directory=directory, stdin=stdin, environ=environ)


async def run_shell(script: str, directory: Path) -> str:
    """The output of the shell script."""
    finished = await _run("/bin/sh", "-c", script, directory=directory, stdin="", environ={})
    assert finished.status == 0, finished.errors
    return finished.output


async def _run(
    program: str, *arguments: str, directory: Path, stdin: str, environ: dict[str, str]
) -> Finished:
    process = await asyncio.create_subprocess_exec(
        program,
        *arguments,
        cwd=directory,
        env={"PATH": "/usr/bin:/bin", **environ},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE_SECONDS):
        output, errors = await process.communicate(stdin.encode())
    assert process.returncode is not None
    return Finished(process.returncode, output.decode(), errors.decode())


class Cli:
    """The commands of a user who has set the server's address and key once."""

    def __init__(self, server: ServerProcess, directory: Path) -> None:
        self.directory = directory
        self.environ = {"DUETIME_URL": server.url, "DUETIME_API_KEY": API_KEY}

    async def __call__(self, *arguments: str, stdin: str = "", **environ: str) -> Finished:
        return await run_command(
            *arguments, directory=self.directory, stdin=stdin, **(self.environ | environ)
        )

    async def data(self, *arguments: str, stdin: str = "") -> dict[str, object]:
        finished = await self(*arguments, "--json", stdin=stdin)
        assert finished.status == 0, finished.errors
        data = json.loads(finished.output)
        assert isinstance(data, dict)
        return data


class Command:
    """A command that runs until it is ended, and its output meanwhile."""

    def __init__(
        self, *arguments: str, directory: Path, program: str = DUETIME, **environ: str
    ) -> None:
        self.lines: list[str] = []
        self.errors = ""
        self._program = program
        self._arguments = arguments
        self._directory = directory
        self._environ = environ
        self._process: asyncio.subprocess.Process

    async def line(self, containing: str = "") -> str:
        """The next line of standard output that contains the text."""
        return await self._next_line(self._process.stdout, containing)

    async def error_line(self, containing: str = "") -> str:
        """The next line of standard error that contains the text."""
        return await self._next_line(self._process.stderr, containing)

    async def _next_line(self, stream: asyncio.StreamReader | None, containing: str) -> str:
        assert stream is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                data = await stream.readline()
                if not data:
                    raise EOFError("\n".join(self.lines))
                self.lines.append(data.decode().rstrip("\n"))
                if containing in self.lines[-1]:
                    return self.lines[-1]

    async def end(self, number: signal.Signals) -> int:
        """Send the signal and wait for the exit status."""
        self._process.send_signal(number)
        return await self.ended()

    async def ended(self) -> int:
        """The exit status of a command that ends by itself."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            output, errors = await self._process.communicate()
        self.lines.extend(output.decode().splitlines())
        self.errors = errors.decode()
        assert self._process.returncode is not None
        return self._process.returncode

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            self._program,
            *self._arguments,
            cwd=self._directory,
            env={"PATH": "/usr/bin:/bin", **self._environ},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process.returncode is None:
            await self.end(signal.SIGKILL)
