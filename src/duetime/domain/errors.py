"""The errors a caller can meet. Each knows its kind; a front door turns kinds into its codes."""

from collections.abc import Sequence
from enum import Enum

from duetime.domain.keys import TimerKey
from duetime.domain.limits import MAX_KEY_CHARACTERS
from duetime.domain.timer import TimerStatus


class ErrorKind(Enum):
    INVALID_INPUT = "invalid input"
    TOO_LARGE = "too large"
    UNAUTHORIZED = "unauthorized"
    NAMESPACE_NOT_FOUND = "namespace not found"
    TIMER_NOT_FOUND = "timer not found"
    TIMER_NOT_PENDING = "timer not pending"
    TIMER_NOT_FAILED = "timer not failed"
    TIMER_CONFLICT = "timer conflict"
    UNAVAILABLE = "unavailable"


class DuetimeError(Exception):
    """Base of everything Duetime raises on purpose. `message` is fit to be shown."""

    kind: ErrorKind

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidInput(DuetimeError):
    """A value that cannot be accepted. `field` is its name in the door's own spelling."""

    kind = ErrorKind.INVALID_INPUT

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field} {problem}")
        self.field = field
        self.problem = problem


class TooLarge(InvalidInput):
    kind = ErrorKind.TOO_LARGE


class Unauthorized(DuetimeError):
    kind = ErrorKind.UNAUTHORIZED


class NamespaceNotFound(DuetimeError):
    kind = ErrorKind.NAMESPACE_NOT_FOUND

    def __init__(self, namespace: str) -> None:
        # What cannot be one need not be repeated at full length.
        shown = namespace if len(namespace) <= MAX_KEY_CHARACTERS else f"{namespace[:40]}..."
        super().__init__(f"namespace '{shown}' does not exist")


class TimerNotFound(DuetimeError):
    kind = ErrorKind.TIMER_NOT_FOUND

    def __init__(self, key: TimerKey) -> None:
        super().__init__("timer not found")
        self.key = key


class TimerNotPending(DuetimeError):
    """The timer could not be changed or canceled because of the status it has."""

    kind = ErrorKind.TIMER_NOT_PENDING

    def __init__(self, verb: str, status: TimerStatus) -> None:
        super().__init__(f"cannot {verb} timer with status '{status.label}'")
        self.status = status


class TimerNotFailed(DuetimeError):
    """The timer could not be redriven because it is not failed."""

    kind = ErrorKind.TIMER_NOT_FAILED

    def __init__(self, status: TimerStatus) -> None:
        super().__init__(f"cannot redrive timer with status '{status.label}': only failed ones")
        self.status = status


class TimerConflict(DuetimeError):
    """A timer with this key exists and was asked for in other words."""

    kind = ErrorKind.TIMER_CONFLICT


class TimerDiffers(TimerConflict):
    """A timer with this id exists and is a different one. `fields` are the names of what differs;
    what it is instead may be nobody's business here, so it is not told."""

    def __init__(self, fields: Sequence[str]) -> None:
        super().__init__(f"a timer with this id exists and differs in {', '.join(fields)}")
        self.fields = fields


class Unavailable(DuetimeError):
    """Something that we depend on could not do its work now. `what` it is, in a word."""

    kind = ErrorKind.UNAVAILABLE
    what: str


class BusUnavailable(Unavailable):
    """The bus could not do its work now. What was to be published may have been or not."""

    what = "bus"


class StoreUnavailable(Unavailable):
    """The store could not do its work now. What was to be written may have been written or
    not, but never in part.

    `told` is what callers of an API are told, where the message is for operators only.
    """

    what = "store"

    def __init__(self, message: str, *, told: str | None = None) -> None:
        super().__init__(message)
        self.told = message if told is None else told


class SettingsError(DuetimeError):
    """Start-up is refused. The message has one line per problem."""

    kind = ErrorKind.INVALID_INPUT
