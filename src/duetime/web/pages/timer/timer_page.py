"""The page of one timer, and the actions on it."""

import re
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import quote, urlencode

from msgspec import UNSET, json

from duetime.api.app import Services
from duetime.api.http.answers import JSON_TYPE, Answer
from duetime.domain.callback import BusCallback
from duetime.domain.errors import (
    DuetimeError,
    InvalidInput,
    NamespaceNotFound,
    TimerConflict,
    TimerNotFailed,
    TimerNotFound,
    TimerNotPending,
    TimerSealed,
    TimerUnreadable,
)
from duetime.domain.instants import Instant, parse_instant
from duetime.domain.keys import TimerKey
from duetime.domain.security.access import Role
from duetime.domain.timer import Timer, TimerStatus
from duetime.event_loop import next_turn
from duetime.web.endpoint import WebEndpoint, action, page
from duetime.web.errors import status_of, words_of
from duetime.web.forms.due import read_duration_ms
from duetime.web.forms.json_text import formatted
from duetime.web.pages.timer.advice import advice_parts, waits_for_resume
from duetime.web.pages.timer.editing import EditForm, Editing, check_version, said_about
from duetime.web.pages.timer.facts import (
    are_long,
    attempt_rows,
    contents_of,
    facts_of,
    headers_of,
    payload_of,
)
from duetime.web.pages.timer.recipes import recipes_for
from duetime.web.pages.timer.timeline import picture_of
from duetime.web.pages.timer_paths import id_in_path, timer_path
from duetime.web.rendering.view import Redirect, Result, View
from duetime.web.request import Request

PATH = "/ui/timers/{namespace}/{timer_id}"
_ACTIONS = ("check", "change", "run-now", "move", "cancel", "redrive", "delete")
LIVE = ("state", "explanation", "contents", "facts")

_NO_LONGER = {
    TimerStatus.EXECUTING: "it is being fired at this moment",
    TimerStatus.COMPLETED: "it has fired meanwhile, and is completed",
    TimerStatus.FAILED: "it has fired meanwhile, and failed",
    TimerStatus.CANCELED: "it was canceled meanwhile",
    TimerStatus.PENDING: "it is pending",
}
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z)")


