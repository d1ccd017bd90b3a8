"""Configured namespaces: one line such as `default,notifications:64`, and tables of the TOML file
such as `[namespaces.notifications]`."""

import re
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from msgspec.structs import replace

from duetime.domain.instants import parse_duration_ms
from duetime.domain.lateness.objective import parse_objective
from duetime.domain.limits import (
    MAX_BACKOFF_MULTIPLIER,
    MAX_KEY_CHARACTERS,
    MAX_NAMESPACE_CONCURRENCY,
    MAX_NAMESPACE_PENDING,
    MAX_PAYLOAD_BYTES,
    MAX_RETENTION_DAYS,
    MAX_RETRIES,
    MAX_SHARDS,
    MIN_BACKOFF_MULTIPLIER,
)
from duetime.domain.namespace import (
    DEFAULT_NAMESPACE,
    ConfiguredNamespace,
    NamespaceOptions,
    parse_retention_seconds,
)
from duetime.domain.retry import RetryPolicy
from duetime.domain.security.callback_networks import CallbackNetworks
from duetime.settings.parsers import number, readable_file, suggestion, whole_number
from duetime.settings.values import ClientCertificate

ValueT = TypeVar("ValueT")

_NAME_AND_SHARDS = re.compile(r"(.*?)\s*:\s*([0-9]+)", re.DOTALL)
_NOT_STORABLE = re.compile(r"[\0\ud800-\udfff]")
_CERTIFICATE_MEMBERS = ("client_certificate", "client_key")
_NO_OPTIONS = ("shards", *_CERTIFICATE_MEMBERS)
_MEMBERS = (
    "retention",
    "concurrency",
    "max_payload_bytes",
    "max_pending",
    "retry_policy",
    "callback_networks",
    "slo",
    *_NO_OPTIONS,
)
_POLICY_MEMBERS = (
    "max_retries",
    "max_attempts",
    "initial_interval",
    "backoff_multiplier",
    "max_interval",
    "max_retry_attempts_duration",
    "max_attempts_duration",
)


def namespace_list(text: str) -> tuple[ConfiguredNamespace, ...]:
    """A name may contain colons: only digits after the last one are a number of shards. Other text
    there must not begin with a digit: it would be a misspelt number."""
    namespaces = tuple(_listed_namespace(item.strip()) for item in text.split(","))
    names = [each.name for each in namespaces]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"a list with each name once: {_shortened(name)!r} is there twice")
    return namespaces


def _listed_namespace(item: str) -> ConfiguredNamespace:
    parts = _NAME_AND_SHARDS.fullmatch(item)
    name, shards = (item, None) if parts is None else parts.groups()
    if not _is_namespace_name(name):
        raise ValueError(
            f"a list such as default,notifications:64 with names of 1 to {MAX_KEY_CHARACTERS} "
            f"characters: {_shortened(name)!r} is not such a name"
        )
    if shards is None:
        ending = item.rpartition(":")[2].lstrip() if ":" in item else ""
        if ending[:1].isdecimal():
            raise ValueError(
                "a list such as default,notifications:64 with a number of shards after the colon: "
                f"{_shortened(ending)!r} of {_shortened(name)!r} is none"
            )
        return ConfiguredNamespace(name)
    if len(shards) > 18 or not 1 <= int(shards) <= MAX_SHARDS:
        raise ValueError(
            f"a list with 1 to {MAX_SHARDS} shards for each name: {_shortened(name)!r} has "
            f"{_shortened(shards)}"
        )
    return ConfiguredNamespace(name, int(shards))


@dataclass(frozen=True, slots=True)
class NamespaceTables:
    """The content of `namespaces` in the TOML file, not checked yet."""

    by_name: Mapping[str, object] = field(default_factory=dict)
    source: str = ""


