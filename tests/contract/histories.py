"""The building blocks of random histories."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from duetime.domain import transitions
from duetime.domain.callback import BusCallback, HttpCallback
from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber, TimerKey
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.outcome import Completed, Failed, Outcome, Rescheduled
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Claim, TimerStatus
from duetime.domain.transitions import Settlement
from duetime.ports.store import Leases
from duetime.testing.store_contract.steps import fields_of

LeaseKind = Literal["current", "stale", "mixed", "none"]
OutcomeKind = Literal["completed", "failed", "rescheduled", "handed back"]
Guard = Literal["right", "wrong claim", "wrong epoch", "wrong creation"]

NAMESPACES = [Namespace("default", 4), Namespace("small", 1)]
CLAIMS_REMEMBERED = 20
NEVER_REACHED = 1_000
POLICIES = [None, RetryPolicy(max_retries=2, initial_interval_ms=5_000)]
OPTIONS = [
    NamespaceOptions(),
    NamespaceOptions(retry_policy=RetryPolicy(backoff_multiplier=1.5), retention_seconds=0),
    NamespaceOptions(concurrency=2, max_payload_bytes=10),
]
CALLBACKS = [HttpCallback(url="https://example.com", payload=Raw(b"null")), BusCallback()]

namespaces = st.sampled_from(NAMESPACES)
keys = st.builds(
    TimerKey,
    namespaces.map(lambda namespace: namespace.name),
    st.sampled_from([f"t{n}" for n in range(7)]),
)
seconds = st.integers(-5, 40)
limits = st.integers(1, 6)
statuses = st.none() | st.sampled_from(TimerStatus)
lease_kinds: st.SearchStrategy[LeaseKind] = st.sampled_from(
    ["current", "current", "mixed", "stale", "none"]
)
outcome_kinds: st.SearchStrategy[OutcomeKind] = st.sampled_from(
    ["completed", "failed", "rescheduled", "handed back"]
)
guards: st.SearchStrategy[Guard] = st.sampled_from(
    ["right", "right", "right", "right", "wrong claim", "wrong epoch", "wrong creation"]
)


def leases_of(kind: LeaseKind, epochs: Mapping[ShardNumber, Epoch]) -> Leases:
    """Leases of all shards or some, of which all, some or none still hold."""
    current = dict(epochs)
    stale = {shard: Epoch(epoch - 1) for shard, epoch in current.items()}
    match kind:
        case "current":
            return current
        case "stale":
            return stale
        case "mixed":
            return {shard: (current, stale)[shard % 2][shard] for shard in current if shard}
        case "none":
            return {}


def fields_by_key(claims: Sequence[Claim]) -> dict[TimerKey, dict[str, object]]:
    return {TimerKey(claim.namespace, claim.id): fields_of(claim) for claim in claims}


def guarded(settlement: Settlement, guard: Guard) -> Settlement:
    match guard:
        case "right":
            return settlement
        case "wrong claim":
            return replace(settlement, claim_number=settlement.claim_number + NEVER_REACHED)
        case "wrong epoch":
            return replace(settlement, epoch=Epoch(settlement.epoch + NEVER_REACHED))
        case "wrong creation":
            return replace(settlement, created_at=Instant(settlement.created_at + 1))


def settlement_of(
    claim: Claim,
    kind: OutcomeKind,
    *,
    now: Instant,
    then: Instant,
    new_delivery_id: Callable[[], str],
) -> Settlement:
    """An attempt that ended now. `then` is the instant of the next one, if there is one."""
    outcome: Outcome
    match kind:
        case "completed":
            outcome = Completed(sent_at=now, answered_at=now)
        case "failed":
            outcome = Failed(sent_at=now, answered_at=now, error="HTTP 500")
        case "rescheduled":
            outcome = Rescheduled(sent_at=now, answered_at=now, next_execute_at=then)
        case "handed back":
            return transitions.hand_back(claim, due_at=then, now=now)
    return transitions.settlement_of(claim, outcome, chance=0.5, new_delivery_id=new_delivery_id)
