"""Keys as tables and fields for a person."""

from collections.abc import Sequence

from rich.text import Text

from duetime.cli.client.answers import IssuedKey, Key
from duetime.cli.output.columns import Column, Cut
from duetime.cli.output.layout import print_fields, print_table
from duetime.cli.terminal import console, printable
from duetime.clock import SystemClock
from duetime.domain.instants import Instant, parse_instant
from duetime.domain.wording import relative_text

_COLUMNS = (
    # `rotate` and `revoke` need the whole id.
    *("id", Column("name", Cut.END, least=10, enough=24), "roles"),
    Column("expires", extra=1),
    *(Column("last used", extra=2), Column("limits", extra=4), Column("created", extra=3)),
    Column("namespaces", Cut.WRAP, least=12, enough=24),
)


def print_keys(keys: Sequence[Key]) -> None:
    if not keys:
        print("no keys: only the API_KEY of the settings is accepted")
        return
    now = SystemClock().now()
    print_table(
        _COLUMNS,
        [
            [
                Text(printable(key.id)),
                Text(printable(key.name)),
                Text(printable(", ".join(key.roles))),
                _expiry(key, now),
                Text("never" if key.last_used_at is None else relative_text(key.last_used_at, now)),
                _limits(key),
                Text(relative_text(key.created_at, now)),
                Text(_namespaces(key.namespaces)),
            ]
            for key in keys
        ],
    )


def print_issued_key(issued: IssuedKey) -> None:
    """The key, which cannot be shown again."""
    console().print("Key created. It is shown only now, and kept nowhere: store it safely.")
    print_fields(
        [
            ("key", Text(printable(issued.key), style="bold")),
            ("id", Text(printable(issued.id))),
            ("name", Text(printable(issued.name))),
            ("roles", Text(printable(", ".join(issued.roles)))),
            ("namespaces", Text(_namespaces(issued.namespaces))),
            ("expires", Text(printable(issued.expires_at or "never"))),
            ("limits", _limits(issued)),
        ]
    )


def _namespaces(names: Sequence[str]) -> str:
    return "all" if list(names) == ["*"] else printable(", ".join(names))


def _expiry(key: Key, now: Instant) -> Text:
    if key.expires_at is None:
        return Text("never")
    when = relative_text(key.expires_at, now)
    replaced = "" if key.replaced_by is None else ", rotated"
    try:
        is_over = parse_instant(key.expires_at) <= now
    except ValueError:
        is_over = False
    return Text(printable(when + replaced), style="red" if is_over else "yellow")


def _limits(key: Key | IssuedKey) -> Text:
    limits = []
    if key.rate_limit is not None:
        limits.append(f"{key.rate_limit.per_second:g}/s, bursts of {key.rate_limit.burst:,}")
    if key.max_concurrent is not None:
        limits.append(f"{key.max_concurrent:,} under way")
    return Text("; ".join(limits)) if limits else Text("as the service", style="dim")
