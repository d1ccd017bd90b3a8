"""The destination of callbacks."""

from typing import Protocol

from duetime.domain.callback import Callback
from duetime.domain.outcome import Outcome
from duetime.domain.timer import Claim


class Destination(Protocol):
    """One way to deliver callbacks: HTTP, NATS, bus."""

    def check(self, callback: Callback) -> None:
        """Refuse a callback that could never be delivered, before it is stored.

        Raises `InvalidInput`; `field` starts with `callback.`, as in `callback.url` or
        `callback.headers.X-Tag`. A callback that passes is safe on the wire. Pure and quick.
        """
        ...

    def endpoint_of(self, claim: Claim) -> str:
        """The name of the endpoint that is called, such as `https://api.example.com:443`.

        Claims of one endpoint share its limits; claims of different endpoints never wait for
        each other. Pure and quick: called once per claim.
        """
        ...

    async def deliver(self, claim: Claim) -> Outcome:
        """Make one attempt and return its outcome.

        Every failure of the other side or of the network is an outcome, not an exception. The
        attempt takes no longer than the callback's `timeout_ms`, or the service's if it has none.
        When the awaiting task is cancelled the attempt is abandoned; whether it arrived is
        unknown.
        """
        ...

    async def close(self) -> None:
        """Drop all connections. Deliveries still running are abandoned."""
        ...
