"""The results of a backup and of a restore, for people and for programs."""

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from duetime.cli.output.layout import print_fields
from duetime.cli.output.progress import byte_text
from duetime.cli.terminal import printable
from duetime.domain.instants import Instant, format_instant
from duetime.domain.timer import TimerStatus
from duetime.domain.wording import counted, relative, span
from duetime.ports.inspection import StoreContent


def store_document(database: Path, file: Path, content: StoreContent) -> dict[str, object]:
    """The copy as JSON. The field names are documented, and must not change."""
    last = content.last_change_at
    return {
        "database": str(database.absolute()),
        "file": str(file.absolute()),
        "bytes": content.size_bytes,
        "schema_version": content.schema_version,
        "counts": {status.label: count for status, count in content.counts.items()},
        "overdue": content.overdue,
        "last_change_at": None if last is None else format_instant(last),
        "rows": content.rows,
    }


def restore_document(
    database: Path, file: Path, content: StoreContent, *, is_occupied: bool, dry_run: bool
) -> dict[str, object]:
    document = store_document(database, file, content)
    return document | {"replaces": is_occupied, "dry_run": dry_run}


def print_backup(database: Path, file: Path, content: StoreContent, took_ms: float) -> None:
    size = byte_text(content.size_bytes)
    copied = f"{_name(database.absolute())} to {_name(file)}"
    print(f"Backed up {copied}, {size} in {span(took_ms)}.")
    print_fields(_counts(content))


def print_restore(
    database: Path,
    file: Path,
    content: StoreContent,
    now: Instant,
    *,
    is_occupied: bool,
    dry_run: bool,
) -> None:
    store = _name(database.absolute())
    if dry_run:
        force = " It holds timers, so --force is needed." if is_occupied else ""
        print(f"{_name(file)} is whole. It would become {store}.{force}")
    else:
        print(f"Restored {_name(file)} to {store}.")
    print_fields([*_counts(content), *_age(content, now)])
    executing = content.counts[TimerStatus.EXECUTING]
    if content.overdue:
        print(f"{counted(content.overdue, 'timer')} will fire at once when the service starts.")
    if executing:
        print(f"{counted(executing, 'attempt')} under way at the backup will be repeated.")
    print(
        "Timers that fired after the backup fire again, with the same webhook-id. Timers canceled"
        " since are back, and timers created since are gone."
    )


def _counts(content: StoreContent) -> Sequence[tuple[str, Text]]:
    return [(status.label, Text(f"{count:,}")) for status, count in content.counts.items()]


def _age(content: StoreContent, now: Instant) -> Sequence[tuple[str, Text]]:
    last = content.last_change_at
    changed = "-" if last is None else f"{format_instant(last)} ({relative(last, now)})"
    return [("overdue", Text(f"{content.overdue:,}")), ("last change", Text(changed))]


def _name(path: Path) -> str:
    return printable(str(path))
