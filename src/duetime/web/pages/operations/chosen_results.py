"""The page that says what happened to each chosen timer."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence

from msgspec import Struct

from duetime.api.http.auditing import Auditing
from duetime.api.v1.bulk_operations import format_move
from duetime.domain.bulk import BulkAction
from duetime.domain.errors import DuetimeError, NamespaceNotFound
from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey
from duetime.service.bulk.chosen import Answered, ChosenTimers
from duetime.web.errors import words_of
from duetime.web.pages.operations.selection import Selection
from duetime.web.pages.operations.wording import WORDS
from duetime.web.pages.timer_paths import timer_path
from duetime.web.rendering.view import View
from duetime.web.request import Request

REMEMBERED_RESULTS = 50
"""Results that are kept, so that a form that is sent again shows them and does nothing."""


class Row(Struct, frozen=True, kw_only=True):
    """The outcome for one timer: done, with its next attempt, or the reason why not."""

    key: TimerKey
    path: str
    done: bool
    words: str
    due_at: Instant | None = None


class ChosenResults:
    def __init__(self, chosen: ChosenTimers, auditing: Auditing) -> None:
        self._chosen = chosen
        self._auditing = auditing
        self._recent: OrderedDict[tuple[str, str], asyncio.Future[Sequence[Row]]] = OrderedDict()

    async def view(
        self,
        request: Request,
        action: BulkAction,
        selection: Selection,
        move_by_ms: int | None,
        once: str,
    ) -> View:
        """Act on the timers, unless the same answer has come before. Raises `InvalidInput`."""
        request.caller.note({"action": action.value, "timers": len(selection.chosen)})
        if move_by_ms is not None:
            request.caller.note({"moveBy": format_move(move_by_ms)})
        name = request.access.name, once
        acting = self._recent.get(name)
        request.caller.note({"repeat": acting is not None or None})
        if acting is None:
            # A task of its own: a browser that goes away does not leave half of it undone.
            acting = self._recent[name] = asyncio.ensure_future(
                self._rows(request, action, selection.chosen, move_by_ms)
            )
            while len(self._recent) > REMEMBERED_RESULTS:
                self._recent.popitem(last=False)
        rows = await asyncio.shield(acting)
        changed = sum(row.done for row in rows)
        request.caller.note({"changed": changed})
        return View(
            template="pages/operations/chosen.html",
            title="Result",
            values={
                "verb": WORDS[action],
                "rows": rows,
                "changed": changed,
                "timers_path": selection.timers_path,
            },
        )

    async def _rows(
        self,
        request: Request,
        action: BulkAction,
        keys: Sequence[TimerKey],
        move_by_ms: int | None,
    ) -> Sequence[Row]:
        visible = [key for key in keys if request.access.sees(key.namespace)]
        answers = {key: Answered(key, error=NamespaceNotFound(key.namespace)) for key in keys}
        if visible:
            request.caller.has_begun = True
            done = await self._chosen.act(action, visible, move_by_ms=move_by_ms)
            answers |= {each.key: each for each in done}
        word = WORDS[action].audit
        await self._auditing.record_each(
            request.caller, [(word, each.key, each.error) for each in answers.values()]
        )
        return [_row(action, each) for each in answers.values()]


def _row(action: BulkAction, answered: Answered) -> Row:
    error = answered.error
    is_pending = answered.timer is not None and action is not BulkAction.CANCEL
    return Row(
        key=answered.key,
        path=timer_path(answered.key),
        done=error is None,
        words=WORDS[action].done if error is None else _reason(error),
        due_at=answered.timer.due_at if answered.timer is not None and is_pending else None,
    )


def _reason(error: DuetimeError) -> str:
    words = words_of(error)
    return words[:1].upper() + words[1:]
