"""The page for a new timer, with a check by the service while the user types."""

from collections.abc import Mapping
from itertools import islice

from msgspec import Struct, json

from duetime.api.app import Services
from duetime.api.http.answers import JSON_TYPE, Answer
from duetime.api.v1.requests import retry_policy_in
from duetime.domain.callback import BusCallback, HttpCallback, NatsCallback
from duetime.domain.errors import (
    DuetimeError,
    InvalidInput,
    NamespaceNotFound,
    TimerConflict,
    TooManyTimers,
    Unavailable,
)
from duetime.domain.instants import format_duration
from duetime.domain.keys import TimerKey
from duetime.domain.security.access import Access, Role
from duetime.domain.wording import relative
from duetime.ports.clock import Clock
from duetime.ports.store import Existence
from duetime.service.create_requests import NewTimer
from duetime.service.namespaces import Namespaces
from duetime.service.trying.trial_creates import TrialCreates
from duetime.web.endpoint import WebEndpoint, action, page
from duetime.web.pages.creating.form import DEFAULTS, WHOLE, TimerForm, fields_of
from duetime.web.pages.creating.instants import ZONES
from duetime.web.pages.creating.sentence import policy_in_words, sentence_of
from duetime.web.pages.timer_paths import timer_path
from duetime.web.rendering.view import Redirect, View
from duetime.web.request import Request

MAX_LISTED_NAMESPACES = 100
"""Namespaces that a form lets the user choose from. Among more the name is typed."""

UNFINISHED = "Fill in the form: this line then says what will happen."
WRONG = "Not yet: look at what is marked in the form."

QUICK_DELAYS = ("10 s", "1 min", "15 min", "1 h")

_KINDS = (
    ("http", "HTTP request", "HTTP", HttpCallback(url="http://example.com/")),
    ("nats", "NATS message", "NATS", NatsCallback(topic="a")),
    ("bus", "Bus event", "the bus", BusCallback()),
)


class Kind(Struct, frozen=True):
    """A kind of callback. If it is not available here, `problem` says why."""

    name: str
    label: str
    short: str
    problem: str | None


class Draft(Struct):
    """A form that was checked. Without problems, `new` is the timer to create, and the sentence
    says what will happen."""

    form: TimerForm
    sentence: str
    new: NewTimer | None = None
    refusal: DuetimeError | None = None

    def refuse(self, error: DuetimeError) -> None:
        """Show the error beside its field. The first one is that of the whole form."""
        self.refusal = self.refusal or error
        self.form.add(_beside_field(error))


