"""Keys, secrets and the audit log of several nodes on one database."""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest

from duetime.domain.security.credentials import ApiKey
from duetime.ports.security import AuditQuery
from duetime.stores.postgres import PostgresInspector, PostgresOptions, PostgresStore, schema
from duetime.stores.postgres.connections import Connection
from duetime.testing.store_contract.security.audit_log import (
    found,
    make_entry,
    newest_first,
    read_in_pages,
)
from duetime.testing.store_contract.security.credentials import make_key, stored, version_of
from duetime.testing.store_contract.steps import FAR_FUTURE, at
from tests.integration import unreadable_credentials
from tests.integration.postgres.held import PATIENCE_SECONDS, held

_WAITING = """
    SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'
"""


@pytest.fixture
async def other(options: PostgresOptions, store: PostgresStore) -> AsyncIterator[PostgresStore]:
    """A second node."""
    other = PostgresStore(options)
    await other.open()
    yield other
    await other.close()


async def test_the_changes_of_two_nodes_all_count(
    store: PostgresStore, other: PostgresStore
) -> None:
    async def change(node: PostgresStore, name: str) -> None:
        for number in range(25):
            await node.security.add_credential(make_key(f"shared-{number}", name=name))
            await node.security.add_credential(make_key(f"{name}-{number}"))
            await node.security.remove_credential(f"{name}-{number - 1}")

    before = await version_of(store.security)
    await asyncio.gather(change(store, "a"), change(other, "b"))
    expected = {f"shared-{n}" for n in range(25)} | {"a-24", "b-24"}
    assert set(await stored(store.security, before)) == expected
    assert await version_of(store.security) == await version_of(other.security)
    assert await version_of(store.security) >= before + 25 + 50 + 48


async def test_an_answer_is_of_one_moment(store: PostgresStore, other: PostgresStore) -> None:
    """The second key follows the first, in every answer, and versions follow both."""
    for id in ("first", "second"):
        await store.security.add_credential(make_key(id, max_concurrent=0))

    async def follow() -> None:
        for number in range(1, 60):
            for id in ("first", "second"):
                await other.security.replace_credential(make_key(id, max_concurrent=number))

    changes = asyncio.create_task(follow())
    version = None
    steps = [0]
    versions = []
    while steps[-1] < 2 * 59:
        answer = await store.security.credentials(version)
        if answer is None:
            continue
        version = answer.version
        versions.append(version)
        numbers = {
            each.id: each.max_concurrent for each in answer.credentials if isinstance(each, ApiKey)
        }
        assert numbers["first"] is not None
        assert numbers["second"] is not None
        assert numbers["first"] - numbers["second"] in (0, 1)
        steps.append(numbers["first"] + numbers["second"])
    await changes
    assert all(earlier <= later for earlier, later in pairwise(steps))
    assert versions == sorted(set(versions))


async def test_a_change_waits_for_the_change_of_another_node(
    options: PostgresOptions, store: PostgresStore, database: Connection
) -> None:
    before = await version_of(store.security)
    async with held(options, "UPDATE credentials_version SET version = version + 1") as change:
        adding = asyncio.create_task(store.security.add_credential(make_key()))
        await change.is_waited_for(database)
        assert await store.security.credentials(before) is None
        await change.commit()
    assert await adding
    assert await version_of(store.security) > before + 1
    assert await stored(store.security, before + 1) == {"k1": make_key()}


async def test_a_version_that_got_lost_is_not_used_again(
    store: PostgresStore, database: Connection
) -> None:
    """A standby that takes over may lack the last change. A node that has seen it must notice the
    next one."""
    before = await version_of(store.security)
    await store.security.add_credential(make_key("lost"))
    known = await version_of(store.security)
    await database.execute("DELETE FROM credentials")
    await database.execute("UPDATE credentials_version SET version = $1", before)
    await store.security.add_credential(make_key("next"))
    assert set(await stored(store.security, known)) == {"next"}


async def test_nodes_that_note_uses_of_the_same_keys_wait_for_each_other(
    options: PostgresOptions, store: PostgresStore, other: PostgresStore, database: Connection
) -> None:
    """Whichever order they have the keys in, none fails by a deadlock."""
    ids = [f"k{n}" for n in range(9)]
    for id in ids:
        await store.security.add_credential(make_key(id))

    async def wait_for(sessions: int) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await database.fetchval(_WAITING, f"duetime ({options.schema})") < sessions:
                pass

    async with held(options, "SELECT FROM credentials WHERE id = 'k4' FOR UPDATE") as middle:
        noting = [
            asyncio.create_task(node.security.note_uses(dict.fromkeys(order, at(number))))
            for number, (node, order) in enumerate(((store, ids), (other, ids[::-1])))
        ]
        await wait_for(2)
        await middle.commit()
        await asyncio.gather(*noting)
    assert await store.security.last_uses() == dict.fromkeys(ids, at(1))


async def test_a_key_that_is_removed_while_it_is_used_stays_removed(
    store: PostgresStore, other: PostgresStore
) -> None:
    for number in range(20):
        await store.security.add_credential(make_key())
        _, removed = await asyncio.gather(
            other.security.note_uses({"k1": at(number)}), store.security.remove_credential("k1")
        )
        assert removed
        assert await other.security.last_uses() == {}
        assert await stored(other.security) == {}


async def test_entries_that_two_nodes_write_at_once_are_kept_once(
    store: PostgresStore, other: PostgresStore
) -> None:
    entries = [make_entry(n) for n in range(500)]
    await asyncio.gather(
        *(
            node.security.append_audit(batch)
            for _ in range(5)
            for node, batch in ((store, entries), (other, entries[::-1]))
        )
    )
    pages = await read_in_pages(other.security, AuditQuery(limit=77))
    assert pages == newest_first(entries)


async def test_two_nodes_that_prune_at_once_forget_every_entry_once(
    store: PostgresStore, other: PostgresStore
) -> None:
    await store.security.append_audit([make_entry(n) for n in range(1_000)])

    async def prune(node: PostgresStore) -> int:
        forgotten = 0
        while await found(node.security, limit=1):
            forgotten += await node.security.forget_audit(before_exclusive=at(FAR_FUTURE), limit=70)
        return forgotten

    assert sum(await asyncio.gather(prune(store), prune(other))) == 1_000


@pytest.mark.parametrize("kind", unreadable_credentials.DOCUMENTS)
async def test_a_key_that_cannot_be_read_is_set_aside(
    options: PostgresOptions, store: PostgresStore, database: Connection, kind: str
) -> None:
    id = unreadable_credentials.new_id()
    for each in ("k1", id, "k3"):
        await store.security.add_credential(make_key(each))
    document = unreadable_credentials.DOCUMENTS[kind]
    await database.execute("UPDATE credentials SET document = $1 WHERE id = $2", document, id)
    await unreadable_credentials.assert_set_aside(store.security, id, "k1", "k3")
    inspector = PostgresInspector(options)
    await inspector.open()
    unreadable_credentials.assert_found(await inspector.audit(at(0)), id)
    await inspector.close()
    await unreadable_credentials.assert_mendable(store.security, id)


async def test_a_schema_from_before_keys_is_upgraded(
    new_options: PostgresOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as release_before:
        older = schema.migrations()[:6]
        release_before.setattr(schema, "migrations", lambda: older)
        await schema.migrate(new_options)
    upgraded = PostgresStore(new_options)
    await upgraded.open()
    assert await stored(upgraded.security) == {}
    assert await upgraded.security.add_credential(make_key())
    await upgraded.close()
