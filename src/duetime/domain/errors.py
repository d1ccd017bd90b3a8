"""The errors that a caller can get. Each has a kind, which a front door turns into its code."""

from collections.abc import Sequence
from enum import Enum

from duetime.domain.bulk import BulkStatus
from duetime.domain.keys import TimerKey
from duetime.domain.limits import MAX_KEY_CHARACTERS
from duetime.domain.timer import Timer, TimerStatus


class ErrorKind(Enum):
    INVALID_INPUT = "invalid input"
    TOO_LARGE = "too large"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    TOO_MANY_REQUESTS = "too many requests"
    NAMESPACE_NOT_FOUND = "namespace not found"
    NO_SUCH_NAMESPACE = "no such namespace"
    TIMER_NOT_FOUND = "timer not found"
    TIMER_NOT_PENDING = "timer not pending"
    TIMER_NOT_FAILED = "timer not failed"
    TIMER_CONFLICT = "timer conflict"
    NAMESPACE_NOT_EMPTY = "namespace not empty"
    NAMESPACE_CONFLICT = "namespace conflict"
    OPERATION_NOT_FOUND = "operation not found"
    OPERATION_NOT_RUNNING = "operation not running"
    TOO_MANY_OPERATIONS = "too many operations"
    SECRET_NOT_FOUND = "secret not found"
    SECRET_CONFIGURED = "secret configured"
    TOO_MANY_SECRETS = "too many secrets"
    TOO_MANY_TIMERS = "too many timers"
    KEY_NOT_FOUND = "key not found"
    KEY_NOT_ACTIVE = "key not active"
    TOO_MANY_KEYS = "too many keys"
    ENDPOINT_NOT_PAUSED = "endpoint not paused"
    TOO_MANY_PAUSES = "too many pauses"
    UNREADABLE = "unreadable"
    UNAVAILABLE = "unavailable"
    STORAGE_FULL = "storage full"


class DuetimeError(Exception):
    """Base of everything Duetime raises on purpose. `message` may be shown to callers."""

    kind: ErrorKind

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidInput(DuetimeError):
    """A value that is not accepted. `field` is its name in the spelling of the front door."""

    kind = ErrorKind.INVALID_INPUT

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field} {problem}")
        self.field = field
        self.problem = problem


class CallbackRefused(InvalidInput):
    """The callback is well formed, but goes where this service may not send it."""


class TooLarge(InvalidInput):
    kind = ErrorKind.TOO_LARGE


class Unauthorized(DuetimeError):
    kind = ErrorKind.UNAUTHORIZED


class Forbidden(DuetimeError):
    """The caller is known, and may see this but not do it."""

    kind = ErrorKind.FORBIDDEN


class LimitForbidden(Forbidden):
    """The member of a namespace binds those whose key is for some namespaces only."""

    def __init__(self, field: str) -> None:
        super().__init__(f"{field} is a limit, which only an admin key for all namespaces changes")
        self.field = field


class TooManyRequests(DuetimeError):
    """The caller may try again after `retry_after_seconds`."""

    kind = ErrorKind.TOO_MANY_REQUESTS

    def __init__(self, message: str, retry_after_seconds: int) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class NamespaceNotFound(DuetimeError):
    kind = ErrorKind.NAMESPACE_NOT_FOUND

    def __init__(self, namespace: str) -> None:
        # A text too long for a name is not repeated in full.
        shown = namespace if len(namespace) <= MAX_KEY_CHARACTERS else f"{namespace[:40]}..."
        super().__init__(f"namespace '{shown}' does not exist")


class NoSuchNamespace(NamespaceNotFound):
    """The namespace itself was asked for, and not a timer in it."""

    kind = ErrorKind.NO_SUCH_NAMESPACE


class NamespaceDeleting(NamespaceNotFound):
    """The namespace takes no more timers, and is about to be gone."""

    def __init__(self, namespace: str) -> None:
        super().__init__(namespace)
        self.message = f"namespace '{namespace}' is being deleted"


