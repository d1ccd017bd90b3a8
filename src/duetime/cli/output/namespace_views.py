"""Namespaces as tables and fields for a person."""

from collections.abc import Sequence

from msgspec import UNSET
from msgspec.structs import asdict
from rich.text import Text

from duetime.cli.client.answers import Namespace, RetryPolicy
from duetime.cli.output.columns import Column, Cut
from duetime.cli.output.layout import print_fields, print_table
from duetime.cli.terminal import console, printable

_NETWORKS = "callback networks"
_COLUMNS = (
    # The other commands need the whole name.
    *("name", Column("shards", extra=2), Column("retention", extra=5)),
    *(Column("concurrency", extra=4), Column("payload limit", extra=6)),
    Column("pending limit", extra=7),
    Column(_NETWORKS, Cut.END, least=len(_NETWORKS), enough=24, extra=1, hidden_if_empty=True),
    Column("retries", Cut.WRAP, least=20, enough=24, extra=3),
)


def print_namespaces(namespaces: Sequence[Namespace]) -> None:
    rows = [
        # A terminal shows the column only if a namespace has a list.
        _fields(each) | {_NETWORKS: Text(printable(each.callback_networks or "-"))}
        for each in namespaces
    ]
    if rows:
        print_table(_COLUMNS, [list(fields.values()) for fields in rows])


def print_namespace(headline: str, namespace: Namespace) -> None:
    """The options of a namespace, and the number of its timers by status."""
    fields = _fields(namespace)
    if namespace.counts is not UNSET:
        fields |= {status: Text(f"{n:,}") for status, n in asdict(namespace.counts).items()}
    if headline:
        console().print(headline)
    print_fields(list(fields.items()))


def _fields(namespace: Namespace) -> dict[str, Text]:
    limit = namespace.max_payload_bytes
    return {
        "name": Text.assemble(
            printable(namespace.name), (" (being deleted)" if namespace.deleting else "", "red")
        ),
        "shards": Text(f"{namespace.num_shards:,}"),
        "retention": (
            Text("forever")
            if namespace.retention == "0s"
            else _text_or("as the service", namespace.retention)
        ),
        "concurrency": _text_or("no limit", namespace.concurrency),
        "payload limit": _text_or("as the service", limit and f"{limit:,} bytes"),
        "pending limit": _text_or("no limit", namespace.max_pending),
        _NETWORKS: _text_or("as the service", namespace.callback_networks),
        "retries": Text(_retries(namespace.retry_policy)),
    }


def _retries(policy: RetryPolicy) -> str:
    if policy.max_retries == 0:
        return "none"
    return printable(
        f"{policy.max_retries} within {policy.max_retry_attempts_duration}, after "
        f"{policy.initial_interval} x {policy.backoff_multiplier:g} up to {policy.max_interval}"
    )


def _text_or(otherwise: str, value: int | str | None) -> Text:
    if value is None:
        return Text(otherwise, style="dim")
    return Text(f"{value:,}" if isinstance(value, int) else printable(value))
