"""Requests to the JetStream API."""

from typing import Any, TypeVar

import msgspec

from duetime.domain.errors import BusUnavailable
from duetime.nats import NatsConnection, NatsFailure
from duetime.nats.connection import NO_RESPONDERS, ApiError, is_status

API_SECONDS = 5.0

_NOT_ENABLED = frozenset({10039, 10076})
"""Error codes of JetStream that is disabled, for the account or for the server."""

AnswerT = TypeVar("AnswerT")


async def call(
    connection: NatsConnection,
    name: str,
    request: dict[str, Any] | None,
    answer_type: type[AnswerT],
) -> AnswerT:
    """The answer, which may contain an error. Raises `BusUnavailable` if no answer arrives."""
    data = b"" if request is None else msgspec.json.encode(request)
    try:
        message = await connection.request(f"$JS.API.{name}", data, API_SECONDS)
    except NatsFailure as failure:
        raise BusUnavailable(failure.message) from None
    if is_status(message, NO_RESPONDERS):
        raise _without_jetstream(connection)
    try:
        return msgspec.json.decode(message.data, type=answer_type)
    except msgspec.DecodeError as error:
        raise BusUnavailable(f"{connection.display_name}: unreadable answer: {error}") from None


def refused(connection: NatsConnection, what: str, error: ApiError | None) -> BusUnavailable:
    """`error` is None if the answer had neither the requested content nor an error."""
    if error is None:
        return BusUnavailable(f"{connection.display_name}: cannot {what}: the answer is unreadable")
    if error.err_code in _NOT_ENABLED:
        return _without_jetstream(connection)
    return BusUnavailable(f"{connection.display_name}: cannot {what}: {error.description}")


def _without_jetstream(connection: NatsConnection) -> BusUnavailable:
    return BusUnavailable(
        f"JetStream is not enabled at {connection.display_name}: start the NATS server with "
        "'-js', or set 'jetstream' in its configuration and for the account"
    )
