"""A node dies with many timers under way: recovery does not keep its successor from beating."""

from structlog.typing import EventDict

from duetime.testing import Hang, on_virtual_time
from tests.unit.engine.cluster.cluster_bench import ClusterBench
from tests.unit.engine.engine_bench import HANGING


def test_beats_go_on_while_a_big_wreck_is_recovered(logs: list[EventDict]) -> None:
    @on_virtual_time
    async def scenario() -> None:
        bench = ClusterBench(concurrency=20_000, concurrency_per_endpoint=20_000)
        bench.destination.script(HANGING, Hang())
        one, two, three = await bench.start_spread("one", "two", "three")
        for number in range(12_000):
            await bench.create(f"t-{number}", 1, url=HANGING, through=one)
        await bench.run(15)
        for survivor in (two, three):
            # All that a third of the shards hold takes longer than a lease.
            survivor.store.recover_request_seconds = 3.0
        one.kill()
        await bench.run(60)
        assert await bench.shares() == {"two": 8, "three": 8}

    scenario()
    dead = [entry["node"] for entry in logs if entry["event"] == "node.dead"]
    assert dead == ["one"]
    assert [entry for entry in logs if entry["event"] == "shards.lost"] == []
    taken = [entry["timers_recovered"] for entry in logs if entry["event"] == "shards.taken"]
    assert sum(taken) > 3_000
