"""One service process of a simulation, which may be killed."""

import asyncio

from msgspec import UNSET, json

from duetime.domain.callback import Callback, HttpCallback
from duetime.domain.defaults import DEFAULT_CALLBACK_TIMEOUT_MS, DEFAULT_MAX_PAYLOAD_BYTES
from duetime.domain.namespace import ConfiguredNamespace, NamespaceOptions
from duetime.domain.outcome import Outcome
from duetime.domain.timer import Claim
from duetime.engine import Cluster, Engine, EngineOptions
from duetime.ports.destination import MaySend
from duetime.service.namespaces import Namespaces
from duetime.service.timer_service import TimerService
from duetime.service.validation import TimerRules
from duetime.testing import LoopClock
from tests.simulation.faulty_store import FaultyStore, StoreFaults
from tests.simulation.invariants import Broken, Owner
from tests.simulation.world import World


class Process:
    """Its line to the store, its engine, its service."""

    def __init__(self, world: World, number: int, faults: StoreFaults, clock: LoopClock) -> None:
        self.world = world
        self.number = number
        self.name = f"process-{number}"
        self.owner = Owner(number)
        self.clock = clock
        self.faults = faults
        self.store = FaultyStore(world.truth, faults, world.random, clock, world.limbo)
        self.destination = ProcessDestination(self)

    def assemble(self, options: EngineOptions, cluster: Cluster | None = None) -> None:
        self._namespaces = Namespaces(self.store)
        self.engine = Engine(
            self.store,
            self.store,
            self.destination,
            self.clock,
            options,
            cluster,
            self._namespaces,
        )
        self.service = TimerService(
            self.store,
            self.clock,
            self.engine,
            self.destination,
            self._namespaces,
            TimerRules(
                min_delay_ms=0,
                callback_timeout_ms=DEFAULT_CALLBACK_TIMEOUT_MS,
                max_payload_bytes=DEFAULT_MAX_PAYLOAD_BYTES,
            ),
            new_uuid=self.world.new_uuid,
        )

    async def start(self, num_shards: int) -> None:
        options = NamespaceOptions(concurrency=self.world.concurrency)
        await self._namespaces.add_all([ConfiguredNamespace("default", num_shards, options)])
        await self.engine.start()

    @property
    def is_blameless(self) -> bool:
        """It lives, or ended in peace, and its line never failed it."""
        return not (self.owner.gone or self.store.faults_injected)

    def kill(self) -> None:
        self.store.dead = True
        self.owner.gone = True

    async def end_if_dead(self) -> None:
        """Where a killed process stops for ever."""
        if self.store.dead:
            await self.world.limbo.stay()

    async def stop(self, grace_seconds: float) -> None:
        faults_before = self.store.faults_injected
        await self.engine.stop(grace_seconds)
        if self.store.faults_injected > faults_before:
            self.owner.gone = True


class ProcessDestination:
    """Implements the destination port for one process."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._world = process.world
        self._running = 0

    def check(self, callback: Callback) -> None:
        pass

    def endpoint_of(self, claim: Claim) -> str:
        assert isinstance(claim.callback, HttpCallback)
        return claim.callback.url

    async def deliver(self, claim: Claim, may_send: MaySend) -> Outcome:
        world, process = self._world, self._process
        await process.end_if_dead()
        history = world.histories[claim.id]
        try:
            now = process.clock.now()
            world.check_not_paused(self.endpoint_of(claim))
            await world.truth.check_owned(claim)
            sending = history.started(claim, _version(claim), now, process.owner)
            if world.longest_lateness_ms is not None and (
                world.endpoints.always_quick in (None, self.endpoint_of(claim))
            ):
                history.check_lateness(claim, now, world.longest_lateness_ms)
            if world.concurrency is not None and self._running >= world.concurrency:
                raise Broken(f"{process.name} has more attempts under way than the namespace may")
        except Broken as broken:
            # The engine survives anything that a destination raises, so the scenario records it.
            world.broken.append(broken)
            raise
        world.note(f"{process.name} sends {claim.id} attempt {claim.attempt}")
        self._running += 1
        try:
            outcome = await world.endpoints.receive(claim, process.clock)
        except asyncio.CancelledError:
            # The grace of a stop was too short for it.
            process.owner.gone = True
            raise
        finally:
            sending.open = False
            self._running -= 1
        # The receiver's answer, whether or not the process lives to learn of it.
        sending.outcome = outcome
        await process.end_if_dead()
        return outcome

    async def close(self) -> None: ...


def _version(claim: Claim) -> int:
    assert isinstance(claim.callback, HttpCallback)
    assert claim.callback.payload is not UNSET
    return json.decode(claim.callback.payload, type=int)
