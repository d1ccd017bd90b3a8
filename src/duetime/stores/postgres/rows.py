"""Between rows and timers."""

from collections.abc import Sequence

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from duetime.domain.callback import Callback
from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber, TimerKey
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Attempt, Timer, TimerStatus
from duetime.stores.postgres.connections import Row

SHARED_COLUMNS = (
    "created_at, updated_at, execute_at, due_at, epoch, command_order, shard, attempt, failures,"
    " claim_number, timer_uuid, namespace, id, delivery_id, callback, retry_policy, metadata,"
    " correlation_id, fingerprint, attempts, last_error"
)
"""What all three tables have, in the order they have it."""

TIMER_COLUMNS = f"{SHARED_COLUMNS}, status, claimed_at, executed_at"
"""What the view `timers` has, in the order that `timer_of` reads it."""

PENDING_AS_TIMER = f"{SHARED_COLUMNS}, 0::smallint, NULL::bigint, NULL::bigint"
EXECUTING_AS_TIMER = f"{SHARED_COLUMNS}, 1::smallint, claimed_at, NULL::bigint"
FINISHED_AS_TIMER = f"{SHARED_COLUMNS}, status, NULL::bigint, executed_at"

_encode = msgspec.json.Encoder().encode
_decode_callback = msgspec.json.Decoder(Callback).decode
_decode_retry_policy = msgspec.json.Decoder(RetryPolicy).decode
_decode_attempts = msgspec.json.Decoder(tuple[Attempt, ...]).decode


HAS_KEY = "namespace = $1 AND id = $2"
"""True of the timer whose key is $1 and $2."""

LISTS_COLLATION = 'COLLATE "POSIX"'
"""In which the indexes of lists know the namespace. Who asks in another one finds no index, or
that of the keys: see the migration `lists_apart`."""


def qualified(table: str, columns: str = SHARED_COLUMNS) -> str:
    return ", ".join(f"{table}.{column}" for column in columns.split(", "))


def table_of(status: TimerStatus) -> str:
    if status is TimerStatus.PENDING:
        return "pending_timers"
    return "executing_timers" if status is TimerStatus.EXECUTING else "finished_timers"


def columns_of(status: TimerStatus) -> str:
    """TIMER_COLUMNS, read from the table that holds timers of the status."""
    if status is TimerStatus.PENDING:
        return PENDING_AS_TIMER
    return EXECUTING_AS_TIMER if status is TimerStatus.EXECUTING else FINISHED_AS_TIMER


def condition_of(status: TimerStatus) -> str:
    """What is true of the rows of that table that have the status, in the namespace $1."""
    if status is TimerStatus.EXECUTING:
        # They are few, and have no index but that of the keys.
        return "namespace = $1"
    listed = f"namespace = $1 {LISTS_COLLATION}"
    return f"{listed} AND status = {int(status)}" if status.is_finished else listed


def timer_of(row: Row) -> Timer:
    """The timer of a row with TIMER_COLUMNS."""
    (
        created_at, updated_at, execute_at, due_at, epoch, command_order, shard, attempt, failures,
        claim_number, timer_uuid, namespace, id, delivery_id, callback, retry_policy, metadata,
        correlation_id, fingerprint, attempts, last_error, status, claimed_at, executed_at,
    ) = row  # fmt: skip
    return Timer(
        key=TimerKey(namespace, id),
        shard=ShardNumber(shard),
        timer_uuid=timer_uuid,
        delivery_id=delivery_id,
        status=TimerStatus(status),
        execute_at=Instant(execute_at),
        due_at=Instant(due_at),
        created_at=Instant(created_at),
        updated_at=Instant(updated_at),
        attempt=attempt,
        failures=failures,
        claim_number=claim_number,
        epoch=Epoch(epoch),
        callback=_decode_callback(callback),
        retry_policy=None if retry_policy is None else _decode_retry_policy(retry_policy),
        metadata=None if metadata is None else Raw(metadata.encode()),
        correlation_id=correlation_id,
        command_order=command_order,
        fingerprint=fingerprint,
        attempts=attempts_of(attempts),
        last_error=last_error,
        claimed_at=claimed_at,
        executed_at=executed_at,
    )


def command_orders_of(timers: Sequence[Timer]) -> list[int]:
    """The timers' command orders; empty if all are 0, which takes no time to send."""
    orders = [timer.command_order for timer in timers]
    return orders if any(orders) else []


def is_storable(key: TimerKey) -> bool:
    """Whether PostgreSQL's text can hold the key. If not, there is no timer of that key."""
    return storable(key.namespace) is key.namespace and storable(key.id) is key.id


def storable(text: str) -> str:
    """The text, with a replacement for each character that PostgreSQL's text cannot hold.

    What others sent us, like an endpoint's error message, must not keep a batch from being
    written, whatever is in it.
    """
    if "\0" in text:
        text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        text = text.encode(errors="replace").decode()
    return text


def storable_or_none(text: str | None) -> str | None:
    return None if text is None else storable(text)


def callback_text(callback: Callback) -> str:
    return _encode(callback).decode()


def retry_policy_text(policy: RetryPolicy | None) -> str | None:
    return None if policy is None else _encode(policy).decode()


def metadata_text(metadata: Raw | None) -> str | None:
    return None if metadata is None else bytes(metadata).decode()


def attempts_of(text: str | None) -> tuple[Attempt, ...]:
    return () if text is None else _decode_attempts(text)


def attempts_text(attempts: Sequence[Attempt]) -> str | None:
    if not attempts:
        return None
    try:
        return _encode(attempts).decode()
    except UnicodeEncodeError:
        return _encode([_with_storable_error(attempt) for attempt in attempts]).decode()


def _with_storable_error(attempt: Attempt) -> Attempt:
    return replace(attempt, error=storable_or_none(attempt.error))
