"""The server against its own OpenAPI document: schemathesis makes up thousands of requests, the
same each time, and finds no answer that the document does not describe.

The output has a curl command for a request that fails.
"""

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from duetime.api.openapi.document import openapi_document
from tests.effort import scaled
from tests.real_server.server_process import API_KEY, ServerProcess

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SCHEMATHESIS = str(Path(sys.executable).with_name("schemathesis"))
CONFIGURATION = Path(__file__).with_name("schemathesis.toml")
ROOT = Path(__file__).parents[3]
EXAMPLES = scaled(10)

# Each part is checked by itself, so that no part meets timers that another has removed.
PARTS = {
    "platform": r"^/(timers|healthz|livez|readyz|metrics|\.well-known)",
    "timers v1": r"^/api/v1/(timers|explain)",
    "namespaces v1": r"^/api/v1/(namespaces|endpoints|problems)",
    "operations v1": r"^/api/v1/operations",
    "keys v1": r"^/api/v1/(keys|audit-log|ui-links)",
}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    """A server on the memory store; the contract suite tests the others."""
    async with ServerProcess(tmp_path, DATABASE_URL="memory:") as process:
        yield process


def test_every_path_is_in_one_part() -> None:
    paths: object = openapi_document()["paths"]
    assert isinstance(paths, dict)
    for path in paths:
        assert sum(re.search(part, path) is not None for part in PARTS.values()) == 1, path


@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", PARTS)
async def test_answers_are_as_described(server: ServerProcess, tmp_path: Path, part: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *(SCHEMATHESIS, "--config-file", str(CONFIGURATION)),
        *("run", f"{server.url}/openapi.json", "--include-path-regex", PARTS[part]),
        *("--header", f"X-API-Key: {API_KEY}", "--no-color"),
        *("--max-examples", str(EXAMPLES)),
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        said = (await process.communicate())[0].decode()
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == 0, said
    assert "No issues found" in said, said
    assert [entry for entry in server.logs if entry["level"] == "error"] == []
