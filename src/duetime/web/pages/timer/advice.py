"""The advice about a timer, for somebody who has the buttons and pages at hand."""

import re
from collections.abc import Sequence

from msgspec import Struct

from duetime.domain.lateness.waits import WaitCause
from duetime.domain.timer import Timer, TimerStatus
from duetime.service.explaining import Explanation, advice_of

_CODE = re.compile(r"`([^`]+)`")
_PAGES = {
    "duetime endpoints": ("Endpoints", "/ui/endpoints"),
    "duetime cluster": ("Cluster", "/ui/cluster"),
}
"""Pages that show what a command shows, to those who see all namespaces."""


class AdvicePart(Struct, frozen=True):
    """Words, the address of a page that they name, and whether they are a command."""

    words: str
    link: str | None = None
    is_command: bool = False


def waits_for_resume(explanation: Explanation, timer: Timer) -> bool:
    """Whether the endpoint of a timer that is due is paused."""
    return explanation.advice == advice_of(WaitCause.PAUSED, timer)


def advice_parts(
    explanation: Explanation, timer: Timer, *, sees_everything: bool
) -> Sequence[AdvicePart]:
    advice = explanation.advice
    if advice is None:
        return ()
    if timer.status is TimerStatus.FAILED:
        return (AdvicePart("Mend the receiver, then redrive the timer."),)
    if sees_everything and waits_for_resume(explanation, timer):
        if timer.status.is_finished:
            return ()
        page = AdvicePart(*_PAGES["duetime endpoints"])
        return (AdvicePart("An admin lets it go on: see "), page, AdvicePart("."))
    parts = []
    for index, words in enumerate(_CODE.split(advice)):
        if index % 2 and sees_everything and words in _PAGES:
            parts.append(AdvicePart(*_PAGES[words]))
        else:
            parts.append(AdvicePart(words, is_command=index % 2 == 1))
    return parts
