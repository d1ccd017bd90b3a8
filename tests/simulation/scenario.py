"""A life of the service, drawn from a seed: clients, faults, kills, jumps of the clock."""

import asyncio
import random as global_random
from collections.abc import Coroutine
from random import Random
from typing import Any

from msgspec import Raw, Struct

from duetime.domain.callback import HttpCallback
from duetime.domain.errors import (
    DuetimeError,
    InvalidInput,
    StoreUnavailable,
    TimerNotFound,
    TimerNotPending,
)
from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant, plus_ms
from duetime.domain.keys import Namespace, TimerKey
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import TimerStatus
from duetime.engine import Engine, EngineOptions
from duetime.ports.store import Existence
from duetime.service.namespaces import Namespaces
from duetime.service.new_timer import NewTimer
from duetime.service.rules import TimerRules
from duetime.service.timer_service import TimerService
from duetime.stores.memory import MemoryStore
from duetime.testing import LoopClock, VirtualTimeLoop
from tests.simulation.endpoints import Endpoints, ProcessDestination
from tests.simulation.faulty_store import FaultyStore, Limbo, StoreFaults
from tests.simulation.invariants import Broken, Owner, TimerHistory, Version


class Profile(Struct, frozen=True, kw_only=True):
    """What may happen in a scenario."""

    steps: int = 150
    store_faults: bool = True
    deaths: bool = True
    clock_jumps: bool = True
    moods: bool = True
    isolation: bool = False
    """One endpoint is always quick, there are slots enough, and it must not be delayed."""


class Process:
    """One service process: its line to the store, its engine, its service."""

    def __init__(self, scenario: "Scenario", number: int) -> None:
        random, clock = scenario.random, scenario.clock
        self.owner = Owner(number)
        self.store = FaultyStore(scenario.truth, scenario.faults, random, clock, scenario.limbo)
        self.destination = ProcessDestination(
            scenario.endpoints, clock, self.owner, lambda: self.store.dead, scenario.limbo
        )
        isolation = scenario.profile.isolation
        options = EngineOptions(
            owner=f"process-{number}",
            horizon_ms=random.choice([0, 10, 50, 500]),
            poll_seconds=random.choice([0.5, 5, 30]),
            batch_size=random.choice([1, 7, 100, 500]),
            concurrency=1_000 if isolation else random.choice([2, 8, 64, 1_000]),
            concurrency_per_endpoint=100 if isolation else random.choice([1, 4, 100]),
            retention_seconds=None,
        )
        self.engine = Engine(self.store, self.store, self.destination, clock, options)
        namespaces = Namespaces(self.store)
        self.namespaces = namespaces
        self.service = TimerService(
            self.store,
            clock,
            self.engine,
            self.destination,
            namespaces,
            TimerRules(min_delay_ms=0),
            new_uuid=scenario.new_uuid,
        )

    async def start(self) -> None:
        await self.namespaces.add(Namespace("default", 4))
        await self.engine.start()


