"""The words for each action."""

from msgspec import Struct

from duetime.domain.bulk import BulkAction, status_to_change
from duetime.domain.errors import InvalidInput
from duetime.domain.timer import TimerStatus
from duetime.domain.wording import counted
from duetime.web.request import Fields

_UNFINISHED = "pending or executing timer"


class ActionWords(Struct, frozen=True, kw_only=True):
    """`name` is the value of the field `action`. `audit` is the word for the action on one timer.
    `done` is the outcome for one."""

    name: str
    imperative: str
    ending: str = ""
    noun: str
    explanation: str
    done: str
    participle: str
    icon: str
    audit: str = "timer.update"
    is_danger: bool = False

    @property
    def label(self) -> str:
        return self.imperative + self.ending

    @property
    def on_all(self) -> str:
        """The label where "Cancel" alone could mean that nothing is done."""
        return f"{self.imperative} timers{self.ending}"

    def sentence(self, timers: int, *, is_minimum: bool = False, noun: str | None = None) -> str:
        """Such as "Cancel 12 pending timers"."""
        at_least = "at least " if is_minimum else ""
        return f"{self.imperative} {at_least}{counted(timers, noun or self.noun)}{self.ending}"


WORDS = {
    BulkAction.RUN_NOW: ActionWords(
        name="run-now",
        imperative="Run",
        ending=" now",
        noun="pending timer",
        explanation="They become due at once, also those that wait for a retry. Endpoints are not "
        "flooded: timers wait for their turn. Timers that are executing are left alone.",
        done="Due now",
        participle="made due",
        icon="play",
    ),
    BulkAction.RESCHEDULE: ActionWords(
        name="move",
        imperative="Move",
        noun=_UNFINISHED,
        explanation="The next attempt of each moves by the duration you give, and is a new firing. "
        "Moved into the past, a timer is due at once. Timers that are executing are moved if they "
        "become pending again within 15 minutes.",
        done="Moved",
        participle="moved",
        icon="timers",
    ),
    BulkAction.REDRIVE: ActionWords(
        name="redrive",
        imperative="Redrive",
        noun="failed timer",
        explanation="Each fires once more, at once, with all of its retries and a new webhook-id.",
        done="Redriven",
        participle="redriven",
        icon="redrive",
        audit="timer.redrive",
    ),
    BulkAction.CANCEL: ActionWords(
        name="cancel",
        imperative="Cancel",
        noun=_UNFINISHED,
        explanation="They will never fire, and stay as canceled. This cannot be undone. Timers "
        "that are executing are canceled if they become pending again within 15 minutes.",
        done="Canceled",
        participle="canceled",
        icon="close",
        audit="timer.cancel",
        is_danger=True,
    ),
}

TITLES = {
    **{action: words.label for action, words in WORDS.items()},
    BulkAction.DELETE_NAMESPACE: "Delete the namespace",
}
"""The action of any operation."""

_ACTIONS = {words.name: action for action, words in WORDS.items()}


def action_of(fields: Fields) -> BulkAction | None:
    """The action that was chosen, if one was. Raises `InvalidInput`."""
    name = fields.get("action")
    if name is None:
        return None
    if name not in _ACTIONS:
        raise InvalidInput("action", "must be cancel, redrive, move or run-now")
    return _ACTIONS[name]


def misfit(action: BulkAction, status: str | None) -> str | None:
    """The reason why the action does not fit timers of the status, as a sentence."""
    wanted = status_to_change(action)
    if status is None or status == wanted.label:
        return None
    known = [each.label for each in TimerStatus]
    if status not in known:
        raise InvalidInput("status", f"must be one of {', '.join(known)}")
    can_be = f"Only {wanted.label} timers can be {WORDS[action].participle}"
    return f"{can_be}, and the filter asks for {status} ones."
