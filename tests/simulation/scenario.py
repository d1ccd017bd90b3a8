"""A life of the service, drawn from a seed: clients, faults, kills, jumps of the clock."""

import asyncio

from msgspec import Struct

from duetime.domain.errors import StoreUnavailable
from duetime.testing import VirtualTimeLoop, engine_options
from tests.simulation.clients import Clients
from tests.simulation.faulty_store import StoreFaults
from tests.simulation.invariants import Broken
from tests.simulation.lateness.explained import explained
from tests.simulation.process import Process
from tests.simulation.world import World

LONGEST_LATENESS_MS = 1_000.0
"""Longest lateness of a quick endpoint that only other endpoints may delay."""

EXPLAIN_EVERY = 15
"""Steps after which every timer is explained."""


class Profile(Struct, frozen=True, kw_only=True):
    """The events that may happen in a scenario."""

    steps: int = 150
    store_faults: bool = True
    deaths: bool = True
    clock_jumps: bool = True
    moods: bool = True
    pauses: bool = True
    isolation: bool = False
    """One endpoint is always quick, there are slots enough, and it must not be delayed."""


class Scenario:
    """One process after the other, each with the store for itself."""

    def __init__(self, seed: int, profile: Profile) -> None:
        self.profile = profile
        self.world = World(seed)
        self.random = self.world.random
        self.clients = Clients(self.world)
        self.faults = StoreFaults()
        self.process: Process | None = None
        self.processes: dict[str, Process] = {}
        self.trace = self.world.trace
        self.world.truth.on_recovered = self._recovered
        if profile.isolation:
            self.world.endpoints.always_quick = next(iter(self.world.endpoints.moods))
            self.world.longest_lateness_ms = LONGEST_LATENESS_MS
        else:
            self.world.concurrency = self.random.choice([None, None, 3, 20])

    async def run(self) -> None:
        await self.start_process()
        actions = self._actions()
        for step in range(self.profile.steps):
            (action,) = self.random.choices(list(actions), weights=list(actions.values()))
            self.world.note(action)
            result = getattr(self, action)()
            if result is not None:
                await result
            await self.world.clock.sleep(self.random.choice([0, 0.001, 0.02, 0.3, 2, 10]))
            self.check()
            if step % EXPLAIN_EVERY == 0:
                await self._check_explanations()
        await self.come_to_rest()

    def _actions(self) -> dict[str, int]:
        profile = self.profile
        actions = {"create": 30, "change": 12, "cancel": 8, "burst": 4}
        if profile.moods:
            actions["change_mood"] = 8
        if profile.pauses:
            actions |= {"pause": 4, "resume": 5}
        if profile.store_faults:
            actions |= {"store_gets_worse": 5, "store_heals": 5}
        if profile.deaths:
            actions |= {"kill": 4, "stop_and_start": 3}
        if profile.clock_jumps:
            actions |= {"jump_wall": 3, "suspend": 3}
        return actions

    def create(self) -> None:
        self.clients.create(self._process)

    def burst(self) -> None:
        self.clients.burst(self._process)

    def change(self) -> None:
        self.clients.change(self._process)

    def cancel(self) -> None:
        self.clients.cancel(self._process)

    def change_mood(self) -> None:
        self.world.endpoints.change_mood()

    def pause(self) -> None:
        url = self.world.endpoints.any_url()
        if url != self.world.endpoints.always_quick:
            self.world.pause(url)
            self._process.engine.set_pauses(self.world.paused)

    def resume(self) -> None:
        if self.world.paused:
            del self.world.paused[self.random.choice(list(self.world.paused))]
            self._process.engine.set_pauses(self.world.paused)

    def store_gets_worse(self) -> None:
        self.faults.lost_before = self.random.choice([0, 0.1, 0.5, 1])
        self.faults.lost_after = self.random.choice([0, 0.1, 0.5])
        self.faults.longest_delay_seconds = self.random.choice([0, 0.005, 0.5, 5])

    def store_heals(self) -> None:
        self.faults.heal()

    def jump_wall(self) -> None:
        seconds = self.random.choice([-3_600, -10, -0.5, -0.04, 0.04, 5, 600, 86_400])
        self.world.clock.jump_wall(seconds)

    def suspend(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        loop.skip(self.random.choice([0.1, 5, 300]))

    async def kill(self) -> None:
        process, self.process = self._process, None
        process.kill()
        # Their connections break: they will never know.
        self.clients.abandon(process)
        await self.world.clock.sleep(self.random.choice([0, 0.1, 30]))
        await self.start_process()

    async def stop_and_start(self) -> None:
        process, self.process = self._process, None
        await self.clients.wait()
        await process.stop(grace_seconds=self.random.choice([0, 1, 40]))
        await self.start_process()

    async def start_process(self) -> None:
        while True:
            process = self._new_process()
            try:
                await process.start(num_shards=4)
            except StoreUnavailable:
                # The supervisor starts it again.
                await self.world.clock.sleep(1)
                self.faults.lost_before *= 0.9
                self.faults.lost_after *= 0.9
            else:
                self.process = process
                return

    async def come_to_rest(self) -> None:
        """Faults stop: from here on everything has to end within a bounded time."""
        self.faults.heal()
        self.world.endpoints.heal()
        self.world.paused.clear()
        self._process.engine.set_pauses({})
        await self.clients.wait()
        self.world.note("rest")
        # Then the longest attempt under way, a retry after it, a fallback poll, some deferrals.
        await self.world.clock.sleep(await self.world.seconds_until_last_due() + 200)
        self.check()
        await self.world.check_end()
        await self._check_explanations()
        await self._process.stop(0)
        self.world.note("end")

    async def _check_explanations(self) -> None:
        """The sums of every explanation are right at any moment, whatever has happened."""
        now, engine = self.world.clock.now(), self._process.engine
        for timer in await self.world.timers():
            explained(timer, now, engine.report_on(timer, now))

    @property
    def _process(self) -> Process:
        assert self.process is not None
        return self.process

    def _new_process(self) -> Process:
        process = Process(self.world, len(self.processes) + 1, self.faults, self.world.clock)
        isolation = self.profile.isolation
        options = engine_options(
            owner=process.name,
            horizon_ms=self.random.choice([0, 10, 50, 500]),
            poll_seconds=self.random.choice([0.5, 5, 30]),
            batch_size=self.random.choice([1, 7, 100, 500]),
            concurrency=1_000 if isolation else self.random.choice([2, 8, 64, 1_000]),
            concurrency_per_endpoint=100 if isolation else self.random.choice([1, 4, 100]),
        )
        process.assemble(options)
        process.engine.set_pauses(self.world.paused)
        self.processes[process.name] = process
        return process

    def check(self) -> None:
        self.world.check()
        self.clients.check()

    def _recovered(self, timer_id: str, former_owner: str) -> None:
        self.world.histories[timer_id].recovered = True
        if self.processes[former_owner].is_blameless:
            self.world.broken.append(Broken(f"{former_owner} stopped and left {timer_id} behind"))