class TimerPage:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._timers = services.v1
        self._editing = Editing(services.v1.checks, services.namespaces)

    def endpoints(self) -> tuple[WebEndpoint, ...]:
        return (
            page("uiTimer", PATH, self.show, may_be_live=True),
            action("uiCheckChange", f"{PATH}/check", self.check, audit=None),
            action("uiChangeTimer", f"{PATH}/change", self.change, audit="timer.update"),
            action("uiRunTimer", f"{PATH}/run-now", self.run_now, audit="timer.update"),
            action("uiMoveTimer", f"{PATH}/move", self.move, audit="timer.update"),
            action("uiCancelTimer", f"{PATH}/cancel", self.cancel, audit="timer.cancel"),
            action("uiRedriveTimer", f"{PATH}/redrive", self.redrive, audit="timer.redrive"),
            action("uiDeleteTimer", f"{PATH}/delete", self.delete, audit="timer.delete"),
        )

    async def show(self, request: Request) -> Result:
        key = self._key(request)
        try:
            return await self._view(request, key)
        except (TimerNotFound, NamespaceNotFound) as error:
            if not request.csrf:
                # The page is open: it tells the reason, and keeps what was last known.
                raise
            acted_on = await self._acted_on(key)
            return _missing(key, error) if acted_on is None else Redirect(timer_path(acted_on))

    async def _acted_on(self, key: TimerKey) -> TimerKey | None:
        """The timer of an action's address: the browser shows that address after a refusal."""
        id, _, last = key.id.rpartition("/")
        if not id or last not in _ACTIONS:
            return None
        acted_on = TimerKey(key.namespace, id)
        try:
            await self._timers.get(acted_on)
        except (TimerNotFound, NamespaceNotFound):
            return None
        except (TimerSealed, TimerUnreadable):
            pass
        return acted_on

    async def check(self, request: Request) -> Answer:
        """The errors of the form that changes the timer, by field, for a script."""
        request.caller.check_role(Role.READ)
        timer = await self._timers.get(self._key(request))
        edit, errors = await self._editing.read(timer, request.form, request.now)
        says = said_about(edit, request.now, request.form.get("zone"))
        found: dict[str, object] = {"errors": errors, "says": says}
        if edit.payload is not UNSET and edit.payload is not None:
            found["formatted"] = {"payload": formatted(edit.payload)}
        if timer.status is not TimerStatus.PENDING:
            found["message"] = f"It can no longer be changed: {_NO_LONGER[timer.status]}."
        return Answer(200, json.encode(found), JSON_TYPE)

    async def change(self, request: Request) -> Result:
        key = self._key(request)
        timer = await self._timers.get(key)
        edit, errors = await self._editing.read(timer, request.form, request.now)
        form = EditForm.of(timer).typed(request.form, errors)
        request.caller.note(edit.details())
        if errors:
            field, problem = next(iter(errors.items()))
            return await self._refused(request, key, InvalidInput(field, problem), form)
        try:
            check_version(timer, request.form)
            if not edit.is_empty:
                await self._timers.change_parts(key, edit.callback, execute_at=edit.execute_at)
        except (InvalidInput, TimerConflict, TimerNotPending) as error:
            return await self._refused(request, key, error, form)
        return Redirect(timer_path(key), "Nothing to change." if edit.is_empty else "Saved.")

    async def run_now(self, request: Request) -> Result:
        request.caller.note({"runNow": True})
        return await self._act(request, self._services.chosen.run_now, "It is due now.")

    async def move(self, request: Request) -> Result:
        async def moved(key: TimerKey) -> Timer:
            move_ms = read_duration_ms("move_by", request.form.needed("move_by"))
            request.caller.note({"moveBy": request.form.get("move_by")})
            return await self._services.chosen.move(key, move_ms)

        return await self._act(request, moved, "Moved.")

    async def cancel(self, request: Request) -> Result:
        return await self._act(request, self._timers.cancel, "Canceled: it does not fire.")

    async def redrive(self, request: Request) -> Result:
        return await self._act(request, self._services.redriving.redrive, "Due now, once more.")

    async def delete(self, request: Request) -> Result:
        key = self._key(request)
        try:
            await self._timers.remove(key)
        except TimerNotPending as error:
            return await self._refused(request, key, error)
        return Redirect("/ui/timers", f"Deleted {key.id}.")

    async def _act(
        self, request: Request, act: Callable[[TimerKey], Awaitable[Timer]], message: str
    ) -> Result:
        """Act on the timer, and go back to its page. A refusal is told there."""
        key = self._key(request)
        try:
            await act(key)
        except (InvalidInput, TimerNotPending, TimerNotFailed) as error:
            return await self._refused(request, key, error)
        return Redirect(timer_path(key), message)

    def _key(self, request: Request) -> TimerKey:
        key = TimerKey(request.part("namespace"), id_in_path(request.part("timer_id")))
        return request.caller.reach_timer(key)

    async def _refused(
        self, request: Request, key: TimerKey, error: DuetimeError, form: EditForm | None = None
    ) -> View:
        """The page with the refusal. Raises the error if the caller may write but not read."""
        if not request.access.may(Role.READ):
            raise error
        return await self._view(request, key, error, form)

    async def _view(
        self,
        request: Request,
        key: TimerKey,
        refusal: DuetimeError | None = None,
        form: EditForm | None = None,
    ) -> View:
        """The page. With a form it is open for changes."""
        sealed: str | None = None
        try:
            timer = await self._timers.get(key)
        except TimerSealed as error:
            timer, sealed = error.timer, words_of(error)
        except TimerUnreadable as error:
            return _unreadable(key, error)
        is_pending = timer.status is TimerStatus.PENDING
        if form is None and request.query.has("edit") and is_pending and sealed is None:
            form = EditForm.of(timer) if request.may_write else None
        if are_long(timer):
            # Others go on between the form, the contents and the page.
            await next_turn()
        values = self._values(request, timer, is_sealed=sealed is not None)
        if are_long(timer):
            await next_turn()
        return View(
            template="pages/timer/timer.html",
            title=key.id,
            values={
                **values,
                "form": form,
                "problem": None if refusal is None else _sentence(refusal, form),
                "wrong_move": refusal.problem
                if isinstance(refusal, InvalidInput) and refusal.field == "move_by"
                else None,
                "sealed": sealed,
                "recipes": recipes_for(timer, request.base_url, request.now)
                if sealed is None and request.csrf
                else None,
            },
            live=tuple(name for name in LIVE if name != "contents" or not are_long(timer)),
            refusal=refusal,
        )

    def _values(self, request: Request, timer: Timer, *, is_sealed: bool) -> Mapping[str, object]:
        explanation = self._services.explaining.explain_timer(
            timer, sees_endpoints=request.sees_everything
        )
        payload, metadata = payload_of(timer.callback), timer.metadata
        if are_long(timer) and not request.csrf:
            # The page is open: its contents are no live part.
            payload = metadata = None
        in_full = request.query.has("all")
        default_timeout_ms = self._timers.checks.rules.callback_timeout_ms
        return {
            "timer": timer,
            "path": timer_path(timer.key),
            "page_target": timer_path(timer.key) + ("?all" if in_full else ""),
            "duplicate": f"/ui/create?from={quote(timer.key.namespace, safe='')}/"
            + quote(timer.key.id, safe=""),
            "neighbours": "/ui/timers?" + urlencode({"namespace": timer.key.namespace}),
            "is_pending": timer.status is TimerStatus.PENDING,
            "is_failed": timer.status is TimerStatus.FAILED,
            "may_edit": not is_sealed,
            "may_delete": not isinstance(timer.callback, BusCallback),
            "explanation": explanation,
            "verdict": _with_instants(explanation.verdict),
            "advice": advice_parts(explanation, timer, sees_everything=request.sees_everything),
            "waits_for_resume": waits_for_resume(explanation, timer),
            "picture": picture_of(timer, explanation, request.now),
            "attempts": attempt_rows(timer, explanation),
            "facts": list(facts_of(timer, explanation, default_timeout_ms)),
            "headers": headers_of(timer.callback),
            "payload": None if payload is None else contents_of(payload, in_full=in_full),
            "metadata": None if metadata is None else contents_of(metadata, in_full=in_full),
        }


