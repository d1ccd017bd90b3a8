"""The output of `duetime cluster`, for people and for programs."""

import pytest
from msgspec.structs import replace

from duetime.cli.output.cluster_views import (
    ClusterTable,
    ClusterTables,
    cluster_document,
    cluster_tables,
    print_cluster,
    ranges_text,
)
from duetime.domain.instants import Instant, plus_ms
from duetime.domain.keys import Epoch, ShardNumber
from duetime.ports.inspection import ClusterFacts, HeldSnapshot
from duetime.ports.leases import ShardState
from duetime.ports.membership import ClusterView, Member, NodeFacts

NOW = Instant(1_900_000_000_000_000)


def member(node: str, beat: int = 7, **facts: object) -> Member:
    known = {"host": "alpha", "pid": 41, "version": "1.2.3", "url": "http://alpha:8080", **facts}
    return Member(node, beat, NodeFacts(**known))  # type: ignore[arg-type]


def shard(number: int, owner: str | None, epoch: int = 1) -> ShardState:
    return ShardState(ShardNumber(number), Epoch(epoch), owner)


def cluster(
    members: list[Member], shards: list[ShardState], overdue_ms: dict[int, float] | None = None
) -> ClusterFacts:
    first_due = {
        ShardNumber(number): plus_ms(NOW, -late_ms)
        for number, late_ms in (overdue_ms or {}).items()
    }
    return ClusterFacts(ClusterView(members, shards, NOW), first_due)


def tables_of(facts: ClusterFacts) -> ClusterTables:
    return cluster_tables(facts, NOW, skew_limit_ms=500)


def headings(table: ClusterTable) -> list[str]:
    return [each if isinstance(each, str) else each.heading for each in table.headings]


def cells(table: ClusterTable) -> list[dict[str, str]]:
    return [
        dict(zip(headings(table), (cell.plain for cell in row), strict=True)) for row in table.rows
    ]


def styles(table: ClusterTable, heading: str) -> list[str]:
    column = headings(table).index(heading)
    return [str(row[column].style) for row in table.rows]


def test_members_are_shown_with_their_shards() -> None:
    one = member("a", in_flight=3, lateness_ms=1.25, clock_offset_ms=-12.0)
    facts = cluster([one, member("b")], [shard(0, "a"), shard(1, "b"), shard(2, "a")])
    first, second = cells(tables_of(facts).members)
    assert first == {
        "node": "a",
        "host": "alpha",
        "pid": "41",
        "version": "1.2.3",
        "shards": "2",
        "in flight": "3",
        "lateness p99": "1.2 ms",
        "clock offset": "-12.0 ms",
        "beat": "7",
        "url": "http://alpha:8080",
    }
    assert (second["shards"], second["lateness p99"], second["clock offset"]) == ("1", "-", "-")


def test_the_session_with_an_old_snapshot_is_named() -> None:
    held = HeldSnapshot(4711, "pg_dump", "backup", "idle in transaction", 600.0)
    facts = replace(cluster([member("a")], [shard(0, "a")]), oldest_snapshot=held)
    assert cluster_tables(facts, NOW, skew_limit_ms=500).summary.plain.splitlines()[1] == (
        "an old snapshot keeps dead rows: session 4711 (idle in transaction) of backup, pg_dump,"
        " for 10 min"
    )
    assert cluster_document(facts, NOW, skew_limit_ms=500)["oldest_snapshot"] is held


@pytest.mark.parametrize(
    ("held", "words"),
    [
        (
            HeldSnapshot(4711, "walreceiver", "replica", "standby: streaming", None, 120_000),
            "session 4711 (standby: streaming) of replica, walreceiver, for 120,000 transactions",
        ),
        (
            HeldSnapshot(None, "left_over", "", "replication slot", None, 120_000),
            "replication slot, left_over, for 120,000 transactions",
        ),
    ],
)
def test_a_standby_with_an_old_snapshot_is_named(held: HeldSnapshot, words: str) -> None:
    facts = replace(cluster([member("a")], [shard(0, "a")]), oldest_snapshot=held)
    assert cluster_tables(facts, NOW, skew_limit_ms=500).summary.plain.splitlines()[1] == (
        f"an old snapshot keeps dead rows: {words}"
    )


