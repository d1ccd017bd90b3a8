"""One of several processes of a simulation that share a store."""

from duetime.engine import Cluster, EngineOptions
from duetime.ports.membership import NodeFacts
from duetime.testing import LoopClock, engine_options
from tests.simulation.faulty_store import StoreFaults
from tests.simulation.invariants import Owner
from tests.simulation.memory_signals import MemorySignals, SignalHub
from tests.simulation.process import Process
from tests.simulation.world import World

LEASE_SECONDS = 10.0


class Machine:
    """Knowledge that nodes of a cluster have of each other without the store."""

    def __init__(self, hub: SignalHub, *, sees_processes: bool) -> None:
        self.hub = hub
        self.ended: set[str] = set()
        """The processes that do not exist any more."""
        self._sees_processes = sees_processes

    def is_gone(self, facts: NodeFacts) -> bool:
        return self._sees_processes and facts.process in self.ended


class Node(Process):
    """A process with its own line to the store, its own wall clock, and a cluster around it."""

    def __init__(self, world: World, number: int, machine: Machine, poll_seconds: float) -> None:
        usual_delay_seconds = world.random.choice([0, 0.005, 0.1])
        super().__init__(world, number, StoreFaults(usual_delay_seconds), LoopClock())
        self._machine = machine
        self.signals = MemorySignals(machine.hub, lambda: self.faults.is_cut or self.store.dead)
        self.is_stopping = False
        self.was_disturbed = False
        """Its line was bad, or it did not run for a while: its leases may have run out."""
        self.was_disturbed_alone = False
        """While others could see that it did not beat."""
        self._wall_ahead_seconds = 0.0
        self.assemble(
            self._options(world, poll_seconds),
            Cluster(members=self.store, signals=self.signals, is_gone=machine.is_gone),
        )

    @property
    def is_blameless(self) -> bool:
        return super().is_blameless and not self.was_disturbed

    @property
    def may_be_forgotten(self) -> bool:
        return self.was_disturbed_alone or self.name in self._machine.ended

    def kill(self) -> None:
        super().kill()
        self._machine.ended.add(self.name)

    def forgotten(self) -> None:
        """Its shards became free for others: its attempts under way may be repeated."""
        self.owner.gone = True
        if not self.store.dead:
            self.owner = Owner(self.number)

    def end(self) -> None:
        """The process exits by itself."""
        self._machine.ended.add(self.name)

    def disturb(self, *, alone: bool) -> None:
        self.was_disturbed = True
        self.was_disturbed_alone = self.was_disturbed_alone or alone

    def cut_off(self, *, alone: bool) -> None:
        self.disturb(alone=alone)
        self.faults.cut()

    def mend(self) -> None:
        self.faults.mend()
        self.signals.reconnected()

    def jump_wall(self, seconds: float) -> None:
        self._wall_ahead_seconds += seconds
        self.clock.jump_wall(seconds)

    def set_wall_right(self) -> None:
        self.jump_wall(-self._wall_ahead_seconds)

    def _options(self, world: World, poll_seconds: float) -> EngineOptions:
        random, is_on_time = world.random, world.longest_lateness_ms is not None
        return engine_options(
            owner=self.name,
            # A long one leaves a node with many claims when its leases run out.
            horizon_ms=random.choice([0, 10, 50, 500, 20_000]),
            poll_seconds=poll_seconds,
            # One at a time, over a slow line, takes seconds for a burst.
            batch_size=random.choice([100, 500] if is_on_time else [1, 7, 100, 500]),
            concurrency=1_000 if is_on_time else random.choice([2, 8, 64, 1_000]),
            concurrency_per_endpoint=100 if is_on_time else random.choice([1, 4, 100]),
            lease_seconds=LEASE_SECONDS,
            facts=NodeFacts(process=self.name),
        )
