"""`duetime cluster --watch` during an outage of the store."""

import pytest

from duetime.cli.commands.store.cluster_watch import ClusterWatch
from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import Instant
from duetime.domain.timer import TimerStatus
from duetime.ports.inspection import AuditReport, ClusterFacts
from duetime.ports.membership import ClusterView, Member, NodeFacts
from duetime.settings import load_settings


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
