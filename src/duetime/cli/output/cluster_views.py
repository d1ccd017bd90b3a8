"""The members and shards of a cluster: tables for people, JSON for programs."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich.text import Text

from duetime.cli.output.columns import Column, Cut, Row
from duetime.cli.output.layout import Headings, print_table
from duetime.cli.terminal import console, printable
from duetime.domain.instants import MICROSECONDS_PER_MS, Instant, format_instant
from duetime.domain.keys import ShardNumber
from duetime.domain.wording import counted, span
from duetime.ports.inspection import ClusterFacts, HeldSnapshot
from duetime.ports.leases import ShardState
from duetime.ports.membership import Member

MAX_RANGES = 40
_WORRYING_LAG_MS = 1_000.0

_MEMBER_HEADINGS = (
    Column("node", Cut.APART, least=8, enough=16),
    "beat",
    "shards",
    Column("in flight", extra=1),
    "lateness p99",
    "clock offset",
    Column("version", extra=3),
    Column("host", Cut.MIDDLE, least=12, enough=12, extra=2),
    Column("pid", extra=4),
    Column("url", Cut.MIDDLE, least=14, enough=16),
)
_SHARD_HEADINGS = (
    Column("owner", Cut.APART, least=8, enough=16),
    *("shards", "epoch", "lag"),
    Column("numbers", Cut.WRAP, least=20, enough=20),
)

BeatText = Callable[[Member], Text]


@dataclass(frozen=True, slots=True)
class ClusterTable:
    headings: Headings
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTables:
    summary: Text
    members: ClusterTable
    shards: ClusterTable


def beat_count(member: Member) -> Text:
    return Text(str(member.beat))


def cluster_tables(
    facts: ClusterFacts, now: Instant, *, skew_limit_ms: float, beat_text: BeatText = beat_count
) -> ClusterTables:
    """The cluster as tables, with shards grouped by owner; the lag is that of the worst shard."""
    members, shards = facts.view.members, facts.view.shards
    present = {member.node for member in members}
    by_owner: dict[str | None, list[ShardState]] = {}
    for state in shards:
        by_owner.setdefault(state.owner, []).append(state)
    lost = [owner for owner in by_owner if owner is None or owner not in present]
    owners = [*lost, *(member.node for member in members if member.node in by_owner)]
    return ClusterTables(
        summary=Text.assemble(
            _summary(len(members), len(shards), sum(len(by_owner[owner]) for owner in lost)),
            _snapshot_text(facts.oldest_snapshot),
        ),
        members=ClusterTable(
            _MEMBER_HEADINGS,
            [
                _member_row(m, len(by_owner.get(m.node, ())), skew_limit_ms, beat_text(m))
                for m in members
            ],
        ),
        shards=ClusterTable(
            _SHARD_HEADINGS,
            [
                _shard_row(owner, by_owner[owner], facts, now, is_lost=owner in lost)
                for owner in owners
            ],
        ),
    )


def print_cluster(tables: ClusterTables) -> None:
    output = console()
    output.print(tables.summary)
    for table in (tables.members, tables.shards):
        output.print()
        print_table(table.headings, table.rows)


def lag_ms(facts: ClusterFacts, shard: ShardNumber, now: Instant) -> float | None:
    """The time by which the shard's first pending timer is overdue; None if it is not."""
    first_due = facts.first_due.get(shard)
    if first_due is None or first_due >= now:
        return None
    return (now - first_due) / MICROSECONDS_PER_MS