class NamespaceNotEmpty(DuetimeError):
    """The namespace has timers that are pending or executing."""

    kind = ErrorKind.NAMESPACE_NOT_EMPTY

    def __init__(self, namespace: str, timers: int) -> None:
        super().__init__(
            f"namespace '{namespace}' has timers that are pending or executing ({timers:,}): cancel"
            " them first, or delete it with force=true"
        )


class NamespaceDiffers(DuetimeError):
    """The namespace exists, and differs from the one of a copy."""

    kind = ErrorKind.NAMESPACE_CONFLICT

    def __init__(self, namespace: str, fields: Sequence[str]) -> None:
        super().__init__(
            f"namespace '{namespace}' exists, was left as it is, and differs in {', '.join(fields)}"
        )
        self.fields = fields


class OperationNotFound(DuetimeError):
    kind = ErrorKind.OPERATION_NOT_FOUND

    def __init__(self) -> None:
        super().__init__("operation not found")


class OperationNotRunning(DuetimeError):
    """The operation has ended, so it cannot be aborted."""

    kind = ErrorKind.OPERATION_NOT_RUNNING

    def __init__(self, status: BulkStatus) -> None:
        super().__init__(f"cannot abort operation with status '{status.value}'")


class TooManyOperations(DuetimeError):
    kind = ErrorKind.TOO_MANY_OPERATIONS

    def __init__(self, most: int) -> None:
        super().__init__(f"{most} operations are running: wait until one has ended, or abort one")


class SecretNotFound(DuetimeError):
    kind = ErrorKind.SECRET_NOT_FOUND

    def __init__(self) -> None:
        super().__init__("secret not found")


class SecretConfigured(DuetimeError):
    """The secret is one of the settings, so it cannot be revoked."""

    kind = ErrorKind.SECRET_CONFIGURED

    def __init__(self, id: str) -> None:
        super().__init__(
            f"secret '{id}' is configured: take it out of WEBHOOK_SECRETS and restart the service"
        )


class TooManySecrets(DuetimeError):
    kind = ErrorKind.TOO_MANY_SECRETS

    def __init__(self, namespace: str, most: int) -> None:
        super().__init__(f"namespace '{namespace}' has {most} secrets: revoke one first")


class TooManyTimers(DuetimeError):
    """The namespace has as many unfinished timers as its `max_pending` allows."""

    kind = ErrorKind.TOO_MANY_TIMERS

    def __init__(self, namespace: str, max_pending: int) -> None:
        super().__init__(
            f"namespace '{namespace}' may have {max_pending:,} timers that are pending or executing"
            " (max_pending), and has as many: try again when some of them have ended"
        )
        self.max_pending = max_pending


class KeyNotFound(DuetimeError):
    kind = ErrorKind.KEY_NOT_FOUND

    def __init__(self) -> None:
        super().__init__("key not found")


class KeyNotActive(DuetimeError):
    """The key has expired or was rotated, so it cannot be rotated."""

    kind = ErrorKind.KEY_NOT_ACTIVE


class TooManyKeys(DuetimeError):
    kind = ErrorKind.TOO_MANY_KEYS

    def __init__(self, most: int) -> None:
        super().__init__(f"there are {most:,} keys, which is the most: revoke one first")


class EndpointNotPaused(DuetimeError):
    kind = ErrorKind.ENDPOINT_NOT_PAUSED

    def __init__(self, endpoint: str) -> None:
        super().__init__(f"{endpoint} is not paused")


class TooManyPauses(DuetimeError):
    kind = ErrorKind.TOO_MANY_PAUSES

    def __init__(self, most: int) -> None:
        super().__init__(f"{most:,} endpoints are paused, which is the most: resume one first")


class TimerNotFound(DuetimeError):
    kind = ErrorKind.TIMER_NOT_FOUND

    def __init__(self, key: TimerKey) -> None:
        super().__init__("timer not found")
        self.key = key


