"""Callbacks that are messages of a NATS server, and the connection they take. See
`NatsConnection`."""

from duetime.delivery.nats.connection import NatsConnection
from duetime.delivery.nats.destination import NatsDestination
from duetime.delivery.nats.failure import NatsFailure
from duetime.delivery.nats.options import NatsOptions

__all__ = ["NatsConnection", "NatsDestination", "NatsFailure", "NatsOptions"]
