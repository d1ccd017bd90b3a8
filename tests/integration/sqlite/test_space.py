"""The free space of the disk, as the store reports it."""

from duetime.stores.sqlite import DiskStatus, SqliteStore
from tests.integration.sqlite.conftest import SmallDisk
from tests.polling import poll


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
