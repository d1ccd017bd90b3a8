"""The screen of `duetime cluster --watch`: silent members, long lines, and an outage."""

import pytest

from duetime.cli.commands.store.cluster_watch import BeatWatch, ClusterWatch, beat_text, screen
from duetime.cli.output.cluster_views import cluster_tables
from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber
from duetime.domain.timer import TimerStatus
from duetime.ports.inspection import AuditReport, ClusterFacts
from duetime.ports.leases import ShardState
from duetime.ports.membership import ClusterView, Member, NodeFacts
from duetime.settings import load_settings

NOW = Instant(1_900_000_000_000_000)


class UnreliableInspector:
    """A store that can become unreachable, which breaks its connections."""

    def __init__(self) -> None:
        self.is_away = False
        self.connections: list[str] = []

    async def open(self) -> None:
        self._answer()
        self.connections.append("open")

    async def close(self) -> None:
        self.connections.append("closed")

    async def cluster(self) -> ClusterFacts:
        self._answer()
        assert self.connections[-1] == "open"
        return ClusterFacts(ClusterView([Member("a", 1, NodeFacts())], []), {})

    async def states(self, keys: object) -> list[list[TimerStatus]]:
        raise AssertionError("never called")

    async def audit(self, now: Instant) -> AuditReport:
        raise AssertionError("never called")

    def _answer(self) -> None:
        if self.is_away:
            raise StoreUnavailable("away")


async def test_a_watch_survives_an_outage_of_the_store() -> None:
    inspector = UnreliableInspector()
    settings = load_settings({"AUTH": "none"}, dotenv_path=None)
    watch = ClusterWatch(settings, inspector)
    await watch.look()
    await watch.look()
    assert inspector.connections == ["open"]
    inspector.is_away = True
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await watch.look()
    assert inspector.connections == ["open", "closed"]
    inspector.is_away = False
    tables = await watch.look()
    assert tables.members.rows[0][1].plain == "1 alive", "the outage does not count as silence"
    await watch.close()
    assert inspector.connections == ["open", "closed", "open", "closed"]


def member(node: str, beat: int) -> Member:
    return Member(node, beat, NodeFacts())


def test_a_beat_that_does_not_change_is_noticed() -> None:
    watch = BeatWatch()
    watch.look([member("a", 1), member("b", 1)], 100.0)
    watch.look([member("a", 2), member("b", 1)], 103.0)
    assert (watch.still_seconds("a", 103.0), watch.still_seconds("b", 103.0)) == (0, 3)
    watch.forgive()
    watch.look([member("a", 2), member("b", 1)], 110.0)
    assert watch.still_seconds("b", 110.0) == 0


@pytest.mark.parametrize(
    ("still_seconds", "text", "style"),
    [(0, "7 alive", "green"), (4, "7 still for 4 s", "yellow"), (8, "7 still for 8 s", "red")],
)
def test_a_beat_is_colored_by_the_time_since_it_changed(
    still_seconds: float, text: str, style: str
) -> None:
    shown = beat_text(7, still_seconds, lease_seconds=10)
    assert (shown.plain, str(shown.style)) == (text, style)


def test_long_lines_are_cut_at_the_edge_of_the_screen() -> None:
    one = Member("a", 1, NodeFacts(url="http://" + "long." * 30))
    shard = ShardState(ShardNumber(0), Epoch(1), "a")
    facts = ClusterFacts(ClusterView([one], [shard], NOW), {})
    tables = cluster_tables(facts, NOW, skew_limit_ms=500)
    lines = screen(tables, 60, NOW, "the database\nis away").plain.splitlines()
    assert max(map(len, lines)) <= 60
    assert lines[1] == r"the database\nis away"
    assert lines[0].startswith("1 member, 1 shard  at 2030-03-17T17:46:40Z")