def _sentence(error: DuetimeError, form: EditForm | None) -> str:
    """The reason for a refusal, for the page of the timer."""
    if form is not None and form.errors:
        return "Nothing was changed: look at what is marked."
    if isinstance(error, TimerNotPending | TimerNotFailed):
        return f"Nothing was changed: {_NO_LONGER[error.status]}."
    return f"Nothing was changed: {words_of(error)}."


def _with_instants(text: str) -> list[str | Instant]:
    """Words and instants in turn, so that the page shows instants by its switch of zones."""
    parts: list[str | Instant] = []
    for index, part in enumerate(_INSTANT.split(text)):
        try:
            parts.append(parse_instant(part) if index % 2 else part)
        except ValueError:
            return [text]
    return parts


def _missing(key: TimerKey, error: DuetimeError) -> View:
    """Whether the timer or its namespace does not exist is told to those who may see it."""
    search = urlencode({"namespace": key.namespace, "id_prefix": key.id})
    is_namespace = isinstance(error, NamespaceNotFound)
    return View(
        template="pages/timer/missing.html",
        title="No such timer",
        values={
            "key": key,
            "words": words_of(error) if is_namespace else None,
            "search": f"/ui/timers?{search}" if not is_namespace else "/ui/timers",
        },
        status=404,
    )


def _unreadable(key: TimerKey, error: DuetimeError) -> View:
    return View(
        template="pages/timer/unreadable.html",
        title=key.id,
        values={"key": key, "words": words_of(error)},
        status=status_of(error),
    )
