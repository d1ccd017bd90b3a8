"""The audit log: each entry once, newest first, found by what is asked for."""

from collections.abc import Sequence
from itertools import product
from random import Random

import pytest
from msgspec.structs import replace

from duetime.domain.instants import Instant
from duetime.domain.security.audit import (
    MAX_DETAILS_CHARACTERS,
    MAX_TEXT_CHARACTERS,
    AuditEntry,
)
from duetime.ports.security import AuditQuery, SecurityStore
from duetime.testing.store_contract.durability import durable
from duetime.testing.store_contract.steps import FAR_FUTURE, Reopen, Store, at

MANY = 3_000
ODD_TEXTS = ["", 'it\'s "quoted" \\ ; -- $1 ?1 %s', "é 😀 \u2028", " \t\n", "null", "{}"]
UNSTORABLE = {"nul \0!": "nul \ufffd!", "lone \udc80!": "lone ?!"}


def make_entry(number: int, **changes: object) -> AuditEntry:
    entry = AuditEntry(
        id=f"018f0000-0000-7000-8000-{number:012x}",
        at=at(number),
        actor="ops",
        action="timer.cancel",
        result="ok",
    )
    return replace(entry, **changes)


def newest_first(entries: Sequence[AuditEntry]) -> list[AuditEntry]:
    return sorted(entries, key=lambda entry: (entry.at, entry.id), reverse=True)


def position(entry: AuditEntry) -> tuple[Instant, str]:
    return entry.at, entry.id


async def found(security: SecurityStore, **conditions: object) -> list[AuditEntry]:
    return list(await security.audit_entries(replace(AuditQuery(limit=10_000), **conditions)))


async def read_in_pages(security: SecurityStore, query: AuditQuery) -> list[AuditEntry]:
    entries: list[AuditEntry] = []
    while page := await security.audit_entries(query):
        assert len(page) <= query.limit
        entries += page
        query = replace(query, before_exclusive=position(page[-1]))
    return entries


