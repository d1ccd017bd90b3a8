"""A claimed timer to deliver."""

from duetime.domain.callback import Callback
from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber
from duetime.domain.timer import Claim
from duetime.testing.virtual_clock import START_AT


def claim_of(
    callback: Callback,
    *,
    namespace: str = "orders",
    id: str = "order-42",
    execute_at: Instant = START_AT,
    attempt: int = 1,
    failures: int | None = None,
) -> Claim:
    """By default all attempts before this one failed."""
    return Claim(
        namespace=namespace,
        id=id,
        shard=ShardNumber(0),
        epoch=Epoch(1),
        created_at=Instant(START_AT - 1),
        claim_number=attempt,
        attempt=attempt,
        failures=attempt - 1 if failures is None else failures,
        execute_at=execute_at,
        due_at=execute_at,
        claimed_at=execute_at,
        delivery_id="01980000-0000-7000-8000-00000000abcd",
        callback=callback,
    )


def always() -> bool:
    """Permits every attempt."""
    return True
