"""The audit of the locks, with vulnerability data from a server on the loopback interface."""

import asyncio
import json
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.polling import PATIENCE_SECONDS

SCRIPT = Path(__file__).resolve().parents[2] / "requirements" / "audit.py"
HASH = "--hash=sha256:" + "0" * 64
LOCK = f"sound==1.0 {HASH}\nbroken==2.0 {HASH}\n"
VULNERABILITY = {
    "id": "GHSA-0000",
    "summary": "reads too much",
    "aliases": ["CVE-2026-0001"],
    "affected": [
        {
            "package": {"name": "broken", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2.1"}]}],
        }
    ],
}


@asynccontextmanager
async def osv(*vulnerable: str, hangs: bool = False) -> AsyncIterator[str]:
    """The address of a server that knows vulnerabilities of these packages."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        asked = json.loads(await reader.readexactly(length))
        if hangs:
            await reader.read()
        known = asked["package"]["name"] in vulnerable
        body = json.dumps({"vulns": [VULNERABILITY]} if known else {}).encode()
        start = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        writer.write(start % len(body) + body)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/query"


async def audit(
    directory: Path, url: str, *options: str, lock: str = LOCK
) -> tuple[int, list[str]]:
    """The exit code and the printed lines."""
    (directory / "runtime.txt").write_text(lock)
    shutil.copy(SCRIPT, directory)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(directory / SCRIPT.name), "-s", "osv", "--osv-url", url),
        *("--cache-dir", str(directory / "cache"), *options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(PATIENCE_SECONDS):
        output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode().splitlines()


async def test_locks_without_a_known_vulnerability_pass(tmp_path: Path) -> None:
    async with osv() as url:
        assert await audit(tmp_path, url) == (0, ["vulnerabilities: 0 known in 2 locked versions"])


async def test_a_known_vulnerability_fails(tmp_path: Path) -> None:
    async with osv("broken") as url:
        status, lines = await audit(tmp_path, url)
    assert status == 1
    assert lines == [
        "broken 2.0: CVE-2026-0001 GHSA-0000; fixed in 2.1",
        "vulnerabilities: 1 known in 2 locked versions",
    ]


async def test_data_that_cannot_be_reached_is_one_line(tmp_path: Path) -> None:
    async with osv() as url:
        pass
    status, (line,) = await audit(tmp_path, url)
    assert status == 0
    assert line.startswith("vulnerabilities: SKIPPED, their data cannot be reached: ")
    assert "Connection refused" in line


async def test_a_server_that_does_not_answer_is_not_waited_for(tmp_path: Path) -> None:
    async with osv(hangs=True) as url:
        status, (line,) = await audit(tmp_path, url, "--timeout", "1")
    assert (status, "SKIPPED" in line, "timed out" in line) == (0, True, True)


@pytest.mark.parametrize("lock", ["sound>=1.0\n", "!\n"])
async def test_a_lock_that_cannot_be_audited_fails(tmp_path: Path, lock: str) -> None:
    async with osv() as url:
        status, (line,) = await audit(tmp_path, url, lock=lock)
    assert status == 1
    assert line.startswith("vulnerabilities: the locks cannot be audited: ")
