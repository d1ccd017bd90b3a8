"""The NATS connection that callbacks and the bus share. See `NatsConnection`."""

from duetime.nats.connection import NatsConnection
from duetime.nats.failures import NatsFailure
from duetime.nats.options import NatsOptions

__all__ = ["NatsConnection", "NatsFailure", "NatsOptions"]