def merged_namespaces(
    listed: Iterable[ConfiguredNamespace], tables: NamespaceTables, problems: list[str]
) -> tuple[ConfiguredNamespace, ...]:
    """The namespaces of the list in its order, then those that only have a table. `default` is
    always among them: the platform API needs it."""
    namespaces = {each.name: each for each in listed}
    for table in _read_tables(tables, problems):
        in_list = namespaces.get(table.name, table)
        shards = table.num_shards if in_list.num_shards is None else in_list.num_shards
        if table.num_shards not in (None, shards):
            problems.append(
                f"{tables.source}: namespace {_shortened(table.name)!r}: has {table.num_shards} "
                f"shards here and {shards} in NAMESPACES; remove one of them"
            )
        namespaces[table.name] = replace(table, num_shards=shards)
    if DEFAULT_NAMESPACE not in namespaces:
        namespaces = {DEFAULT_NAMESPACE: ConfiguredNamespace(DEFAULT_NAMESPACE), **namespaces}
    return tuple(namespaces.values())


def _read_tables(tables: NamespaceTables, problems: list[str]) -> list[ConfiguredNamespace]:
    """The readable ones of the tables; the others become problems."""
    namespaces = []
    for name, content in tables.by_name.items():
        place = f"{tables.source}: namespace {_shortened(name)!r}"
        if not _is_namespace_name(name):
            problems.append(f"{place}: its name must have 1 to {MAX_KEY_CHARACTERS} characters")
        elif not isinstance(content, dict):
            problems.append(f"{place}: must be a table, as [namespaces.{_shortened(name)}]")
        else:
            namespaces.append(_namespace(name, _Table(place, "", content, problems)))
    return namespaces


def _namespace(name: str, table: "_Table") -> ConfiguredNamespace:
    table.refuse_unknown(_MEMBERS)
    shards = table.read("shards", whole_number(1, MAX_SHARDS))
    options = NamespaceOptions(
        retry_policy=_retry_policy(table),
        retention_seconds=table.read("retention", _retention),
        concurrency=table.read("concurrency", whole_number(1, MAX_NAMESPACE_CONCURRENCY)),
        max_payload_bytes=table.read("max_payload_bytes", whole_number(1, MAX_PAYLOAD_BYTES)),
        max_pending=table.read("max_pending", whole_number(0, MAX_NAMESPACE_PENDING)),
        callback_networks=table.read("callback_networks", _networks),
        slo=table.read("slo", parse_objective),
    )
    # A table without options keeps the options that were set through the API.
    return ConfiguredNamespace(name, shards, options if table.has_other_than(_NO_OPTIONS) else None)


def client_certificates(
    tables: NamespaceTables, problems: list[str]
) -> dict[str, ClientCertificate]:
    """The certificates by namespace. Each is loaded once, so that a file that cannot be used is a
    problem at the start."""
    certificates = {}
    for name, content in tables.by_name.items():
        if isinstance(content, dict):
            place = f"{tables.source}: namespace {_shortened(name)!r}"
            certificate = _client_certificate(_Table(place, "", content, problems))
            if certificate is not None:
                certificates[name] = certificate
    return certificates


def _client_certificate(table: "_Table") -> ClientCertificate | None:
    if not table.requires_all_or_none(_CERTIFICATE_MEMBERS):
        return None
    certificate_file = table.read("client_certificate", readable_file)
    key_file = table.read("client_key", readable_file)
    if certificate_file is None or key_file is None:
        return None
    try:
        # With an empty password an encrypted key is an error, and not a question on the terminal.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_cert_chain(certificate_file, key_file, password="")
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or "NO PEM"
        why = str(reason).replace("_", " ").lower()
        table.problem(
            "client_certificate and client_key must be a certificate in PEM and its key, without "
            f"a password ({why})"
        )
        return None
    return ClientCertificate(certificate_file, key_file)


