"""The destinations of callbacks."""

from collections.abc import Callable
from typing import Protocol

from duetime.domain.callback import Callback, ReceiverAddress
from duetime.domain.outcome import Outcome
from duetime.domain.timer import Claim

MaySend = Callable[[], bool]
"""Whether the attempt may still be made. Quick, and never raises."""


def always() -> bool:
    """For messages that are no attempts."""
    return True


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

    async def deliver(self, claim: Claim, may_send: MaySend) -> Outcome:
        """Make one attempt and return its outcome.

        The caller asks `may_send` before this call. A destination that does anything slow before
        it sends, such as connecting, asks again directly before the first byte. If the answer is
        False it sends nothing and raises `NotSent`.

        Every failure of the other side or of the network is an outcome, not an exception. If this
        process lacks a resource, so that nothing was sent, it raises `LocalShortage`.

        The attempt takes no longer than the callback's `timeout_ms`, or the service's if it has
        none. When the awaiting task is cancelled the attempt is abandoned; whether it arrived is
        unknown.
        """
        ...

    async def close(self) -> None:
        """Drop all connections. Deliveries still running are abandoned."""
        ...


class CallbackInbox(Protocol):
    """The receiver that is built into the process."""

    async def receive(
        self, claim: Claim, address: ReceiverAddress, head: bytes, body: bytes
    ) -> tuple[int, bytes]:
        """Keep the callback for the page of the receiver, and return the status and the body of the
        answer. `head` has the lines of the headers. May take seconds, if the address asks for it;
        never raises."""
        ...
