"""The page that starts a bulk operation, or acts on chosen timers: it counts and asks first."""

import re

from msgspec import Struct
from msgspec.structs import replace

from duetime.api.http.auditing import Auditing
from duetime.api.v1.bulk_operations import format_move
from duetime.domain.bulk import BulkAction, BulkOperation
from duetime.domain.errors import InvalidInput
from duetime.domain.security.access import Role
from duetime.domain.wording import counted
from duetime.service.bulk.chosen import ChosenTimers
from duetime.service.bulk.matching import Matched
from duetime.service.bulk.operations import BulkOperations, NewOperation
from duetime.service.namespaces import Namespaces
from duetime.service.timer_service import new_uuid7
from duetime.web.endpoint import WebEndpoint, action, page
from duetime.web.forms.due import DURATION_EXAMPLES, read_duration_ms
from duetime.web.pages.filter_fields import filter_fields
from duetime.web.pages.namespace_names import names_to_choose
from duetime.web.pages.operations.chosen_results import ChosenResults
from duetime.web.pages.operations.selection import Selection, selection_of
from duetime.web.pages.operations.wording import WORDS, action_of, misfit
from duetime.web.rendering.view import Redirect, View
from duetime.web.request import Fields, Request

TYPED_FROM = 100
"""Timers above which the number has to be typed."""

MOST_GROWTH = 1.1
"""Factor by which the count may grow between the question and the answer."""

_NO_CONDITION = (
    "This filter has no condition, so it would be every timer of the namespace. Add one on the "
    "timers page, such as a time window, an endpoint or the beginning of an id."
)
_NAMES = {
    "due_from": "dueAfter",
    "due_until": "dueBefore",
    "id_prefix": "idPrefix",
    "error": "errorContains",
}
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class _Form(Struct, frozen=True, kw_only=True):
    """The fields of the question, as they were filled in, and the error of one of them."""

    move_by: str = ""
    typed: str = ""
    error: InvalidInput | None = None

    def error_of(self, field: str) -> str | None:
        if self.error is None or self.error.field != field:
            return None
        return f"{self.error.problem[:1].upper()}{self.error.problem[1:]}."


