"""Answered writes of keys and audit entries survive kill -9, and a full disk takes nothing away."""

import asyncio
import os
import random
import resource
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from duetime.testing.store_contract.security.audit_log import found, make_entry, newest_first
from duetime.testing.store_contract.security.credentials import make_key, stored
from duetime.testing.store_contract.steps import at
from tests.crash.security.security_writer import DETAILS, opened_by
from tests.effort import scaled
from tests.polling import PATIENCE_SECONDS
from tests.seed import chosen_seed

pytestmark = [pytest.mark.crash, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[3]
KILLS = scaled(3)
ENOUGH_STEPS = 10_000


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, ...]:
    """The arguments of the writer."""
    if request.param == "sqlite":
        return "sqlite", str(tmp_path / "timers.db")
    url, schema = map(request.getfixturevalue, ("postgres_url", "postgres_schema"))
    return "postgresql", url, schema


class Writer:
    """A process that writes, one step after the other."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask_for(self, steps: int) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n" * steps)

    async def answer(self) -> str:
        """The next answer; empty after the last one."""
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            return (await self._process.stdout.readline()).decode().strip()

    async def kill(self) -> list[str]:
        """Kill the process; returns the answers that it had given by then."""
        self._process.kill()
        answers = []
        while answer := await self.answer():
            answers.append(answer)
        await self._process.wait()
        return answers


@asynccontextmanager
async def writer(place: tuple[str, ...], first: int = 0) -> AsyncIterator[Writer]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.crash.security.security_writer", str(first), *place),
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield Writer(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def assert_kept(place: tuple[str, ...], last: int) -> None:
    """Every step up to the last one is in the store, and of the next one at most a part."""
    store = opened_by(*place)
    await store.open()
    # The database may still be at the last write of the killed process.
    uses = await store.security.last_uses()
    keys = await stored(store.security)
    id, next_id = f"k{last}", f"k{last + 1}"
    assert keys, "a key goes after the next one came"
    assert keys.keys() <= {id, next_id}
    if id in keys:
        assert keys[id] == make_key(id, name="replaced")
        assert uses[id] == at(last)
    entries = await found(store.security, limit=100_000)
    assert len(entries) in (2 * (last + 1), 2 * (last + 2)), "a batch is written as a whole"
    expected = [make_entry(n, details=DETAILS) for n in range(len(entries))]
    assert entries == newest_first(expected)
    await store.close()


async def test_answered_writes_survive_a_kill(place: tuple[str, ...]) -> None:
    chance = random.Random(chosen_seed())
    first = 0
    for _ in range(KILLS):
        async with writer(place, first) as process:
            process.ask_for(ENOUGH_STEPS)
            awaited = [await process.answer() for _ in range(chance.randint(1, 60))]
            answers = awaited + await process.kill()
        assert answers == [str(first + n) for n in range(len(answers))]
        assert len(answers) < ENOUGH_STEPS
        first += len(answers)
        await assert_kept(place, first - 1)


async def test_a_full_disk_takes_nothing_away(tmp_path: Path) -> None:
    """A limit of the file's size stands for the disk. Once there is room, writes go on."""
    place = ("sqlite", str(tmp_path / "timers.db"))
    async with writer(place) as process:
        process.ask_for(5)
        answers = [await process.answer() for _ in range(5)]
        soft, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        size = (tmp_path / "timers.db-wal").stat().st_size
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size + 60_000, hard))
        while answers[-1] != "full":
            assert len(answers) < 100, "the disk did not fill"
            process.ask_for(1)
            answers.append(await process.answer())
        process.ask_for(3)
        assert [await process.answer() for _ in range(3)] == ["full"] * 3
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (soft, hard))
        process.ask_for(3)
        answers = [each for each in answers if each != "full"]
        answers += [await process.answer() for _ in range(3)]
        await process.kill()
    assert answers == [str(n) for n in range(len(answers))]
    await assert_kept(place, len(answers) - 1)
