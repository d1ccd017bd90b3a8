"""`duetime copy` and the commands that check its work."""

import json
from pathlib import Path
from typing import Any

from tests.real_server.command import Finished, run_command


async def copy(directory: Path, *arguments: str, **environ: str) -> Finished:
    return await run_command("copy", *arguments, directory=directory, **environ)


async def copied(directory: Path, *arguments: str) -> dict[str, Any]:
    finished = await copy(directory, *arguments, "--json", "--quiet")
    assert (finished.status, finished.errors) == (0, ""), finished.output
    document: dict[str, Any] = json.loads(finished.output)
    return document


async def audit(directory: Path, **settings: str) -> list[dict[str, Any]]:
    finished = await run_command("audit", "--json", directory=directory, **settings)
    findings: list[dict[str, Any]] = json.loads(finished.output)["findings"]
    return findings


async def migrate(directory: Path, **settings: str) -> None:
    assert (await run_command("migrate", directory=directory, **settings)).status == 0
