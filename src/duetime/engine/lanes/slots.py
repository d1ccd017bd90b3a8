"""Room for attempts, shared by all endpoints."""

from msgspec import UNSET

from duetime.domain.callback import BusCallback
from duetime.domain.timer import Claim

MAX_BYTES_IN_FLIGHT = 64 * 2**20


def size_of(claim: Claim) -> int:
    """The bytes of its payload, which are most of what a large claim keeps in memory."""
    callback = claim.callback
    if isinstance(callback, BusCallback) or callback.payload is UNSET:
        return 0
    return memoryview(callback.payload).nbytes


class Slots:
    """The attempts that may run at the same time, shared by all lanes, and their bytes.

    A lane may have as many of them as are free. So one endpoint that hangs takes at most half,
    two take a third each, and some are always left for the others.
    """

    def __init__(self, total: int, per_endpoint: int) -> None:
        self.total = total
        self.per_endpoint = per_endpoint
        self.used = 0
        self.used_bytes = 0
        self.waiting = 0
        """Claims that wait where claims get their turn soon."""

    def limit(self) -> int:
        return min(self.per_endpoint, self.total - self.used)

    def byte_limit(self) -> int:
        return MAX_BYTES_IN_FLIGHT - self.used_bytes
