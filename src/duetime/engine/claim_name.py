"""What tells one claim from all others."""

from duetime.domain.timer import Claim
from duetime.domain.transitions import Settlement

ClaimName = tuple[str, str, int]


def name_of(claim: Claim | Settlement) -> ClaimName:
    return claim.namespace, claim.id, claim.claim_number
