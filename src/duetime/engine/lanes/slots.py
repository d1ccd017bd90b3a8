"""Room for attempts, shared by all endpoints, and room for claims that wait for one."""

from msgspec import UNSET

from duetime.domain.timer import Claim
from duetime.engine.lanes.standing import SHARES, Standing

MAX_BYTES_IN_FLIGHT = 64 * 2**20

MAX_WAITING = 2_048
MAX_WAITING_BYTES = 8 * 2**20
"""Claims, and their payload bytes, that wait in one lane. The others wait in the store."""

ALWAYS_WAITING = 8
"""Claims that a namespace may have in a lane even where others have taken all the room."""


def size_of(claim: Claim) -> int:
    """The bytes of the payload, or of the sealed contents: they make up most of a large claim."""
    callback = claim.callback
    if callback.payload is UNSET:
        return 0 if callback.sealed is None else len(callback.sealed)
    return memoryview(callback.payload).nbytes


class Slots:
    """The attempts that may be under way at the same time in all lanes, and their bytes.

    A lane may use as many slots as are free to endpoints of its standing. So one endpoint that
    hangs takes at most half of these, two take a third each, and however many hang, the endpoints
    that answer have slots left.
    """

    def __init__(self, total: int, per_endpoint: int) -> None:
        self.total = total
        self.per_endpoint = per_endpoint
        self.used = 0
        self.used_by = [0] * len(Standing)
        """The slots in use by endpoints of each standing."""
        self.used_bytes = 0
        self.waiting = 0
        """Claims that wait and will get their turn soon."""
        self.is_crowded = False
        """Claims wait, or were refused, because endpoints like theirs use all slots of theirs."""
        self._shares = [max(1, int(total * share)) for share in SHARES]

    def limit(self, standing: Standing) -> int:
        """Attempts that an endpoint of this standing may have under way."""
        free = self.total - self.used
        if standing:
            # Slots of better endpoints beyond their own share leave less for this one.
            free = min(free, self._shares[standing] - sum(self.used_by[standing:]))
        return min(self.per_endpoint, free)

    def byte_limit(self) -> int:
        return MAX_BYTES_IN_FLIGHT - self.used_bytes


class WaitingRoom:
    """The claims that wait in one lane, of all namespaces together.

    As much room again is set aside for namespaces with few waiting claims: a namespace with many
    must not keep the others out. Beyond that no claim is accepted.
    """

    def __init__(self) -> None:
        self.claims = 0
        self.bytes = 0

    def has_room(self, size: int, of_namespace: int) -> bool:
        """Whether one more claim is accepted, from a namespace with `of_namespace` claims here."""
        if self.claims < MAX_WAITING and self.bytes + size <= MAX_WAITING_BYTES:
            return True
        return (
            of_namespace < ALWAYS_WAITING
            and self.claims < 2 * MAX_WAITING
            and (self.bytes == 0 or self.bytes + size <= 2 * MAX_WAITING_BYTES)
        )

    def enter(self, size: int) -> None:
        self.claims += 1
        self.bytes += size

    def leave(self, size: int) -> None:
        self.claims -= 1
        self.bytes -= size
