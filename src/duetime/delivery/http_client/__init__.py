"""A small HTTP/1.1 client for callbacks: POST only, kept-alive connections, no knowledge of
timers. See `HttpClient`."""

from duetime.delivery.http_client.answer import HttpAnswer
from duetime.delivery.http_client.client import RESERVED_HEADERS, HttpClient
from duetime.delivery.http_client.connector import default_ssl_context
from duetime.delivery.http_client.failures import (
    ClientClosed,
    ConnectionLost,
    DeliveryFailure,
    InvalidAnswer,
    LacksResource,
    NotConnected,
    StaleConnection,
    TimedOut,
)
from duetime.delivery.http_client.resolver import (
    Address,
    LookUp,
    Resolve,
    Resolver,
    look_up_by_system,
)
from duetime.delivery.http_client.target import HttpTarget, InvalidUrl, parse_target

__all__ = [
    "RESERVED_HEADERS",
    "Address",
    "ClientClosed",
    "ConnectionLost",
    "DeliveryFailure",
    "HttpAnswer",
    "HttpClient",
    "HttpTarget",
    "InvalidAnswer",
    "InvalidUrl",
    "LacksResource",
    "LookUp",
    "NotConnected",
    "Resolve",
    "Resolver",
    "StaleConnection",
    "TimedOut",
    "default_ssl_context",
    "look_up_by_system",
    "parse_target",
]
