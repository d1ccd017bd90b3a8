"""What tells one claim from all others."""

from duetime.domain.instants import Instant
from duetime.domain.timer import Claim
from duetime.domain.transitions import Settlement

ClaimName = tuple[str, str, Instant, int]
"""The instant tells a timer from one of the same key that was removed before it was created."""


def name_of(claim: Claim | Settlement) -> ClaimName:
    return claim.namespace, claim.id, claim.created_at, claim.claim_number
