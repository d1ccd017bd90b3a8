"""A small HTTP/1.1 client for callbacks: POST only, kept-alive connections, no knowledge of
timers. See `HttpClient`."""

from duetime.delivery.http_client.answer import HttpAnswer
from duetime.delivery.http_client.client import RESERVED_HEADERS, HttpClient
from duetime.delivery.http_client.failures import (
    ClientClosed,
    ConnectionLost,
    DeliveryFailure,
    InvalidAnswer,
    LacksResource,
    NotConnected,
    RefusedAddress,
    StaleConnection,
    TimedOut,
)
from duetime.delivery.http_client.proxy import CALLBACK_PROXY, HttpProxy
from duetime.delivery.http_client.resolver import (
    Address,
    LookUp,
    Resolve,
    Resolver,
    look_up_by_system,
)
from duetime.delivery.http_client.route import Route, default_ssl_context
from duetime.delivery.http_client.target import HttpTarget, InvalidUrl, authority_of, parse_target

__all__ = [
    "CALLBACK_PROXY",
    "RESERVED_HEADERS",
    "Address",
    "ClientClosed",
    "ConnectionLost",
    "DeliveryFailure",
    "HttpAnswer",
    "HttpClient",
    "HttpProxy",
    "HttpTarget",
    "InvalidAnswer",
    "InvalidUrl",
    "LacksResource",
    "LookUp",
    "NotConnected",
    "RefusedAddress",
    "Resolve",
    "Resolver",
    "Route",
    "StaleConnection",
    "TimedOut",
    "authority_of",
    "default_ssl_context",
    "look_up_by_system",
    "parse_target",
]
