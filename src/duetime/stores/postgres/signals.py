"""Signals between nodes, as PostgreSQL notifications."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import structlog

from duetime.background import BackgroundLoop
from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import Instant
from duetime.domain.keys import ShardNumber
from duetime.ports.clock import Clock
from duetime.ports.signals import SignalReceiver
from duetime.stores.postgres.connections import ANY_PLAN, Connections, connect
from duetime.stores.postgres.failures import DRIVER_ERRORS, store_error
from duetime.stores.postgres.options import PostgresOptions

_log = structlog.get_logger()

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0
"""Pause before the next try to connect, at first and at most; each failure doubles it."""

PROBE_SECONDS = 15.0
"""Silence after which the connection is probed: a network that swallows everything would otherwise
look like nodes that have nothing to say."""

_SHARDS_CHANGED = "shards"

MAX_PAYLOAD_CHARACTERS = 7_999
"""Longest payload of a notification: PostgreSQL takes fewer than 8000 bytes."""

_DUE = "due "

_NOTIFY = "SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload"

# The announced timers are in the store already; the hint need not be on disk, too.
_HINTS: Mapping[str, str] = {"synchronous_commit": "off"}


class PostgresSignals:
    """Implements the node signals port: one connection listens, another sends."""

    def __init__(self, options: PostgresOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._channel = f"duetime_{options.schema}"
        self._listener: _Listener | None = None
        self._senders: Connections | None = None

    async def start(self, receiver: SignalReceiver) -> None:
        self._senders = Connections(self._options, _HINTS, 1)
        await self._senders.open()
        self._listener = _Listener(self._options, self._channel, receiver, self._clock)
        self._listener.start()
        await self._listener.tried.wait()

    async def stop(self) -> None:
        if self._listener is not None:
            listener, self._listener = self._listener, None
            await listener.stop()
        if self._senders is not None:
            senders, self._senders = self._senders, None
            await senders.close()

    async def announce_due(self, due: Mapping[ShardNumber, Instant]) -> None:
        if due:
            await self._send(list(due_payloads(due)))

    async def announce_shards_changed(self) -> None:
        await self._send([_SHARDS_CHANGED])

    async def _send(self, payloads: Sequence[str]) -> None:
        if self._senders is None:
            raise StoreUnavailable("signals are not started")
        await self._senders.fetch(_NOTIFY, self._channel, payloads)


class _SignalsUnavailable(StoreUnavailable):
    what = "signals"


class _Listener(BackgroundLoop):
    """Keeps a listening connection: one step makes it, each later step probes it after a silence.

    `tried` is set once the first connection listens, or the first try has failed.
    """

    name = "postgres-signals"
    first_pause_seconds = FIRST_PAUSE_SECONDS
    longest_pause_seconds = LONGEST_PAUSE_SECONDS

    def __init__(
        self, options: PostgresOptions, channel: str, receiver: SignalReceiver, clock: Clock
    ) -> None:
        super().__init__(clock)
        self.tried = asyncio.Event()
        self._options = options
        self._channel = channel
        self._receiver = receiver
        self._connection: Any = None

    async def stop(self) -> None:
        await super().stop()
        if self._connection is not None:
            connection, self._connection = self._connection, None
            try:
                await connection.close(timeout=self._options.connect_timeout_seconds)
            except DRIVER_ERRORS as error:
                _log.warning("signals.lost", error=str(store_error(error, self._options)))
            finally:
                connection.terminate()

    async def step(self) -> None:
        if self._connection is not None:
            await self._probe_after_silence(self._connection)
            return
        try:
            self._connection = await self._connect()
            if self.tried.is_set():
                self._receiver.signals_missed()
        except StoreUnavailable as error:
            raise _SignalsUnavailable(error.message) from error
        finally:
            self.tried.set()

    async def _connect(self) -> Any:
        connection = await connect(self._options, ANY_PLAN)
        try:
            connection.add_termination_listener(self._on_lost)
            await connection.add_listener(self._channel, self._on_notification)
        except DRIVER_ERRORS as error:
            connection.terminate()
            raise store_error(error, self._options) from error
        return connection

    async def _probe_after_silence(self, connection: Any) -> None:
        """A lost connection ends the silence, and the probe finds out."""
        await self.wait(PROBE_SECONDS)
        if self._stopping:
            return
        try:
            await connection.execute("SELECT 1")
        except DRIVER_ERRORS as error:
            _log.warning("signals.lost", error=str(store_error(error, self._options)))
            self._connection = None
            connection.terminate()
            # A server that ends every connection at once is not asked without pause.
            await self._clock.sleep(FIRST_PAUSE_SECONDS)

    def _on_lost(self, connection: object) -> None:
        self.wake()

    def _on_notification(self, connection: object, pid: int, channel: str, payload: str) -> None:
        if payload == _SHARDS_CHANGED:
            self._receiver.shards_changed()
        elif (due := due_of(payload)) is not None:
            self._receiver.due_announced(due)
        else:
            # A newer release may send other signals. Looking at everything is always right.
            self._receiver.signals_missed()


def due_payloads(due: Mapping[ShardNumber, Instant]) -> Iterator[str]:
    """The due instants as text, in as many notifications as necessary."""
    payload = _DUE
    for shard, due_at in due.items():
        pair = f"{shard}:{due_at}"
        if len(payload) + len(pair) + 1 > MAX_PAYLOAD_CHARACTERS:
            yield payload
            payload = _DUE
        payload += pair if payload is _DUE else f",{pair}"
    if payload is not _DUE:
        yield payload


def due_of(payload: str) -> dict[ShardNumber, Instant] | None:
    """The due instants of a payload, or None if the payload says something else."""
    if not payload.startswith(_DUE):
        return None
    due = {}
    for pair in payload.removeprefix(_DUE).split(","):
        shard, _, due_at = pair.partition(":")
        if not (shard.isdecimal() and due_at.removeprefix("-").isdecimal()):
            return None
        due[ShardNumber(int(shard))] = Instant(int(due_at))
    return due