class NewOperationPage:
    """`GET /ui/operations/new` counts and asks, `POST /ui/operations` starts. A long list of chosen
    timers does not fit into an address, so the question may also be asked by POST."""

    def __init__(
        self,
        operations: BulkOperations,
        chosen: ChosenTimers,
        namespaces: Namespaces,
        auditing: Auditing,
    ) -> None:
        self._operations = operations
        self._namespaces = namespaces
        self._results = ChosenResults(chosen, auditing)

    def endpoints(self) -> tuple[WebEndpoint, ...]:
        return (
            page("uiNewOperation", "/ui/operations/new", self.ask, role=Role.WRITE),
            action("uiAskForOperation", "/ui/operations/new", self.ask_for_chosen, audit=None),
            action("uiStartOperation", "/ui/operations", self.start, audit="operation.start"),
        )

    async def ask(self, request: Request) -> View:
        return await self._question(request, request.query)

    async def ask_for_chosen(self, request: Request) -> View | Redirect:
        if not request.form.has("timer"):
            return Redirect("/ui/timers", "Nothing was done: choose at least one timer first.")
        return await self._question(request, request.form)

    async def start(self, request: Request) -> View | Redirect:
        fields = request.form
        action = action_of(fields)
        if action is None:
            raise InvalidInput("action", "is missing")
        selection = selection_of(fields, request.now)
        form = _Form(move_by=fields.text("move_by"), typed=fields.text("typed"))
        try:
            move_by_ms = _move_of(action, form.move_by)
            counted_before = _number(fields.needed("counted"))
            if selection.chosen:
                _check_typed(form.typed, len(selection.chosen))
                once = _once(fields)
                return await self._results.view(request, action, selection, move_by_ms, once)
            was_minimum = fields.has("counted_is_minimum")
            operation = await self._start(
                request, action, selection, move_by_ms, counted_before, was_minimum, form.typed
            )
        except InvalidInput as error:
            if error.field not in ("move_by", "typed"):
                raise
            form = _Form(move_by=form.move_by, typed=form.typed, error=error)
            return await self._question(request, fields, form)
        return Redirect(f"/ui/operations/{operation.id}", "The operation has started.")

    async def _start(
        self,
        request: Request,
        action: BulkAction,
        selection: Selection,
        move_by_ms: int | None,
        counted_before: int,
        was_minimum: bool,
        typed: str,
    ) -> BulkOperation:
        if selection.is_empty:
            raise InvalidInput("filter", "has no condition: it would be every timer")
        problem = misfit(action, selection.status)
        if problem is not None:
            raise InvalidInput("status", "does not fit the action")
        caller = request.caller
        new = NewOperation(
            id=_once(request.form),
            namespace=caller.reach(selection.namespace or ""),
            action=action,
            filter=selection.filter,
            move_by_ms=move_by_ms,
            started_by=caller.access.name,
        )
        caller.note(_details(action, selection, move_by_ms))
        _check_typed(typed, counted_before)
        matched = await self._operations.count(new)
        _check_growth(matched, counted_before, was_minimum=was_minimum)
        operation = await self._operations.start(new, matched)
        caller.target = operation.id
        caller.note({"matched": operation.matched})
        return operation

    async def _question(self, request: Request, fields: Fields, form: _Form | None = None) -> View:
        action = action_of(fields)
        selection = selection_of(fields, request.now)
        names: list[str] | None = []
        if selection.namespace is None and not selection.chosen:
            names = names_to_choose(self._namespaces, request.access)
            if names is not None and len(names) == 1:
                selection = replace(selection, namespace=names[0])
        form = form or _Form(move_by=fields.text("move_by"))
        values: dict[str, object] = {
            "selection": selection,
            "actions": [
                words for each, words in WORDS.items() if misfit(each, selection.status) is None
            ],
            "verb": None if action is None else WORDS[action],
            "form": form,
            "matched": None,
            "problem": None,
            "once": new_uuid7(),
            "typed_from": TYPED_FROM,
            "namespaces": names,
        }
        if selection.chosen:
            values["matched"] = Matched(len(selection.chosen), is_minimum=False)
        elif selection.is_empty:
            values["problem"] = _NO_CONDITION
        elif selection.namespace is not None and action is not None:
            request.caller.reach(selection.namespace)
            values["problem"] = misfit(action, selection.status)
            if values["problem"] is None:
                values["matched"] = await self._count(selection, action)
        return View(
            template="pages/operations/new.html",
            title="New operation",
            values=values,
            refusal=form.error,
        )

    async def _count(self, selection: Selection, action: BulkAction) -> Matched:
        is_move = action is BulkAction.RESCHEDULE
        return await self._operations.count(
            NewOperation(
                namespace=selection.namespace or "",
                action=action,
                filter=selection.filter,
                # The duration does not matter for the number.
                move_by_ms=1 if is_move else None,
            )
        )


def _details(action: BulkAction, selection: Selection, move_by_ms: int | None) -> dict[str, object]:
    """The details for the audit log, named as in the v1 API."""
    given = {_NAMES.get(name, name): text for name, text in filter_fields(selection.filter)}
    if "endpoint" in given:
        # A password may come before the host.
        given["endpoint"] = given["endpoint"].rpartition("@")[2]
    move_by = None if move_by_ms is None else format_move(move_by_ms)
    return {"action": action.value, **given, "moveBy": move_by}


def _move_of(action: BulkAction, text: str) -> int | None:
    """Raises `InvalidInput`."""
    if action is not BulkAction.RESCHEDULE:
        return None
    if not text.strip():
        raise InvalidInput("move_by", f"is needed: a duration {DURATION_EXAMPLES}")
    return read_duration_ms("move_by", text)


def _number(text: str) -> int:
    digits = re.sub(r"[\s,.']", "", text)
    if not re.fullmatch(r"[0-9]{1,15}", digits):
        raise InvalidInput("typed", "must be the number of timers")
    return int(digits)


def _check_typed(typed: str, shown: int) -> None:
    if shown > TYPED_FROM and (not typed.strip() or _number(typed) != shown):
        raise InvalidInput("typed", f"must be the number {shown:,}, to confirm")


def _check_growth(matched: Matched, shown: int, *, was_minimum: bool) -> None:
    """A count that was cut short says nothing about growth: the user knows that it is more."""
    if not was_minimum and matched.timers > shown * MOST_GROWTH:
        now = counted(matched.timers, "timer")
        problem = f"is out of date: {now} match by now, and the page showed {shown:,}"
        raise InvalidInput("typed", problem)


def _once(fields: Fields) -> str:
    """The name of this answer to the question, so that sending it twice does nothing twice."""
    once = fields.needed("once")
    if not _ID.fullmatch(once):
        raise InvalidInput("once", "must be the one of the form: load the page again")
    return once