@pytest.mark.asyncio
class AuditLogContract:
    async def test_entries_come_newest_first_with_every_field(
        self, store: Store, reopen: Reopen
    ) -> None:
        full = make_entry(
            2,
            key_id="k1",
            address="2001:db8::1",
            namespace="default",
            target="t1",
            details="3 timers",
        )
        await store.security.append_audit([make_entry(1), full])
        await store.security.append_audit([make_entry(0)])
        expected = [full, make_entry(1), make_entry(0)]
        assert await found(store.security) == expected
        reopened = (await durable(store, reopen)).security
        assert await found(reopened) == expected

    async def test_an_empty_log(self, store: Store) -> None:
        await store.security.append_audit([])
        assert await found(store.security) == []
        assert await store.security.forget_audit(before_exclusive=at(FAR_FUTURE), limit=10) == 0

    async def test_a_repeated_id_is_ignored(self, store: Store) -> None:
        first, other = make_entry(1), make_entry(2)
        await store.security.append_audit([first, make_entry(1, details="twin"), other])
        await store.security.append_audit([make_entry(1, at=at(9), actor="else"), other])
        assert await found(store.security) == [other, first]

    async def test_pages_through_thousands_of_one_instant_lose_and_repeat_nothing(
        self, store: Store
    ) -> None:
        entries = [make_entry(n, at=at(n // 2_500)) for n in range(MANY)]
        Random(1).shuffle(entries)
        await store.security.append_audit(entries)
        for limit in (499, MANY):
            assert await read_in_pages(store.security, AuditQuery(limit=limit)) == newest_first(
                entries
            )

    async def test_entries_that_come_in_meanwhile_do_not_disturb_the_pages(
        self, store: Store
    ) -> None:
        await store.security.append_audit([make_entry(n) for n in range(10)])
        first = await store.security.audit_entries(AuditQuery(limit=4))
        await store.security.append_audit([make_entry(n) for n in range(10, 20)])
        await store.security.forget_audit(before_exclusive=at(2), limit=10)
        rest = await found(store.security, before_exclusive=position(first[-1]))
        assert rest == [make_entry(n) for n in range(5, 1, -1)]

    async def test_conditions_alone_and_together(self, store: Store) -> None:
        """Every combination answers what the same conditions in Python select, in pages."""
        chance = Random(2)
        entries = [
            make_entry(
                n,
                at=at(n // 3),
                actor=chance.choice("ab"),
                action=chance.choice("cd"),
                target=chance.choice(["t", "u", None]),
                namespace=chance.choice(["n", "m", "o", None]),
            )
            for n in range(240)
        ]
        await store.security.append_audit(entries)
        for actor, action, target, namespaces, first, end in product(
            (None, "a"),
            (None, "c", "unknown"),
            (None, "t"),
            (None, (), ("n",), ("m", "n", "m", "unknown")),
            (None, at(20)),
            (None, at(60)),
        ):
            query = AuditQuery(
                actor=actor,
                action=action,
                target=target,
                namespaces=namespaces,
                from_inclusive=first,
                until_exclusive=end,
                limit=37,
            )
            expected = [
                entry
                for entry in newest_first(entries)
                if actor in (None, entry.actor)
                and action in (None, entry.action)
                and target in (None, entry.target)
                and (namespaces is None or entry.namespace in namespaces)
                and (first is None or entry.at >= first)
                and (end is None or entry.at < end)
            ]
            assert await read_in_pages(store.security, query) == expected, query

    async def test_the_bounds_of_a_range(self, store: Store) -> None:
        await store.security.append_audit([make_entry(n) for n in range(5)])
        inside = [make_entry(2), make_entry(1)]
        assert await found(store.security, from_inclusive=at(1), until_exclusive=at(3)) == inside
        # A page may continue from a position before, in and after the range.
        for number, expected in ((4, inside), (2, inside[1:]), (1, []), (0, [])):
            assert (
                await found(
                    store.security,
                    from_inclusive=at(1),
                    until_exclusive=at(3),
                    before_exclusive=position(make_entry(number)),
                )
                == expected
            )
        assert await found(store.security, from_inclusive=at(3), until_exclusive=at(1)) == []

    async def test_bounds_beyond_all_instants(self, store: Store) -> None:
        await store.security.append_audit([make_entry(1)])
        least, greatest = Instant(-(10**30)), Instant(10**30)
        assert await found(
            store.security,
            from_inclusive=least,
            until_exclusive=greatest,
            before_exclusive=(greatest, ""),
        ) == [make_entry(1)]
        assert await found(store.security, before_exclusive=(least, "\0\udc80")) == []

    async def test_many_namespaces(self, store: Store) -> None:
        entries = [make_entry(n, namespace=f"team-{n % 300}") for n in range(600)]
        await store.security.append_audit(entries)
        namespaces = [f"team-{n}" for n in range(0, 1_000, 2)]
        expected = newest_first([each for each in entries if each.namespace in set(namespaces)])
        query = AuditQuery(namespaces=namespaces, limit=100)
        assert await read_in_pages(store.security, query) == expected

    async def test_forgets_the_oldest_first(self, store: Store, reopen: Reopen) -> None:
        security = store.security
        entries = [make_entry(n, at=at(n // 4)) for n in range(12)]
        await security.append_audit(entries)
        assert await security.forget_audit(before_exclusive=at(2), limit=3) == 3
        assert await found(security) == newest_first(entries[3:])
        assert await security.forget_audit(before_exclusive=at(2), limit=100) == 5
        assert await security.forget_audit(before_exclusive=at(2), limit=100) == 0
        security = (await durable(store, reopen)).security
        assert await found(security) == newest_first(entries[8:])

    @pytest.mark.parametrize("text", [*ODD_TEXTS, *UNSTORABLE, "😀" * 5_000])
    async def test_text_of_any_kind_is_kept_and_found(self, store: Store, text: str) -> None:
        """Text that a database cannot hold is replaced, because entries come in batches, and none
        may keep the others from being written."""
        odd = make_entry(
            1,
            actor=text,
            action=text,
            result=text,
            key_id=text,
            address=text,
            namespace=text,
            target=text,
            details=text,
        )
        await store.security.append_audit([make_entry(0), odd, make_entry(2)])
        (entry,) = await found(store.security, actor=text)
        kept = UNSTORABLE.get(text, text)[:MAX_TEXT_CHARACTERS]
        fields = (entry.actor, entry.action, entry.result, entry.address, entry.namespace)
        assert {*fields, entry.key_id, entry.target} == {kept}
        assert entry.details == UNSTORABLE.get(text, text)[:MAX_DETAILS_CHARACTERS]
        for condition in ({"action": text}, {"target": text}, {"namespaces": ["x", text]}):
            assert await found(store.security, **condition) == [entry]
        assert len(await found(store.security)) == 3

    async def test_text_of_any_kind_may_be_asked_for(self, store: Store) -> None:
        await store.security.append_audit([make_entry(1, namespace="n", target="t")])
        for text in (*ODD_TEXTS, *UNSTORABLE, "x" * 100_000):
            for condition in ("actor", "action", "target"):
                assert await found(store.security, **{condition: text}) == []
            assert await found(store.security, namespaces=[text]) == []