class Scenario:
    def __init__(self, seed: int, profile: Profile) -> None:
        self.profile = profile
        self.random = Random(seed)
        global_random.seed(seed)  # The dispatcher's jitter.
        self.clock = LoopClock()
        self.truth = MemoryStore()
        self.limbo = Limbo()
        self.faults = StoreFaults()
        self.endpoints = Endpoints(self.random, self.clock, count=self.random.randint(1, 6))
        self.histories = self.endpoints.histories
        self.process: Process | None = None
        self.processes = 0
        self.uuids = 0
        if profile.isolation:
            self.endpoints.always_quick = next(iter(self.endpoints.moods))
        self.trace = self.endpoints.trace
        self._clients: set[asyncio.Task[None]] = set()

    def new_uuid(self) -> str:
        self.uuids += 1
        return f"uuid-{self.uuids:06}"

    def note(self, what: str) -> None:
        self.trace.append(f"{self.clock.monotonic():.6f} {what}")

    async def run(self) -> None:
        await self.start_process()
        actions = self._actions()
        for _ in range(self.profile.steps):
            (action,) = self.random.choices(list(actions), weights=list(actions.values()))
            self.note(action)
            result = getattr(self, action)()
            if result is not None:
                await result
            await self.clock.sleep(self.random.choice([0, 0.001, 0.02, 0.3, 2, 10]))
            self.check()
        await self.come_to_rest()

    def _actions(self) -> dict[str, int]:
        profile = self.profile
        actions = {"create": 30, "change": 12, "cancel": 8, "burst": 4}
        if profile.moods:
            actions["change_mood"] = 8
        if profile.store_faults:
            actions |= {"store_gets_worse": 5, "store_heals": 5}
        if profile.deaths:
            actions |= {"kill": 4, "stop_and_start": 3}
        if profile.clock_jumps:
            actions |= {"jump_wall": 3, "suspend": 3}
        return actions

    # What clients do

    def create(self) -> None:
        self._client(self._create(self._any_instant()))

    def burst(self) -> None:
        instant = self._any_instant()
        for _ in range(self.random.randint(5, 120)):
            self._client(self._create(instant))

    def change(self) -> None:
        history = self._any_timer()
        if history is not None:
            self._client(self._change(history))

    def cancel(self) -> None:
        history = self._any_timer()
        if history is not None:
            self._client(self._cancel(history))

    async def _create(self, execute_at: Instant) -> None:
        version = Version(0, execute_at, self._any_policy())
        history = TimerHistory(f"timer-{len(self.histories):05}", version)
        self.histories[history.id] = history
        new = NewTimer(
            id=history.id,
            execute_at=execute_at,
            callback=self._callback(0),
            retry_policy=version.policy,
        )
        try:
            result = await self._service.create(new)
        except (StoreUnavailable, InvalidInput):
            pass
        else:
            if result.existence is not Existence.CREATED:
                raise Broken(f"{history.id} is new, but the answer is {result.existence}")
            history.accepted = True
        history.busy = False

    async def _change(self, history: TimerHistory) -> None:
        number = max([*history.possible, 0]) + 1
        old = dict(history.possible)
        version = Version(number, self._any_instant(), self._any_policy())
        history.possible[number] = version
        try:
            await self._service.change(
                TimerKey("default", history.id),
                execute_at=version.execute_at,
                callback=self._callback(number),
                retry_policy=version.policy,
            )
        except StoreUnavailable:
            pass
        except (TimerNotPending, InvalidInput, TimerNotFound) as error:
            del history.possible[number]
            self._check_refusal(history, error)
        else:
            history.accepted = True
            for replaced in old:
                del history.possible[replaced]
        history.busy = False

    async def _cancel(self, history: TimerHistory) -> None:
        asked_before, history.cancel_asked = history.cancel_asked, True
        try:
            await self._service.cancel(TimerKey("default", history.id))
        except StoreUnavailable:
            pass
        except (TimerNotPending, TimerNotFound) as error:
            history.cancel_asked = asked_before
            self._check_refusal(history, error)
        else:
            history.possible.clear()
        history.busy = False

    def _check_refusal(self, history: TimerHistory, error: DuetimeError) -> None:
        if isinstance(error, TimerNotFound) and history.accepted:
            raise Broken(f"{history.id} was accepted and is not found")
        if not isinstance(error, TimerNotPending):
            return
        if error.status in (TimerStatus.COMPLETED, TimerStatus.FAILED) and not history.sendings:
            raise Broken(f"{history.id} was never sent but is said to be {error.status.label}")
        if error.status is TimerStatus.CANCELED and not history.cancel_asked:
            raise Broken(f"{history.id} is said to be canceled, which nobody asked for")

    # What the world does

    def change_mood(self) -> None:
        self.endpoints.change_mood()

    def store_gets_worse(self) -> None:
        self.faults.lost_before = self.random.choice([0, 0.1, 0.5, 1])
        self.faults.lost_after = self.random.choice([0, 0.1, 0.5])
        self.faults.longest_delay_seconds = self.random.choice([0, 0.005, 0.5, 5])

    def store_heals(self) -> None:
        self.faults.heal()

    def jump_wall(self) -> None:
        self.clock.jump_wall(self.random.choice([-3_600, -10, -0.5, -0.04, 0.04, 5, 600, 86_400]))

    def suspend(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        loop.skip(self.random.choice([0.1, 5, 300]))

    async def kill(self) -> None:
        process = self._take_process()
        process.store.dead = True
        self._mourn(process)
        for client in self._clients:
            # Its connection breaks: it will never know.
            client.cancel()
        await self.clock.sleep(self.random.choice([0, 0.1, 30]))
        await self.start_process()

    async def stop_and_start(self) -> None:
        process = self._take_process()
        faults_before = process.store.faults_injected
        await self._wait_for_clients()
        await process.engine.stop(grace_seconds=self.random.choice([0, 1, 40]))
        if process.store.faults_injected > faults_before or process.destination.abandoned:
            self._mourn(process)
        await self.start_process()

    async def start_process(self) -> None:
        while True:
            self.processes += 1
            process = Process(self, self.processes)
            try:
                await process.start()
            except StoreUnavailable:
                # The supervisor starts it again.
                await self.clock.sleep(1)
                self.faults.lost_before *= 0.9
                self.faults.lost_after *= 0.9
            else:
                self.process = process
                return

    async def come_to_rest(self) -> None:
        """Faults stop: from here on everything has to end within a bounded time."""
        self.faults.heal()
        self.endpoints.heal()
        await self._wait_for_clients()
        self.note("rest")
        pending = [await self.truth.get(TimerKey("default", id)) for id in self.histories]
        live = [timer for timer in pending if timer is not None and not timer.status.is_finished]
        last_due_at = max((timer.due_at for timer in live), default=self.clock.now())
        seconds = max(0.0, (last_due_at - self.clock.now()) / MICROSECONDS_PER_SECOND)
        # Then the longest attempt under way, a retry after it, a fallback poll, some deferrals.
        await self.clock.sleep(seconds + 200)
        self.check()
        for history in self.histories.values():
            history.check_end(await self.truth.get(TimerKey("default", history.id)))
        assert self.process is not None
        await self.process.engine.stop(0)
        self.note("end")

    # Choices

    def _any_instant(self) -> Instant:
        delay_ms = self.random.choice([1, 30, 200, 1_000, 5_000, 60_000])
        return plus_ms(self.clock.now(), 0.001 + self.random.uniform(0, delay_ms))

    def _any_policy(self) -> RetryPolicy | None:
        if self.random.random() < 0.3:
            return None
        return RetryPolicy(
            max_retries=self.random.randint(0, 6),
            initial_interval_ms=self.random.choice([10, 1_000, 20_000]),
            max_interval_ms=20_000,
        )

    def _callback(self, version_number: int) -> HttpCallback:
        return HttpCallback(
            url=self.endpoints.any_url(),
            payload=Raw(str(version_number).encode()),
            timeout_ms=self.random.choice([500, 5_000, 30_000]),
        )

    def _any_timer(self) -> TimerHistory | None:
        free = [history for history in self.histories.values() if not history.busy]
        if not free:
            return None
        # Mostly one of the latest: older ones have long been sent.
        history = self.random.choice(free[-20:] if self.random.random() < 0.8 else free)
        history.busy = True
        return history

    # Machinery

    @property
    def _service(self) -> TimerService:
        assert self.process is not None
        return self.process.service

    def _client(self, request: Coroutine[Any, Any, None]) -> None:
        self._clients.add(asyncio.get_running_loop().create_task(request))

    def check(self) -> None:
        """Raise what went wrong in tasks of which nobody awaits the end."""
        if self.endpoints.broken:
            raise self.endpoints.broken[0]
        for client in [client for client in self._clients if client.done()]:
            self._clients.discard(client)
            if not client.cancelled():
                client.result()

    async def _wait_for_clients(self) -> None:
        if self._clients:
            await asyncio.wait(self._clients)
        self.check()

    def _take_process(self) -> Process:
        process, self.process = self.process, None
        assert process is not None
        return process

    def _mourn(self, process: Process) -> None:
        process.owner.gone = True
        for history in self.histories.values():
            history.owner_died = True
