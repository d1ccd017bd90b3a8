"""The state of the process as far as requests are concerned."""

from duetime.domain.errors import StoreUnavailable


class Lifecycle:
    """Before `is_started` the process may already answer probes, and refuses everything else.
    `is_draining` once it was told to stop: it still answers, but should get no new requests."""

    __slots__ = ("is_draining", "is_started")

    def __init__(self) -> None:
        self.is_started = True
        self.is_draining = False

    def check_started(self) -> None:
        """Raises `StoreUnavailable`."""
        if not self.is_started:
            raise StoreUnavailable("the service is starting, try again later")
