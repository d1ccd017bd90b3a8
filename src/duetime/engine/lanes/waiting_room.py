"""Room for the claims that wait for one endpoint."""

MAX_WAITING = 2_048
MAX_WAITING_BYTES = 8 * 2**20
"""Large claims wait in the store rather than here."""

ALWAYS_WAITING = 8
"""So many claims a namespace may have even where others have taken all the room."""


class WaitingRoom:
    """What waits in one lane, of all namespaces together.

    As much again is set aside for namespaces of which little waits: one that waits in numbers
    must not keep the others out. Beyond that nobody gets in.
    """

    def __init__(self) -> None:
        self.claims = 0
        self.bytes = 0

    def has_room(self, size: int, of_namespace: int) -> bool:
        """For one more claim of a namespace that has so many here."""
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