class CreatePage:
    def __init__(self, services: Services, trials: TrialCreates, clock: Clock) -> None:
        self._timers = services.v1
        self._namespaces = services.namespaces
        self._trials = trials
        self._clock = clock

    def endpoints(self) -> tuple[WebEndpoint, ...]:
        return (
            page("uiCreate", "/ui/create", self.show, role=Role.WRITE),
            action("uiCheckTimer", "/ui/create/check", self.check, audit=None),
            action("uiCreateTimer", "/ui/create", self.create, audit="timer.create"),
        )

    async def show(self, request: Request) -> View:
        values = {**DEFAULTS, "namespace": request.access.home}
        lacks_secrets = False
        # An id may begin or end with space.
        source = request.query.text("from") or None
        if source is not None:
            copied, lacks_secrets = await self._copied(request, source)
            values |= copied
        values |= {name: value for name, value in request.query.pairs if name in DEFAULTS}
        draft = await self._draft(request, TimerForm(values))
        draft.form.forgive_missing()
        return self._view(request, draft, copied_from=source, lacks_secrets=lacks_secrets)

    async def check(self, request: Request) -> Answer:
        """For the script of the page. Fields that are still empty are no errors until the form is
        about to be sent."""
        draft = await self._draft(request, TimerForm.sent(request.form))
        form = draft.form
        if not request.form.has("sending"):
            form.forgive_missing()
        content = {
            "errors": form.problems,
            "says": {**form.says, "send": draft.sentence},
            "message": form.problems.get(WHOLE, ""),
        }
        return Answer(200, json.encode(content), JSON_TYPE)

    async def create(self, request: Request) -> View | Redirect:
        draft = await self._draft(request, TimerForm.sent(request.form))
        if draft.new is not None:
            try:
                result = await self._timers.create(draft.new)
            except DuetimeError as error:
                draft.refuse(error)
            else:
                timer = result.timer
                request.caller.reach_timer(timer.key)
                if result.existence is Existence.EXISTING:
                    words = "This timer existed already, with the same content."
                else:
                    when = relative(timer.execute_at, self._clock.now())
                    words = f"Created. It fires {when}."
                # A key that only writes may not see the page of the timer.
                path = timer_path(timer.key) if request.may_read else "/ui/create"
                return Redirect(path, words)
        refusal = draft.refusal or draft.form.refusal()
        return self._view(request, draft, refusal=refusal)

    async def _draft(self, request: Request, form: TimerForm) -> Draft:
        """Everything is checked as far as possible, so that all problems show at once."""
        draft = Draft(form, UNFINISHED)
        try:
            request.caller.reach(form.namespace, form.id)
            await self._namespaces.named(form.namespace)
        except NamespaceNotFound as error:
            draft.refuse(error)
            return draft
        policy = retry_policy_in(self._namespaces, form.namespace)
        due = form.read_due()
        new = form.read(due, policy)
        trial = None
        if due is not None:
            try:
                self._trials.check_instant(due)
            except InvalidInput as error:
                draft.refuse(error)
        if new is not None:
            try:
                trial = await self._trials.check(new)
            except (InvalidInput, NamespaceNotFound, TimerConflict, Unavailable) as error:
                draft.refuse(error)
        if trial is not None and not form.problems:
            draft.new = new
            draft.sentence = sentence_of(
                trial.timer,
                self._clock.now(),
                exists=trial.exists,
                zone=form.values["zone"].strip(),
            )
        elif not form.lacks_only_fields:
            draft.sentence = WRONG
        form.says["max_retries"] = policy_in_words(policy)
        return draft

    async def _copied(self, request: Request, source: str) -> tuple[Mapping[str, str], bool]:
        """The fields of the timer at `namespace/id`. Both may have slashes."""
        request.caller.check_role(Role.READ)
        for at in (at for at, character in enumerate(source) if character == "/"):
            key = TimerKey(source[:at], source[at + 1 :])
            if request.access.sees(key.namespace) and self._namespaces.known(key.namespace):
                timer = await self._timers.get(request.caller.reach_timer(key))
                policy = retry_policy_in(self._namespaces, key.namespace)
                return fields_of(timer, policy, request.now)
        raise NamespaceNotFound(source.partition("/")[0])

    def _view(
        self,
        request: Request,
        draft: Draft,
        *,
        copied_from: str | None = None,
        lacks_secrets: bool = False,
        refusal: DuetimeError | None = None,
    ) -> View:
        form = draft.form
        return View(
            template="pages/create.html",
            title="New timer",
            values={
                "values": form.values,
                "problems": dict.fromkeys((*DEFAULTS, WHOLE), "") | form.problems,
                "says": dict.fromkeys(DEFAULTS, "") | form.says,
                "first_wrong": None
                if refusal is None
                else next((name for name in DEFAULTS if name in form.problems), None),
                "sentence": draft.sentence,
                "retries_given": form.has_retries,
                "kinds": self._kinds(),
                "namespaces": visible_namespaces(self._namespaces, request.access),
                "default_timeout": format_duration(self._trials.default_timeout_ms),
                "zones": ZONES,
                "quick_delays": QUICK_DELAYS,
                "copied_from": copied_from,
                "lacks_secrets": lacks_secrets,
            },
            refusal=refusal,
        )

    def _kinds(self) -> list[Kind]:
        kinds = []
        for name, label, short, callback in _KINDS:
            problem = self._trials.why_unavailable(callback)
            kinds.append(Kind(name, label, short, problem and problem.removeprefix(f"'{name}' ")))
        return kinds


def visible_namespaces(namespaces: Namespaces, access: Access) -> list[str] | None:
    """The names of the namespaces that the caller may create timers in, in order; None if there are
    too many to choose from."""
    if access.namespaces is not None:
        found = [known for name in access.namespaces if (known := namespaces.known(name))]
    else:
        found = list(islice(namespaces, MAX_LISTED_NAMESPACES + 1))
        if len(found) > MAX_LISTED_NAMESPACES:
            return None
    return sorted(each.name for each in found if not each.options.deleting)


def _beside_field(error: DuetimeError) -> DuetimeError:
    """Errors that belong to a field, though they do not name it."""
    if isinstance(error, NamespaceNotFound | TooManyTimers):
        return InvalidInput("namespace", f"does not work: {error.message}")
    if isinstance(error, TimerConflict):
        return InvalidInput("id", f"does not work: {error.message}")
    return error