def test_a_skewed_clock_is_red() -> None:
    members = [member("a", clock_offset_ms=501.0), member("b", clock_offset_ms=-499.0)]
    assert styles(tables_of(cluster(members, [])).members, "clock offset") == ["red", ""]


def test_shards_are_grouped_by_owner_with_the_worst_lag() -> None:
    shards = [shard(n, "ab"[n % 2], epoch=n) for n in range(4)] + [shard(4, "a", epoch=9)]
    facts = cluster([member("a"), member("b")], shards, {0: 5_000, 2: 90_000, 1: -100})
    assert cells(tables_of(facts).shards) == [
        {"owner": "a", "shards": "3", "epoch": "0-9", "lag": "1.5 min", "numbers": "0 2 4"},
        {"owner": "b", "shards": "2", "epoch": "1-3", "lag": "-", "numbers": "1 3"},
    ]


def test_shards_without_a_member_as_owner_come_first_in_red() -> None:
    shards = [shard(0, "a"), shard(1, None), shard(2, "ghost"), shard(3, None)]
    tables = tables_of(cluster([member("a")], shards))
    assert [row["owner"] for row in cells(tables.shards)] == ["nobody", "ghost (not a member)", "a"]
    assert styles(tables.shards, "owner") == ["red", "red", ""]
    assert tables.summary.plain == "1 member, 4 shards, 3 without an owner that is a member"


def test_thousands_of_shards_are_abbreviated() -> None:
    shards = [shard(n, "ab"[n % 2]) for n in range(4096)]
    (first, _) = cells(tables_of(cluster([member("a"), member("b")], shards)).shards)
    assert first["numbers"].startswith("0 2 4 ")
    assert first["numbers"].endswith(" and 2,008 more")


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([], ""),
        ([5], "5"),
        ([3, 1, 2], "1-3"),
        ([0, 1, 3, 5, 6, 7], "0-1 3 5-7"),
        ([0, 2, 4, 5, 9], "0 2 and 3 more"),
    ],
)
def test_ranges_of_numbers(numbers: list[int], text: str) -> None:
    assert ranges_text(numbers, max_ranges=2 if "more" in text else 40) == text


def test_tables_in_a_pipe_are_separated_by_tabs(capsys: pytest.CaptureFixture[str]) -> None:
    print_cluster(tables_of(cluster([member("a")], [shard(0, "a")])))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1 member, 1 shard"
    assert lines[2].split("\t")[:2] == ["node", "beat"]
    assert lines[-1] == "a\t1\t1\t-\t0"


def test_the_json_document_has_every_field() -> None:
    one = member("a", started_at=NOW, clock_offset_ms=900.0, stopping=True)
    document = cluster_document(
        cluster([one], [shard(0, "a", 3), shard(1, "ghost")], {0: 250}),
        NOW,
        skew_limit_ms=500,
        silent={"a"},
    )
    assert document == {
        "now": "2030-03-17T17:46:40Z",
        "members": [
            {
                "node": "a",
                "host": "alpha",
                "pid": 41,
                "version": "1.2.3",
                "url": "http://alpha:8080",
                "started_at": "2030-03-17T17:46:40Z",
                "stopping": True,
                "shards_owned": 1,
                "in_flight": 0,
                "lateness_ms": None,
                "clock_offset_ms": 900.0,
                "clock_skewed": True,
                "beat": 7,
                "alive": False,
            }
        ],
        "shards": [
            {
                "shard": 0,
                "owner": "a",
                "owner_is_member": True,
                "epoch": 3,
                "first_due_at": "2030-03-17T17:46:39.750Z",
                "lag_ms": 250.0,
            },
            {
                "shard": 1,
                "owner": "ghost",
                "owner_is_member": False,
                "epoch": 1,
                "first_due_at": None,
                "lag_ms": None,
            },
        ],
        "oldest_snapshot": None,
    }