class TimerNotPending(DuetimeError):
    """The timer cannot be changed or canceled because of its status."""

    kind = ErrorKind.TIMER_NOT_PENDING

    def __init__(self, verb: str, status: TimerStatus) -> None:
        super().__init__(f"cannot {verb} timer with status '{status.label}'")
        self.status = status


class TimerNotFailed(DuetimeError):
    """The timer cannot be redriven because it is not failed."""

    kind = ErrorKind.TIMER_NOT_FAILED

    def __init__(self, status: TimerStatus) -> None:
        super().__init__(
            f"cannot redrive timer with status '{status.label}': only failed timers can be redriven"
        )
        self.status = status


class TimerUnreadable(DuetimeError):
    """The stored timer is damaged, or was written by a later release."""

    kind = ErrorKind.UNREADABLE

    def __init__(self, key: TimerKey) -> None:
        super().__init__(
            f"the stored timer {key.id!r} cannot be read by this release: once it is executing,"
            " `duetime audit` shows it with the reason"
        )
        self.key = key


class CannotUnseal(DuetimeError):
    """A sealed text cannot be unsealed: its key is missing or another one, or it was altered."""

    kind = ErrorKind.UNREADABLE

    def __init__(self, key_id: str, message: str) -> None:
        super().__init__(message)
        self.key_id = key_id


class TimerSealed(TimerUnreadable):
    """The contents of the stored `timer` cannot be unsealed. They can be where the key is."""

    kind = ErrorKind.UNAVAILABLE

    def __init__(self, timer: Timer, error: CannotUnseal) -> None:
        super().__init__(timer.key)
        self.message = f"the stored timer {timer.key.id!r} cannot be decrypted: {error.message}"
        self.args = (self.message,)
        self.timer = timer


class TimerConflict(DuetimeError):
    """A different timer with this key exists."""

    kind = ErrorKind.TIMER_CONFLICT


class TimerDiffers(TimerConflict):
    """A different timer with this id exists. `fields` names the fields that differ. Their values
    are not revealed: the caller may not be entitled to them."""

    def __init__(self, fields: Sequence[str]) -> None:
        super().__init__(f"a timer with this id exists and differs in {', '.join(fields)}")
        self.fields = fields


class Unavailable(DuetimeError):
    """A dependency cannot do its work now. `what` names it in a word."""

    kind = ErrorKind.UNAVAILABLE
    what: str


class BusUnavailable(Unavailable):
    """The bus cannot do its work now. A message may or may not have been published.

    `lacks` names the resource that this process lacked. Then no message was sent.
    """

    what = "bus"

    def __init__(self, message: str, *, lacks: str | None = None) -> None:
        super().__init__(message)
        self.lacks = lacks


class StoreUnavailable(Unavailable):
    """The store cannot do its work now. A write may or may not have taken place, but never in
    part.

    `public_message` is for callers of an API, where `message` is for operators only.
    """

    what = "store"

    def __init__(self, message: str, *, public_message: str | None = None) -> None:
        super().__init__(message)
        self.public_message = message if public_message is None else public_message


class StoreUnreachable(StoreUnavailable):
    """The store's server cannot be reached, or does not let anyone in yet: waiting may help."""


class StorageFull(StoreUnavailable):
    """The store has no room for anything new. Accepted timers go on while a reserve lasts."""

    kind = ErrorKind.STORAGE_FULL


class StoreInUse(StoreUnavailable):
    """Another process has the store to itself."""


class SchemaRefused(StoreUnavailable):
    """The store has a schema that this release cannot use, and trying again does not help."""


class LocalShortage(DuetimeError):
    """This process lacks a resource that an attempt needs, so nothing was sent. Neither the
    endpoint nor the timer is to blame."""

    kind = ErrorKind.UNAVAILABLE

    def __init__(self, resource: str) -> None:
        super().__init__(f"out of {resource}")
        self.resource = resource


class CopyRefused(StoreUnavailable):
    """A copy of a store was not made, or not put in place. The files of before are unchanged."""


class SettingsError(DuetimeError):
    """The settings are refused, and with them the start. The message has one line per problem."""

    kind = ErrorKind.INVALID_INPUT
