"""The form that changes the instant and the payload of a pending timer."""

from collections.abc import Mapping

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from duetime.domain.callback import BusCallback, Callback
from duetime.domain.errors import InvalidInput, TimerConflict
from duetime.domain.instants import Delay, Instant, due_instant, format_instant
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.wording import relative
from duetime.service.namespaces import Namespaces
from duetime.service.validation import TimerChecks
from duetime.web.forms.due import read_due
from duetime.web.forms.json_text import formatted, read_json
from duetime.web.forms.zones import instant_in_words
from duetime.web.pages.timer.facts import MAX_SHOWN_BYTES, payload_of
from duetime.web.request import Fields

_FIELDS = {"execute_in": "execute_at", "callback.payload": "payload"}
"""Fields of the form by the service's names for them."""

CHANGED_MEANWHILE = (
    "the timer was changed while this form was open: look at what it is now, and save again to"
    " overwrite that"
)


class EditForm(Struct, frozen=True, kw_only=True):
    """The fields as they are shown. `version` tells whether the timer was changed meanwhile."""

    execute_at: str
    payload: str
    version: str
    takes_payload: bool
    errors: Mapping[str, str] = {}

    @classmethod
    def of(cls, timer: Timer) -> "EditForm":
        return cls(
            execute_at=format_instant(timer.execute_at),
            payload=_payload_text(timer.callback),
            version=str(timer.updated_at),
            takes_payload=takes_payload(timer.callback),
        )

    def typed(self, form: Fields, errors: Mapping[str, str]) -> "EditForm":
        """The same form with what somebody typed."""
        return replace(
            self, execute_at=form.text("execute_at"), payload=_given_payload(form), errors=errors
        )


class Edit(Struct, frozen=True):
    """The changes to make; unset parts stay."""

    execute_at: Instant | Delay | UnsetType
    payload: Raw | UnsetType | None
    """None if there is to be no payload."""

    @property
    def is_empty(self) -> bool:
        return self.execute_at is UNSET and self.payload is UNSET

    def callback(self, before: Callback) -> Callback | UnsetType:
        if self.payload is UNSET:
            return UNSET
        return replace(before, payload=UNSET if self.payload is None else self.payload)

    def details(self) -> Mapping[str, object]:
        """Words for the audit log, as the API has them."""
        at = self.execute_at
        return {
            "executeAt": format_instant(at) if not isinstance(at, Delay | UnsetType) else None,
            "executeIn": f"{at.ms}ms" if isinstance(at, Delay) else None,
            "payload": self.payload is not UNSET or None,
        }


def takes_payload(callback: Callback) -> bool:
    """Events carry the payload of their command, and long payloads are not for a form."""
    payload = payload_of(callback)
    return not isinstance(callback, BusCallback) and (
        payload is None or len(payload) <= MAX_SHOWN_BYTES
    )


class Editing:
    """Reads the form, and checks it by the service's own rules without changing anything."""

    def __init__(self, checks: TimerChecks, namespaces: Namespaces) -> None:
        self._checks = checks
        self._namespaces = namespaces

    async def read(self, timer: Timer, form: Fields, now: Instant) -> tuple[Edit, dict[str, str]]:
        """The changes, and the errors by field. Fields that were left alone are no changes."""
        errors: dict[str, str] = {}
        execute_at: Instant | Delay | UnsetType = UNSET
        payload: Raw | UnsetType | None = UNSET
        try:
            execute_at = self._due(timer, form, now)
        except InvalidInput as error:
            errors["execute_at"] = error.problem
        try:
            payload = await self._payload(timer, form)
        except InvalidInput as error:
            errors[_FIELDS.get(error.field, "payload")] = error.problem
        return Edit(execute_at, payload), errors

    def _due(self, timer: Timer, form: Fields, now: Instant) -> Instant | Delay | UnsetType:
        text = form.get("execute_at")
        if text is None:
            return UNSET
        due = read_due("execute_at", text, now, form.get("zone"))
        if due == timer.execute_at:
            return UNSET
        self._checks.check_instant(due, now)
        return due

    async def _payload(self, timer: Timer, form: Fields) -> Raw | UnsetType | None:
        if not form.has("payload") or not takes_payload(timer.callback):
            return UNSET
        text = _given_payload(form)
        if text == _payload_text(timer.callback):
            return UNSET
        if not text.strip():
            return None
        payload = read_json("payload", text)
        namespace = await self._namespaces.named(timer.key.namespace)
        longest = self._checks.max_payload_bytes(namespace)
        self._checks.check_callback(replace(timer.callback, payload=payload), longest)
        return payload


def check_version(timer: Timer, form: Fields) -> None:
    """Raises `TimerConflict` if somebody else changed the timer since the form was made. One that
    is not pending any more is refused by the service, with the better reason."""
    given = form.get("version")
    is_pending = timer.status is TimerStatus.PENDING
    if is_pending and given is not None and given != str(timer.updated_at):
        raise TimerConflict(CHANGED_MEANWHILE)


def said_about(edit: Edit, now: Instant, zone: str | None) -> Mapping[str, str]:
    """The service's reading of a typed instant."""
    if edit.execute_at is UNSET:
        return {}
    at = due_instant(edit.execute_at, now)
    return {"execute_at": f"{instant_in_words(at, zone or 'UTC')}, {relative(at, now)}"}


def _payload_text(callback: Callback) -> str:
    payload = payload_of(callback)
    return "" if payload is None or not takes_payload(callback) else formatted(payload)


def _given_payload(form: Fields) -> str:
    """Browsers send line breaks as CR LF."""
    return form.text("payload").replace("\r\n", "\n")
