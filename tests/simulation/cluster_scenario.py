"""A life of a cluster, drawn from a seed: nodes join, stop, die and are cut off."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec import Struct

from duetime.domain.errors import StoreUnavailable
from duetime.ports.membership import NodeFacts
from duetime.testing import VirtualTimeLoop
from tests.simulation.clients import LONGEST_ATTEMPT_SECONDS, Clients
from tests.simulation.invariants import Broken
from tests.simulation.memory_signals import SignalHub
from tests.simulation.node import LEASE_SECONDS, Machine, Node
from tests.simulation.world import World

MOST_NODES = 4

SLACK_SECONDS = 5.0

MOVE_SECONDS = 10.0
"""Time within which shards come to their owners once nothing changes any more."""


class ClusterProfile(Struct, frozen=True, kw_only=True):
    """The events that may happen in a scenario. Nodes always join and stop."""

    steps: int = 150
    moods: bool = True
    store_faults: bool = True
    cuts: bool = True
    outages: bool = True
    deaths: bool = True
    clock_jumps: bool = True
    lost_signals: bool = True
    short_graces: bool = True
    isolation: bool = False
    """One endpoint is always quick; only its timers have the longest lateness."""
    longest_lateness_ms: float | None = None
    """Longest lateness, not counting the fallback poll that a lost signal may cost."""


class ClusterScenario:
    def __init__(self, seed: int, profile: ClusterProfile) -> None:
        self.profile = profile
        self.world = World(seed)
        self.random = self.world.random
        self.clients = Clients(self.world)
        self.hub = SignalHub(self.random)
        self.machine = Machine(self.hub, sees_processes=self.random.random() < 0.3)
        self.num_shards = self.random.choice([1, 3, 8, 16])
        self.poll_seconds = self.random.choice([0.5, 2, 5])
        self.nodes: dict[str, Node] = {}
        self.running: list[Node] = []
        self.trace = self.world.trace
        self._store_is_away = False
        self._background: dict[asyncio.Task[None], Node] = {}
        self.world.truth.on_recovered = self._recovered
        self.world.truth.on_forgotten = self._forgotten
        if profile.isolation:
            self.world.endpoints.always_quick = next(iter(self.world.endpoints.moods))
        if profile.longest_lateness_ms is not None:
            poll_ms = self.poll_seconds * 1_000 if profile.lost_signals else 0.0
            self.world.longest_lateness_ms = profile.longest_lateness_ms + poll_ms
        else:
            self.world.concurrency = self.random.choice([None, None, 3, 20])

    async def run(self) -> None:
        for _ in range(self.random.randint(1, 3)):
            self.join()
        await self._wait_for_background()
        actions = self._actions()
        for _ in range(self.profile.steps):
            (action,) = self.random.choices(list(actions), weights=list(actions.values()))
            self.world.note(action)
            getattr(self, action)()
            await self.world.clock.sleep(self.random.choice([0, 0.001, 0.02, 0.3, 2, 8]))
            self.check()
        await self.come_to_rest()

    def _actions(self) -> dict[str, int]:
        profile = self.profile
        actions = {"create": 30, "change": 12, "cancel": 8, "burst": 4, "join": 6, "stop": 4}
        if profile.moods:
            actions["change_mood"] = 8
        if profile.store_faults:
            actions |= {"line_gets_worse": 5, "line_heals": 5}
        if profile.cuts:
            actions["cut_off_one"] = 5
        if profile.outages:
            actions["cut_off_all"] = 3
        if profile.deaths:
            actions["kill"] = 4
        if profile.clock_jumps:
            actions |= {"jump_wall": 3, "suspend": 2}
        if profile.lost_signals:
            actions["lose_signals"] = 4
        return actions

    def create(self) -> None:
        if node := self._any_running():
            self.clients.create(node)

    def burst(self) -> None:
        if node := self._any_running():
            self.clients.burst(node)

    def change(self) -> None:
        if node := self._any_running():
            self.clients.change(node)

    def cancel(self) -> None:
        if node := self._any_running():
            self.clients.cancel(node)

    def join(self) -> None:
        if len(self._existing()) < MOST_NODES:
            node = self._new_node()
            self._in_background(node, self._start(node))

    def stop(self) -> None:
        if len(self.running) > 1 and (node := self._any_running()):
            self.running.remove(node)
            node.is_stopping = True
            self._in_background(node, self._stop(node))

    def change_mood(self) -> None:
        self.world.endpoints.change_mood()

    def kill(self) -> None:
        if existing := self._existing():
            node = self.random.choice(existing)
            node.kill()
            if node in self.running:
                self.running.remove(node)
            # Whoever started or stopped it waits for ever.
            self._background = {
                task: other for task, other in self._background.items() if other is not node
            }
            # Their connections break: they will never know.
            self.clients.abandon(node)
        if not self._existing():
            self.join()

    def line_gets_worse(self) -> None:
        if existing := self._existing():
            node = self.random.choice(existing)
            node.disturb(alone=True)
            node.faults.lost_before = self.random.choice([0, 0.1, 0.5, 1])
            node.faults.lost_after = self.random.choice([0, 0.1, 0.5])
            node.faults.longest_delay_seconds = self.random.choice([0, 0.005, 0.5, 5])

    def line_heals(self) -> None:
        if existing := self._existing():
            self.random.choice(existing).faults.heal()

    def cut_off_one(self) -> None:
        if existing := self._existing():
            node = self.random.choice(existing)
            node.cut_off(alone=True)
            self._later(lambda: self._mend(node))

    def cut_off_all(self) -> None:
        self._store_is_away = True
        for node in self._existing():
            node.cut_off(alone=False)
        self._later(self._mend_all)

    def jump_wall(self) -> None:
        if existing := self._existing():
            seconds = self.random.choice([-60, -5, -0.5, -0.04, 0.04, 0.5, 5, 60])
            self.random.choice(existing).jump_wall(seconds)

    def suspend(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        for node in self._existing():
            node.disturb(alone=False)
        loop.skip(self.random.choice([0.1, 5, 60]))

    def lose_signals(self) -> None:
        self.hub.lost = self.random.choice([0, 0.2, 1])

    async def come_to_rest(self) -> None:
        """Faults stop: from here on everything has to end within a bounded time."""
        self.world.note("rest")
        self.world.endpoints.heal()
        self.hub.lost = 0.0
        self._mend_all()
        for node in self._existing():
            node.faults.heal()
            node.set_wall_right()
        if not self.running:
            self.join()
        await self._wait_for_background()
        await self.clients.wait()
        # Until every shard has an owner and all attempts have ended, by their timeout at worst.
        await self.world.clock.sleep(LEASE_SECONDS + LONGEST_ATTEMPT_SECONDS + SLACK_SECONDS)
        last_due_seconds = await self.world.seconds_until_last_due()
        await self.world.clock.sleep(
            max(last_due_seconds, MOVE_SECONDS) + self.poll_seconds + SLACK_SECONDS
        )
        self.check()
        await self.world.check_end()
        await self._check_spread()
        for node in list(self.running):
            await node.stop(0)
        await self._check_left()
        self.world.note("end")

    def check(self) -> None:
        self.world.check()
        self.clients.check()
        for task in [task for task in self._background if task.done()]:
            del self._background[task]
            if not task.cancelled():
                task.result()

    def _any_running(self) -> Node | None:
        return self.random.choice(self.running) if self.running else None

    def _existing(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.name not in self.machine.ended]

    def _new_node(self) -> Node:
        node = Node(self.world, len(self.nodes) + 1, self.machine, self.poll_seconds)
        self.nodes[node.name] = node
        if self._store_is_away:
            node.cut_off(alone=False)
        return node

    async def _start(self, node: Node) -> None:
        try:
            await node.start(self.num_shards)
        except StoreUnavailable:
            node.end()
            # The supervisor starts another.
            await self.world.clock.sleep(1)
            self.join()
        else:
            self.running.append(node)
            self.world.note(f"{node.name} runs")

    async def _stop(self, node: Node) -> None:
        await self.clients.wait(node)
        graces = [0, 1, 40] if self.profile.short_graces else [40]
        await node.stop(self.random.choice(graces))
        node.end()
        self.world.note(f"{node.name} stopped")

    def _later(self, mend: Callable[[], None]) -> None:
        longest_seconds = self.random.choice([10, 60])
        asyncio.get_running_loop().call_later(self.random.uniform(0, longest_seconds), mend)

    def _mend(self, node: Node) -> None:
        if not self._store_is_away:
            node.mend()

    def _mend_all(self) -> None:
        self._store_is_away = False
        for node in self._existing():
            node.mend()

    def _in_background(self, node: Node, work: Coroutine[Any, Any, None]) -> None:
        self._background[asyncio.get_running_loop().create_task(work)] = node

    async def _wait_for_background(self) -> None:
        while self._background:
            await asyncio.wait(self._background)
            self.check()

    def _recovered(self, timer_id: str, former_owner: str) -> None:
        self.world.histories[timer_id].recovered = True
        if self._node_named(former_owner).is_blameless:
            self._break(f"{former_owner} gave its shard away and left {timer_id} behind")

    def _forgotten(self, name: str) -> None:
        node = self._node_named(name)
        self.world.note(f"{name} is forgotten")
        if not node.may_be_forgotten:
            self._break(f"{name} was forgotten though it was there all the time")
        node.forgotten()

    async def _check_spread(self) -> None:
        """Every shard has one owner, and every node its share."""
        owners = Counter(state.owner for state in await self.world.truth.shards())
        least, rest = divmod(self.num_shards, len(self.running))
        shares = [least + 1] * rest + [least] * (len(self.running) - rest)
        held = sorted((node.engine.shards_owned for node in self.running), reverse=True)
        recorded = sorted((owners[owner] for owner in owners if owner), reverse=True)
        if held != shares or recorded != [share for share in shares if share]:
            self._break(f"the spread is {held}, recorded as {dict(owners)}, not {shares}")
        if any(node.engine.members != len(self.running) for node in self.running):
            self._break("somebody is on the list of members who does not run")
        if not all(node.engine.is_running for node in self.running):
            self._break("a node does not work though nothing is in its way")
        self.world.check()

    async def _check_left(self) -> None:
        view = await self.world.truth.heartbeat("nobody", NodeFacts(), join=False)
        if view.members or any(state.owner for state in view.shards):
            self._break(f"all have stopped, but the store says {view}")
        self.check()

    def _node_named(self, name: str) -> Node:
        return self.nodes[name.partition("#")[0]]

    def _break(self, problem: str) -> None:
        self.world.broken.append(Broken(problem))
