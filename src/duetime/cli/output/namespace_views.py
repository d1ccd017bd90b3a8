"""Namespaces as tables and fields for a person."""

from collections.abc import Sequence

from msgspec import UNSET
from msgspec.structs import asdict
from rich.text import Text

from duetime.cli.client.answers import Namespace, RetryPolicy, SloStatus
from duetime.cli.output.columns import Column, Cut
from duetime.cli.output.layout import print_fields, print_table
from duetime.cli.terminal import console, printable
from duetime.domain.lateness.objective import LOW_BUDGET

_NETWORKS = "callback networks"
_SLO = "slo"
_BUDGET = "error budget left"

_COLUMNS = (
    # The other commands need the whole name.
    *("name", Column("shards", extra=7), Column("retention", extra=3)),
    *(Column("concurrency", extra=2), Column("payload limit", extra=4)),
    Column("pending limit", extra=5),
    Column(_SLO, Cut.WRAP, least=14, enough=28, extra=1, hidden_if_empty=True),
    Column(_BUDGET, Cut.WRAP, least=12, enough=17, hidden_if_empty=True),
    Column(_NETWORKS, Cut.END, least=len(_NETWORKS), enough=24, extra=1, hidden_if_empty=True),
    Column("retries", Cut.WRAP, least=20, enough=24, extra=6),
)


def print_namespaces(namespaces: Sequence[Namespace]) -> None:
    rows = [
        # A terminal shows these columns only if a namespace has something there.
        _fields(each)
        | {
            _SLO: Text(printable(each.slo or "-")),
            _BUDGET: Text("-") if each.slo_status is None else _budget(each.slo_status),
            _NETWORKS: Text(printable(each.callback_networks or "-")),
        }
        for each in namespaces
    ]
    if rows and print_table(_COLUMNS, [list(fields.values()) for fields in rows]):
        hint = "shortened to fit; duetime namespaces show NAME shows all"
        console().print(Text(hint, style="dim"), soft_wrap=True)


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
        _SLO: _text_or("none", namespace.slo),
        _BUDGET: (
            Text("-", style="dim")
            if namespace.slo_status is None
            else _budget(namespace.slo_status)
        ),
        _NETWORKS: _text_or("as the service", namespace.callback_networks),
        "retries": Text(_retries(namespace.retry_policy)),
    }


def _budget(status: SloStatus) -> Text:
    """The share that is left, with the attempts that it was measured by."""
    left = status.error_budget_left
    style = "red" if left < 0 else "yellow" if left < LOW_BUDGET else "green"
    late = f" ({status.late:,} of {status.attempts:,} late)" if status.attempts else ""
    return Text.assemble((f"{left:.1%}", style), late)


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
