"""The form of a namespace: its fields, and the change that they ask for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict

from duetime.api.v1.namespaces import changed_options
from duetime.api.v1.request_types import NamespaceBody, RetryPolicyBody
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import format_duration
from duetime.domain.lateness.objective import EXAMPLE
from duetime.domain.namespace import DEFAULT_SHARDS, LIMITS, Namespace, NamespaceOptions
from duetime.domain.retry import RetryPolicy
from duetime.service.validation import check_namespace
from duetime.web.forms.due import read_span_ms
from duetime.web.forms.numbers import read_number, read_whole_number
from duetime.web.request import Fields

ValueT = TypeVar("ValueT")

BEFORE = "before."
"""First part of the name of the hidden field that has the value a field was loaded with."""

_RETRIES = "retry_policy."


Problems = Mapping[str, str]
"""Sentences by the names of fields."""


class FormField(Struct, frozen=True, kw_only=True):
    """`name` is that of the member in errors. `before` is the value that the form was loaded with;
    a field that still has it is left alone. The caller may not change a field that is locked."""

    name: str
    label: str
    hint: str
    value: str = ""
    before: str = ""
    problem: str = ""
    is_number: bool = False
    is_locked: bool = False


class FieldGroup(Struct, frozen=True):
    id: str
    title: str
    fields: Sequence[FormField]


_DEFAULTS = RetryPolicy()
_NAME = FormField(
    name="namespace",
    label="Name",
    hint="Such as orders-eu, easy to type in a shell. It never changes.",
)
_SHARDS = FormField(
    name="num_shards",
    label="Shards",
    hint=f"Timers are spread over them, {DEFAULT_SHARDS} unless given. The number never changes.",
    is_number=True,
)
_GROUPS = (
    FieldGroup(
        "limits",
        "Limits",
        (
            FormField(
                name="max_pending",
                label="Unfinished timers",
                hint="Creates beyond it are refused; 0 takes none. Empty: no limit.",
                is_number=True,
            ),
            FormField(
                name="concurrency",
                label="Callbacks at once",
                hint="On all nodes together. Empty: no limit.",
                is_number=True,
            ),
            FormField(
                name="max_payload_bytes",
                label="Largest payload, in bytes",
                hint="Empty: that of the service.",
                is_number=True,
            ),
            FormField(
                name="callback_networks",
                label="Networks of callbacks",
                hint="Such as *.example.com:443. Within those of the service. Empty: all of those.",
            ),
        ),
    ),
    FieldGroup(
        "keeping",
        "Keeping and lateness",
        (
            FormField(
                name="retention",
                label="Finished timers are kept for",
                hint="Such as “7 days”; “0 s” is for ever. Empty: as the service keeps them.",
            ),
            FormField(
                name="slo",
                label="Lateness objective",
                hint=f"Such as {EXAMPLE}. It is measured, and changes nothing. Empty: none.",
            ),
        ),
    ),
    FieldGroup(
        "retries",
        "Retries of timers without a policy of their own",
        (
            FormField(
                name=f"{_RETRIES}max_retries",
                label="Retries",
                hint=f"0 for none. Empty: {_DEFAULTS.max_retries}.",
                is_number=True,
            ),
            FormField(
                name=f"{_RETRIES}initial_interval",
                label="First wait",
                hint=f"Empty: {format_duration(_DEFAULTS.initial_interval_ms)}.",
            ),
            FormField(
                name=f"{_RETRIES}backoff_multiplier",
                label="Each wait grows by a factor of",
                hint=f"Empty: {_DEFAULTS.backoff_multiplier:g}.",
            ),
            FormField(
                name=f"{_RETRIES}max_interval",
                label="Longest wait",
                hint=f"Empty: {format_duration(_DEFAULTS.max_interval_ms)}.",
            ),
            FormField(
                name=f"{_RETRIES}max_retry_attempts_duration",
                label="Give up after",
                hint="After the first attempt. "
                f"Empty: {format_duration(_DEFAULTS.max_duration_ms)}.",
            ),
        ),
    ),
)


def new_namespace_groups(form: Fields, problems: Problems) -> list[FieldGroup]:
    """The form for a new namespace, with what was typed into it."""
    first = FieldGroup("name", "Namespace", (_NAME, _SHARDS))
    return [
        FieldGroup(
            group.id, group.title, [_filled(each, {}, form, problems) for each in group.fields]
        )
        for group in (first, *_GROUPS)
    ]


def namespace_groups(
    namespace: Namespace, form: Fields, problems: Problems, *, may_change_limits: bool
) -> list[FieldGroup]:
    """The form for an existing namespace, with what was typed into it."""
    current = _texts(namespace.options)
    locked = () if may_change_limits else LIMITS
    return [
        FieldGroup(
            group.id,
            group.title,
            [
                _filled(each, current, form, problems, is_locked=each.name in locked)
                for each in group.fields
            ],
        )
        for group in _GROUPS
    ]


def body_of(form: Fields) -> tuple[NamespaceBody, list[InvalidInput]]:
    """The members whose fields were changed, and what is wrong with others. An empty field resets
    its member."""
    changed = _Changed(form)
    body = NamespaceBody(
        num_shards=changed.whole_number("num_shards"),
        retry_policy=_retry_policy(changed),
        retention=changed.duration("retention"),
        concurrency=changed.whole_number("concurrency"),
        max_payload_bytes=changed.whole_number("max_payload_bytes"),
        max_pending=changed.whole_number("max_pending"),
        callback_networks=changed.text("callback_networks"),
        slo=changed.text("slo"),
    )
    return body, changed.errors


def errors_of(body: NamespaceBody, namespace: Namespace) -> Iterator[InvalidInput]:
    """The errors of each member alone, of the waits, and of all members together."""
    policy = body.retry_policy
    if isinstance(policy, RetryPolicyBody):
        for name, value in asdict(policy).items():
            alone = RetryPolicyBody(**{name: value})
            yield from _error_of(NamespaceBody(retry_policy=alone), namespace)
        first, longest = policy.initial_interval, policy.max_interval
        both = RetryPolicyBody(initial_interval=first, max_interval=longest)
        yield from _error_of(NamespaceBody(retry_policy=both), namespace)
    for name, value in asdict(body).items():
        if name != "retry_policy":
            yield from _error_of(NamespaceBody(**{name: value}), namespace)
    yield from _error_of(body, namespace)


def _error_of(body: NamespaceBody, namespace: Namespace) -> Iterator[InvalidInput]:
    shards = body.num_shards if isinstance(body.num_shards, int) else namespace.num_shards
    try:
        options = changed_options(body, namespace.options)
        check_namespace(Namespace(namespace.name, shards, options))
    except InvalidInput as error:
        yield error


def _retry_policy(changed: "_Changed") -> RetryPolicyBody | UnsetType:
    """An empty field resets its member to the default."""
    policy = RetryPolicyBody(
        max_retries=_or_default(
            changed.whole_number(f"{_RETRIES}max_retries"), _DEFAULTS.max_retries
        ),
        initial_interval=_or_default(
            changed.duration(f"{_RETRIES}initial_interval"),
            format_duration(_DEFAULTS.initial_interval_ms),
        ),
        backoff_multiplier=_or_default(
            changed.number(f"{_RETRIES}backoff_multiplier"), _DEFAULTS.backoff_multiplier
        ),
        max_interval=_or_default(
            changed.duration(f"{_RETRIES}max_interval"), format_duration(_DEFAULTS.max_interval_ms)
        ),
        max_retry_attempts_duration=_or_default(
            changed.duration(f"{_RETRIES}max_retry_attempts_duration"),
            format_duration(_DEFAULTS.max_duration_ms),
        ),
    )
    return UNSET if policy == RetryPolicyBody() else policy


class _Changed:
    """The fields of a form that differ from what they were loaded with; others are UNSET. So a form
    that was open for long takes back nothing that others have changed meanwhile."""

    def __init__(self, form: Fields) -> None:
        self._form = form
        self.errors: list[InvalidInput] = []

    def text(self, name: str) -> str | UnsetType | None:
        given = self._form.text(name).strip()
        if given == self._form.text(BEFORE + name).strip():
            return UNSET
        return given or None

    def whole_number(self, name: str) -> int | UnsetType | None:
        return self._read(read_whole_number, name)

    def duration(self, name: str) -> str | UnsetType | None:
        """As the API writes it."""
        return self._read(lambda name, text: format_duration(read_span_ms(name, text)), name)

    def number(self, name: str) -> float | UnsetType | None:
        return self._read(read_number, name)

    def _read(self, read: Callable[[str, str], ValueT], name: str) -> ValueT | UnsetType | None:
        text = self.text(name)
        if not isinstance(text, str):
            return text
        try:
            return read(name, text)
        except InvalidInput as error:
            self.errors.append(error)
            return UNSET


def _or_default(value: ValueT | UnsetType | None, default: ValueT) -> ValueT | UnsetType:
    return default if value is None else value


def _filled(
    field: FormField,
    current: Mapping[str, str],
    form: Fields,
    problems: Problems,
    *,
    is_locked: bool = False,
) -> FormField:
    """With what was typed if the form was sent, else with the current value."""
    now = current.get(field.name, "")
    was_sent = form.has(field.name) and not is_locked
    return FormField(
        name=field.name,
        label=field.label,
        hint=field.hint,
        value=form.text(field.name) if was_sent else now,
        before=form.text(BEFORE + field.name) if was_sent else now,
        problem=problems.get(field.name, ""),
        is_number=field.is_number,
        is_locked=is_locked,
    )


def _texts(options: NamespaceOptions) -> dict[str, str]:
    policy, seconds = options.retry_policy, options.retention_seconds
    numbers = {
        name: getattr(options, name) for name in ("max_pending", "concurrency", "max_payload_bytes")
    }
    return {
        **{name: "" if value is None else str(value) for name, value in numbers.items()},
        "callback_networks": options.callback_networks or "",
        "retention": "" if seconds is None else format_duration(seconds * 1_000),
        "slo": "" if options.slo is None else options.slo.text,
        f"{_RETRIES}max_retries": str(policy.max_retries),
        f"{_RETRIES}initial_interval": format_duration(policy.initial_interval_ms),
        f"{_RETRIES}backoff_multiplier": f"{policy.backoff_multiplier:g}",
        f"{_RETRIES}max_interval": format_duration(policy.max_interval_ms),
        f"{_RETRIES}max_retry_attempts_duration": format_duration(policy.max_duration_ms),
    }