def _retry_policy(namespace: "_Table") -> RetryPolicy:
    """The policy, completed with defaults. The service checks the ranges of its durations."""
    default = RetryPolicy()
    table = namespace.table("retry_policy")
    if table is None:
        return default
    table.refuse_unknown(_POLICY_MEMBERS)
    table.refuse_both("max_retries", "max_attempts")
    table.refuse_both("max_retry_attempts_duration", "max_attempts_duration")
    max_retries = table.read("max_retries", whole_number(0, MAX_RETRIES))
    max_attempts = table.read("max_attempts", whole_number(1, MAX_RETRIES + 1))
    duration_ms = table.read("max_retry_attempts_duration", _duration_ms)
    duration_ms = table.read("max_attempts_duration", _duration_ms) or duration_ms
    initial_ms = table.read("initial_interval", _duration_ms)
    longest_ms = table.read("max_interval", _duration_ms)
    # When only one interval is given, the default of the other one gives way.
    if initial_ms is None:
        initial_ms = min(default.initial_interval_ms, longest_ms or default.max_interval_ms)
    if longest_ms is None:
        longest_ms = max(default.max_interval_ms, initial_ms)
    if max_attempts is not None:
        max_retries = max_attempts - 1
    multiplier = table.read(
        "backoff_multiplier", number(MIN_BACKOFF_MULTIPLIER, MAX_BACKOFF_MULTIPLIER)
    )
    return RetryPolicy(
        max_retries=default.max_retries if max_retries is None else max_retries,
        max_duration_ms=duration_ms or default.max_duration_ms,
        initial_interval_ms=initial_ms,
        backoff_multiplier=multiplier or default.backoff_multiplier,
        max_interval_ms=longest_ms,
    )


class _Table:
    """The members of one table, read on demand; an unreadable one becomes a problem."""

    def __init__(
        self, place: str, prefix: str, members: Mapping[str, object], problems: list[str]
    ) -> None:
        self._place = place
        self._prefix = prefix
        self._members = members
        self._problems = problems

    def has_other_than(self, names: Iterable[str]) -> bool:
        return bool(self._members.keys() - set(names))

    def refuse_unknown(self, known: tuple[str, ...]) -> None:
        for name in self._members:
            if name not in known:
                self.problem(f"{name!r} is not known{suggestion(name, known)}")

    def refuse_both(self, name: str, other: str) -> None:
        if name in self._members and other in self._members:
            self.problem(f"{name} and {other} mean the same: give one of them")

    def requires_all_or_none(self, names: tuple[str, ...]) -> bool:
        """Whether all are there; some of them without the others are a problem."""
        missing = [name for name in names if name not in self._members]
        if missing and len(missing) < len(names):
            self.problem(f"{missing[0]} is missing: {' and '.join(names)} come together")
        return not missing

    def table(self, name: str) -> "_Table | None":
        value = self._members.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.problem(f"{name} must be a table, as {name} = {{ max_retries = 5 }}")
            return None
        return _Table(self._place, f"{self._prefix}{name}.", value, self._problems)

    def read(self, name: str, parse: Callable[[str], ValueT]) -> ValueT | None:
        """Numbers are parsed from their text, as everywhere in the file."""
        value = self._members.get(name)
        if value is None:
            return None
        try:
            if not isinstance(value, str | int | float) or isinstance(value, bool):
                raise ValueError("a text or a number")
            return parse(str(value))
        except ValueError as error:
            shown = _shortened(str(value))
            self.problem(f"{name}={shown!r} must be {str(error).removeprefix('must be ')}")
        return None

    def problem(self, text: str) -> None:
        self._problems.append(f"{self._place}: {self._prefix}{text}")


def _retention(text: str) -> int:
    seconds = parse_retention_seconds(text)
    if seconds > MAX_RETENTION_DAYS * 86_400:
        raise ValueError(f"at most {MAX_RETENTION_DAYS}d")
    return seconds


def _networks(text: str) -> str:
    return CallbackNetworks.parse(text).text


def _duration_ms(text: str) -> int:
    duration_ms = parse_duration_ms(text)
    if duration_ms == 0:
        raise ValueError("longer than nothing")
    return duration_ms


def _is_namespace_name(name: str) -> bool:
    """Whether every store can hold the name, and read it back."""
    return 1 <= len(name) <= MAX_KEY_CHARACTERS and not _NOT_STORABLE.search(name)


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
