"""Namespaces as tables of the TOML file, one for each: `[namespaces.notifications]`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from duetime.domain.instants import parse_duration_ms
from duetime.domain.limits import MAX_KEY_CHARACTERS, MAX_SHARDS
from duetime.domain.namespace import ConfiguredNamespace, NamespaceOptions, parse_retention_seconds
from duetime.domain.retry import RetryPolicy
from duetime.settings.namespace_list import is_namespace_name, shortened
from duetime.settings.parsers import number, whole_number
from duetime.settings.suggestion import suggestion

ValueT = TypeVar("ValueT")

_MEMBERS = ("shards", "retention", "concurrency", "max_payload_bytes", "retry_policy")
_POLICY_MEMBERS = (
    "max_retries",
    "max_attempts",
    "initial_interval",
    "backoff_multiplier",
    "max_interval",
    "max_retry_attempts_duration",
    "max_attempts_duration",
)


@dataclass(frozen=True, slots=True)
class NamespaceTables:
    """What stands below `namespaces` in the file, as it was written there."""

    by_name: Mapping[str, object] = field(default_factory=dict)
    source: str = ""


def read_namespace_tables(
    tables: NamespaceTables, problems: list[str]
) -> list[ConfiguredNamespace]:
    """The namespaces that can be read; what is wrong with the others becomes problems."""
    namespaces = []
    for name, content in tables.by_name.items():
        place = f"{tables.source}: namespace {shortened(name)!r}"
        if not is_namespace_name(name):
            problems.append(f"{place}: its name must have 1 to {MAX_KEY_CHARACTERS} characters")
        elif not isinstance(content, dict):
            problems.append(f"{place}: must be a table, as [namespaces.{shortened(name)}]")
        else:
            namespaces.append(_namespace(name, _Table(place, "", content, problems)))
    return namespaces


def _namespace(name: str, table: "_Table") -> ConfiguredNamespace:
    table.refuse_others(_MEMBERS)
    shards = table.read("shards", whole_number(1, MAX_SHARDS))
    options = NamespaceOptions(
        retry_policy=_retry_policy(table),
        retention_seconds=table.read("retention", _retention),
        concurrency=table.read("concurrency", whole_number(1, 65_536)),
        max_payload_bytes=table.read("max_payload_bytes", whole_number(1, 16 * 2**20)),
    )
    # A table that sets no option leaves those alone that were set through the API.
    return ConfiguredNamespace(name, shards, options if table.has_other_than("shards") else None)


def _retry_policy(namespace: "_Table") -> RetryPolicy:
    """The policy with defaults for what is absent. How long its waits may be is the service's
    business."""
    default = RetryPolicy()
    table = namespace.table("retry_policy")
    if table is None:
        return default
    table.refuse_others(_POLICY_MEMBERS)
    table.refuse_both("max_retries", "max_attempts")
    table.refuse_both("max_retry_attempts_duration", "max_attempts_duration")
    max_retries = table.read("max_retries", whole_number(0, 100))
    max_attempts = table.read("max_attempts", whole_number(1, 101))
    duration_ms = table.read("max_retry_attempts_duration", _duration_ms)
    duration_ms = table.read("max_attempts_duration", _duration_ms) or duration_ms
    initial_ms = table.read("initial_interval", _duration_ms)
    longest_ms = table.read("max_interval", _duration_ms)
    # The default of one wait gives way to the other.
    if initial_ms is None:
        initial_ms = min(default.initial_interval_ms, longest_ms or default.max_interval_ms)
    if longest_ms is None:
        longest_ms = max(default.max_interval_ms, initial_ms)
    if max_attempts is not None:
        max_retries = max_attempts - 1
    return RetryPolicy(
        max_retries=default.max_retries if max_retries is None else max_retries,
        max_duration_ms=duration_ms or default.max_duration_ms,
        initial_interval_ms=initial_ms,
        backoff_multiplier=(
            table.read("backoff_multiplier", number(1, 100)) or default.backoff_multiplier
        ),
        max_interval_ms=longest_ms,
    )


class _Table:
    """The members of one table, read on demand; what cannot be read becomes a problem."""

    def __init__(
        self, place: str, prefix: str, members: Mapping[str, object], problems: list[str]
    ) -> None:
        self._place = place
        self._prefix = prefix
        self._members = members
        self._problems = problems

    def has_other_than(self, name: str) -> bool:
        return bool(self._members.keys() - {name})

    def refuse_others(self, known: tuple[str, ...]) -> None:
        for name in self._members:
            if name not in known:
                self._problem(f"{name!r} is not known{suggestion(name, known)}")

    def refuse_both(self, name: str, other: str) -> None:
        if name in self._members and other in self._members:
            self._problem(f"{name} and {other} mean the same: give one of them")

    def table(self, name: str) -> "_Table | None":
        value = self._members.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            self._problem(f"{name} must be a table, as {name} = {{ max_retries = 5 }}")
            return None
        return _Table(self._place, f"{self._prefix}{name}.", value, self._problems)

    def read(self, name: str, reader: Callable[[str], ValueT]) -> ValueT | None:
        """Numbers and texts are read alike, as they are elsewhere in the file."""
        value = self._members.get(name)
        if value is None:
            return None
        try:
            if not isinstance(value, str | int | float) or isinstance(value, bool):
                raise ValueError("a text or a number")
            return reader(str(value))
        except ValueError as error:
            shown = shortened(str(value))
            self._problem(f"{name}={shown!r} must be {str(error).removeprefix('must be ')}")
        return None

    def _problem(self, text: str) -> None:
        self._problems.append(f"{self._place}: {self._prefix}{text}")


def _retention(text: str) -> int:
    seconds = parse_retention_seconds(text)
    if seconds > 36_500 * 86_400:
        raise ValueError("at most 36500d")
    return seconds


def _duration_ms(text: str) -> int:
    duration_ms = parse_duration_ms(text)
    if duration_ms == 0:
        raise ValueError("longer than nothing")
    return duration_ms