def ranges_text(numbers: Iterable[int], max_ranges: int = MAX_RANGES) -> str:
    """Sorted numbers, with neighbours joined: "0-3 5 9-15"."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    shown = [
        str(first) if first == last else f"{first}-{last}" for first, last in ranges[:max_ranges]
    ]
    left_off = sum(last - first + 1 for first, last in ranges[max_ranges:])
    return " ".join(shown) + (f" and {left_off:,} more" if left_off else "")


def _summary(members: int, shards: int, without_owner: int) -> Text:
    text = Text(f"{counted(members, 'member')}, {counted(shards, 'shard')}")
    if without_owner:
        text.append(f", {without_owner:,} without an owner that is a member", style="red")
    return text


def _snapshot_text(held: HeldSnapshot | None) -> Text:
    if held is None:
        return Text()
    session = held.state if held.pid is None else f"session {held.pid} ({held.state})"
    user = f" of {printable(held.user)}" if held.user else ""
    age = (
        f"{held.age_transactions:,} transactions"
        if held.age_seconds is None
        else span(held.age_seconds * 1_000)
    )
    return Text(
        f"\nan old snapshot keeps dead rows: {session}{user},"
        f" {printable(held.application) or 'no application name'}, for {age}",
        style="yellow",
    )


def _member_row(member: Member, shards_owned: int, skew_limit_ms: float, beat: Text) -> Row:
    facts = member.facts
    offset_ms = facts.clock_offset_ms
    is_skewed = offset_ms is not None and abs(offset_ms) > skew_limit_ms
    return [
        _plain(member.node),
        beat,
        Text(f"{shards_owned:,}"),
        Text(f"{facts.in_flight:,}"),
        Text("-" if facts.lateness_ms is None else f"{facts.lateness_ms:.1f} ms"),
        Text(
            "-" if offset_ms is None else f"{offset_ms:+.1f} ms", style="red" if is_skewed else ""
        ),
        _plain(facts.version or "-"),
        _plain(facts.host or "-"),
        Text(str(facts.pid or "-")),
        _plain((facts.url or "-") + (" (stopping)" if facts.stopping else "")),
    ]


def _shard_row(
    owner: str | None,
    states: Sequence[ShardState],
    facts: ClusterFacts,
    now: Instant,
    *,
    is_lost: bool,
) -> Row:
    epochs = [state.epoch for state in states]
    first, last = min(epochs), max(epochs)
    lags = [lag for state in states if (lag := lag_ms(facts, state.shard, now)) is not None]
    worst_ms = max(lags, default=None)
    style = "red" if is_lost else ""
    name = "nobody" if owner is None else owner + (" (not a member)" if is_lost else "")
    return [
        Text(printable(name), style=style),
        Text(f"{len(states):,}", style=style),
        Text(str(first) if first == last else f"{first}-{last}"),
        Text(
            "-" if worst_ms is None else span(worst_ms),
            style="yellow" if worst_ms is not None and worst_ms > _WORRYING_LAG_MS else "",
        ),
        Text(ranges_text(state.shard for state in states), style=style),
    ]


def _plain(text: str) -> Text:
    return Text(printable(text))


def cluster_document(
    facts: ClusterFacts, now: Instant, *, skew_limit_ms: float, silent: set[str] | None = None
) -> dict[str, object]:
    """The cluster as JSON; the field names are documented, and must not change. `silent` holds the
    members whose beats did not change, or is None if that is not known."""
    members, shards = facts.view.members, facts.view.shards
    present = {member.node for member in members}
    owned = Counter(state.owner for state in shards)
    return {
        "now": format_instant(now),
        "members": [
            _member_document(
                member,
                owned[member.node],
                skew_limit_ms,
                None if silent is None else member.node not in silent,
            )
            for member in members
        ],
        "shards": [_shard_document(state, facts, now, state.owner in present) for state in shards],
        "oldest_snapshot": facts.oldest_snapshot,
    }


def _member_document(
    member: Member, shards_owned: int, skew_limit_ms: float, is_alive: bool | None
) -> dict[str, object]:
    facts = member.facts
    offset_ms = facts.clock_offset_ms
    return {
        "node": member.node,
        "host": facts.host,
        "pid": facts.pid,
        "version": facts.version,
        "url": facts.url,
        "started_at": format_instant(facts.started_at) if facts.started_at else None,
        "stopping": facts.stopping,
        "shards_owned": shards_owned,
        "in_flight": facts.in_flight,
        "lateness_ms": facts.lateness_ms,
        "clock_offset_ms": offset_ms,
        "clock_skewed": offset_ms is not None and abs(offset_ms) > skew_limit_ms,
        "beat": member.beat,
        "alive": is_alive,
    }


def _shard_document(
    state: ShardState, facts: ClusterFacts, now: Instant, owner_is_member: bool
) -> dict[str, object]:
    first_due = facts.first_due.get(state.shard)
    return {
        "shard": state.shard,
        "owner": state.owner,
        "owner_is_member": owner_is_member,
        "epoch": state.epoch,
        "first_due_at": None if first_due is None else format_instant(first_due),
        "lag_ms": lag_ms(facts, state.shard, now),
    }
