"""The lines that `duetime backup` and `duetime restore` print for PostgreSQL, run in a shell."""

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

from tests.polling import PATIENCE_SECONDS
from tests.postgres.binaries import find_binaries
from tests.real_server.command import run_command


async def run_printed_lines(command: str, directory: Path, url: str) -> list[str]:
    """Run what the command prints, in a shell; answers the names of the programs."""
    printed = await run_command(command, "timers.dump", directory=directory, DATABASE_URL=url)
    assert (printed.status, printed.output) == (2, "")
    lines = [line for line in printed.errors.splitlines() if line.startswith("  ")]
    shell = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-ec",
        "\n".join(lines),
        cwd=directory,
        env={
            "PATH": f"{find_binaries()}:/usr/bin:/bin",
            "PGPASSWORD": urlsplit(url).password or "",
        },
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE_SECONDS):
        _, errors = await shell.communicate()
    assert (shell.returncode, errors.decode()) == (0, "")
    return [line.split()[0] for line in lines]
