"""The free space of the disk, as the store reports it and as copies leave it."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from duetime.domain.errors import CopyRefused
from duetime.stores.sqlite import DiskStatus, SqliteStore
from duetime.stores.sqlite.backup.placing import back_up
from duetime.testing.store_contract.steps import at
from tests.integration.sqlite.conftest import SmallDisk
from tests.polling import poll

MIB = 2**20


async def test_a_disk_without_a_free_byte_is_full_before_a_write_fails(
    store: SqliteStore, small_disk: SmallDisk
) -> None:
    async def status() -> DiskStatus:
        assert store.disk is not None
        return store.disk

    assert not (await status()).is_full
    small_disk.set_free_bytes(0)
    await poll(status, lambda status: status.is_full)
    small_disk.set_free_bytes(2**30)
    await poll(status, lambda status: not status.is_full)


async def test_a_copy_on_the_disk_of_the_store_leaves_its_reserve(
    store: SqliteStore, path: Path, small_disk: SmallDisk
) -> None:
    """Below the reserve, the service would refuse new timers."""
    file = path.with_name("copy.db")
    back_up_beside = partial(
        back_up, path, file, force=False, now=at(60), advance=lambda _: None, reserve_bytes=80 * MIB
    )
    small_disk.set_free_bytes(154 * MIB)
    with pytest.raises(CopyRefused, match="leaves 161 MB to the service: make room"):
        back_up_beside()
    assert not file.exists()
    small_disk.set_free_bytes(156 * MIB)
    back_up_beside()


async def test_a_copy_on_another_disk_may_use_more(
    store: SqliteStore, path: Path, small_disk: SmallDisk
) -> None:
    shared_memory = Path("/dev/shm")
    if not shared_memory.is_dir() or shared_memory.stat().st_dev == path.stat().st_dev:
        pytest.skip("/dev/shm is no disk of its own here")
    small_disk.set_free_bytes(100 * MIB)
    with TemporaryDirectory(dir=shared_memory) as directory:
        file = Path(directory) / "copy.db"
        back_up(path, file, force=False, now=at(60), advance=lambda _: None, reserve_bytes=80 * MIB)
        assert file.exists()
