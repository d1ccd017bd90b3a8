"""What a front door asks for when it creates a timer."""

from msgspec import Raw, Struct

from duetime.domain.callback import Callback
from duetime.domain.instants import Instant
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.domain.retry import RetryPolicy
from duetime.ports.store import OnExisting


class NewTimer(Struct, frozen=True, kw_only=True, gc=False):
    """A timer that is wanted. Without an `id` it gets a new one.

    With an `idempotency_key` the id is derived from the key, so `id` must be absent; a second
    request with the same key and the same content is answered with the first one's timer.
    `payload` of the callback and `metadata` must be valid JSON in UTF-8.
    """

    execute_at: Instant
    callback: Callback
    namespace: str = DEFAULT_NAMESPACE
    id: str | None = None
    metadata: Raw | None = None
    retry_policy: RetryPolicy | None = None
    correlation_id: str | None = None
    command_order: int = 0
    idempotency_key: str | None = None
    on_existing: OnExisting = OnExisting.KEEP
