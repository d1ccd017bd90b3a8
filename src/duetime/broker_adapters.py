"""From the settings of a broker to its adapter, for the service and for `duetime bus`."""

from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from duetime.ports.bus import Bus
from duetime.ports.clock import Clock
from duetime.settings import (
    BrokerSettings,
    MemoryBrokerSettings,
    NatsBrokerSettings,
    NatsSettings,
    RedisBrokerSettings,
)

if TYPE_CHECKING:
    from duetime.nats import NatsConnection, NatsOptions


def bus_of(broker: BrokerSettings, node: str, clock: Clock) -> Bus:
    """The adapter for the broker, not connected yet. `node` names this process there."""
    # Imported here: each broker's library is slow to import, and at most one is needed.
    match broker:
        case NatsBrokerSettings(nats=nats):
            from duetime.bus.jetstream.bus import JetStreamBus

            return JetStreamBus(nats_options(nats), clock)
        case RedisBrokerSettings(url=url):
            from duetime.bus.redis.bus import RedisBus

            return RedisBus(url, node)
        case MemoryBrokerSettings():
            from duetime.bus.memory import MemoryBus

            return MemoryBus()
        case _ as unreachable:
            assert_never(unreachable)


def nats_of(nats: NatsSettings, clock: Clock) -> "NatsConnection":
    """The connection for callbacks over NATS, not connected yet."""
    from duetime.nats import NatsConnection

    return NatsConnection(nats_options(nats), clock)


def nats_options(nats: NatsSettings) -> "NatsOptions":
    from duetime.nats import NatsOptions

    def text(path: Path | None) -> str | None:
        return None if path is None else str(path)

    return NatsOptions(
        url=nats.url,
        user=nats.user,
        password=nats.password,
        credentials_file=text(nats.credentials_file),
        tls_ca_file=text(nats.tls_ca_file),
        tls_cert_file=text(nats.tls_cert_file),
        tls_key_file=text(nats.tls_key_file),
    )
