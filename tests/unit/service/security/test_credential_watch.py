"""Nodes learn of each other's keys and secrets."""

from collections.abc import Sequence

import pytest

from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import Instant
from duetime.domain.security.credentials import Credential, WebhookSecret
from duetime.ports.security import Credentials
from duetime.service.security.credential_watch import REFRESH_SECONDS, CredentialWatch
from duetime.stores.memory.security_table import SecurityTable
from duetime.testing import LoopClock, VirtualClock, on_virtual_time


def secret(id: str) -> WebhookSecret:
    return WebhookSecret(id=id, namespace="n", secret="whsec_AAAA", created_at=Instant(0))


class CountedTable(SecurityTable):
    """Counts the reads that answered with credentials, and fails when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.failure: Exception | None = None

    async def credentials(self, known_version: int | None) -> Credentials | None:
        if self.failure is not None:
            raise self.failure
        read = await super().credentials(known_version)
        self.reads += read is not None
        return read


class Seen:
    """A view that remembers the ids of each call."""

    def __init__(self) -> None:
        self.ids: list[list[str]] = []

    def __call__(self, credentials: Sequence[Credential]) -> None:
        self.ids.append([each.id for each in credentials])


@on_virtual_time
async def test_a_change_of_another_node_is_seen_within_two_seconds() -> None:
    table, clock, first, second = CountedTable(), LoopClock(), Seen(), Seen()
    watch = CredentialWatch(table, clock)
    watch.subscribe(first)
    watch.subscribe(second)
    await watch.refresh()
    watch.start()
    await clock.sleep(10)
    await table.add_credential(secret("a"))
    await clock.sleep(2)
    await table.remove_credential("a")
    await clock.sleep(2)
    assert first.ids == second.ids == [[], ["a"], []]
    assert table.reads == 3, "nothing is read while nothing changes"
    await watch.abandon()


async def test_own_changes_are_seen_at_once() -> None:
    table, seen = SecurityTable(), Seen()
    watch = CredentialWatch(table, VirtualClock())
    watch.subscribe(seen)
    await table.add_credential(secret("a"))
    await watch.refresh()
    assert seen.ids == [["a"]]


async def test_a_late_view_sees_what_was_read_before() -> None:
    table, seen = SecurityTable(), Seen()
    await table.add_credential(secret("a"))
    watch = CredentialWatch(table, VirtualClock())
    await watch.refresh()
    watch.subscribe(seen)
    assert seen.ids == [["a"]]


@on_virtual_time
async def test_an_absent_store_leaves_the_views_as_they_are_and_is_asked_again() -> None:
    table, clock, seen = CountedTable(), LoopClock(), Seen()
    await table.add_credential(secret("a"))
    watch = CredentialWatch(table, clock)
    watch.subscribe(seen)
    assert watch.seconds_since_refresh is None
    await watch.refresh()
    watch.start()
    table.failure = StoreUnavailable("away")
    await clock.sleep(60)
    assert seen.ids == [["a"]]
    assert watch.seconds_since_refresh == pytest.approx(60, abs=REFRESH_SECONDS)
    await table.remove_credential("a")
    table.failure = None
    await clock.sleep(2 * REFRESH_SECONDS)
    assert seen.ids == [["a"], []]
    await watch.abandon()
