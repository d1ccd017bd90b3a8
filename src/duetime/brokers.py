"""From settings to connections with brokers."""

from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from duetime.ports.bus import Bus
from duetime.settings import (
    BrokerSettings,
    MemoryBrokerSettings,
    NatsBrokerSettings,
    NatsSettings,
    RedisBrokerSettings,
)

if TYPE_CHECKING:
    from duetime.nats.connection import NatsConnection
    from duetime.nats.options import NatsOptions


def bus_of(broker: BrokerSettings, node: str) -> Bus:
    """The adapter for the broker, not connected yet. `node` is the name of this process there."""
    # Imported here, so that those who use one broker, or none, do not wait for the others.
    match broker:
        case NatsBrokerSettings(nats=nats):
            from duetime.bus.jetstream.bus import JetStreamBus

            return JetStreamBus(_nats_options(nats))
        case RedisBrokerSettings(url=url):
            from duetime.bus.redis.bus import RedisBus

            return RedisBus(url, node)
        case MemoryBrokerSettings():
            from duetime.bus.memory import MemoryBus

            return MemoryBus()
        case _ as unreachable:
            assert_never(unreachable)


def nats_connection(nats: NatsSettings) -> "NatsConnection":
    """For callbacks over NATS, not connected yet."""
    from duetime.nats.connection import NatsConnection

    return NatsConnection(_nats_options(nats))


def _nats_options(nats: NatsSettings) -> "NatsOptions":
    from duetime.nats.options import NatsOptions

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
