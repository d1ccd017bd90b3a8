"""Keys, secrets and the audit log in a file: old files, damaged rows, and a disk that is short."""

from pathlib import Path

import apsw
import pytest

from duetime.clock import SystemClock
from duetime.domain.errors import StorageFull
from duetime.domain.namespace import Namespace
from duetime.domain.security.access import EVERYTHING, Role
from duetime.service.security.credential_watch import CredentialWatch
from duetime.service.security.key_ring import KeyRing
from duetime.service.security.keys import Keys, NewKey
from duetime.service.security.sessions import Sessions
from duetime.stores.sqlite import SqliteStore
from duetime.stores.sqlite.backup.placing import back_up
from duetime.stores.sqlite.inspector import SqliteInspector
from duetime.stores.sqlite.schema import migrate, migrations
from duetime.testing.store_contract.security.audit_log import found, make_entry
from duetime.testing.store_contract.security.credentials import make_key, stored
from duetime.testing.store_contract.steps import at, create
from duetime.testing.timers import make_timer
from tests.integration import unreadable_credentials
from tests.integration.sqlite.conftest import SmallDisk

MIB = 2**20


async def test_a_file_from_before_keys_is_upgraded(path: Path) -> None:
    connection = apsw.Connection(str(path))
    migrate(connection, migrations()[:3])
    connection.execute("INSERT INTO namespaces (name, num_shards) VALUES ('kept', 4)")
    connection.close()
    store = SqliteStore(path)
    await store.open()
    assert await store.namespaces() == [Namespace("kept", 4)]
    assert await stored(store.security) == {}
    assert await store.security.add_credential(make_key())
    assert await stored(store.security) == {"k1": make_key()}
    await store.close()


async def test_a_disk_below_its_reserve_still_takes_keys_and_entries(
    path: Path, small_disk: SmallDisk
) -> None:
    small_disk.set_free_bytes(5 * MIB)
    store = SqliteStore(path, reserve_bytes=10 * MIB)
    await store.open()
    await store.add_namespace(Namespace("default", 16), in_reserve=True)
    with pytest.raises(StorageFull):
        await create(store, make_timer())
    security = store.security
    assert await security.add_credential(make_key("a"))
    assert await security.add_credential(make_key("b"))
    assert await security.replace_credential(make_key("a", name="other"))
    assert await security.remove_credential("b")
    await security.note_uses({"a": at(1)})
    await security.append_audit([make_entry(n) for n in range(100)])
    assert await security.forget_audit(before_exclusive=at(50), limit=100) == 50
    assert await stored(security) == {"a": make_key("a", name="other")}
    assert len(await found(security)) == 50
    assert security.is_short, "so it is spared entries about requests that changed nothing"
    await store.close()
    assert not security.is_short


async def test_a_backup_has_keys_and_entries(path: Path, store: SqliteStore) -> None:
    await store.security.add_credential(make_key())
    await store.security.append_audit([make_entry(1)])
    file = path.with_name("copy.db")
    content = back_up(path, file, force=False, now=at(0), advance=lambda _: None)
    assert (content.rows["credentials"], content.rows["audit_log"]) == (1, 1)
    copy = SqliteStore(file)
    await copy.open()
    assert await stored(copy.security) == {"k1": make_key()}
    assert await found(copy.security) == [make_entry(1)]
    await copy.close()


@pytest.mark.parametrize("kind", [*unreadable_credentials.DOCUMENTS, "not UTF-8"])
async def test_a_key_that_cannot_be_read_is_set_aside(
    path: Path, store: SqliteStore, database: apsw.Connection, kind: str
) -> None:
    id = unreadable_credentials.new_id()
    for each in ("k1", id, "k3"):
        await store.security.add_credential(make_key(each))
    document = unreadable_credentials.DOCUMENTS.get(kind, b'{"\xff"')
    change = "UPDATE credentials SET document = CAST(? AS TEXT) WHERE id = ?"
    database.execute(change, (document, id))
    await unreadable_credentials.assert_set_aside(store.security, id, "k1", "k3")
    inspector = SqliteInspector(path)
    await inspector.open()
    unreadable_credentials.assert_found(await inspector.audit(at(0)), id)
    await inspector.close()
    await unreadable_credentials.assert_mendable(store.security, id)


async def test_sessions_outlive_a_restart_and_end_with_their_key(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    keys, sessions = services_on(store)
    made = await keys.create(NewKey(name="team", roles=[Role.READ], namespaces=["*"]))
    token = (await sessions.begin(made.key.access)).token
    of_settings = (await sessions.begin(EVERYTHING)).token
    await store.close()
    store = SqliteStore(path)
    await store.open()
    keys, sessions = services_on(store)
    assert await sessions.look_up(token) is not None
    await keys.revoke(made.key.id)
    assert await sessions.look_up(token) is None
    assert await sessions.look_up(of_settings) is not None
    await store.close()


def services_on(store: SqliteStore) -> tuple[Keys, Sessions]:
    clock = SystemClock()
    watch = CredentialWatch(store.security, clock)
    ring = KeyRing(watch, clock)
    keys = Keys(store.security, watch, ring, clock)
    return keys, Sessions(store.security, watch, ring, clock, "the key of the settings")
