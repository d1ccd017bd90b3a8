"""The result of a copy between two stores, for people and for programs."""

from collections.abc import Mapping, Sequence

from rich.text import Text

from duetime.cli.output.layout import print_fields
from duetime.cli.terminal import printable
from duetime.domain.timer import TimerStatus
from duetime.domain.wording import counted, span
from duetime.stores.copying.checksums import Checksum, Group, total_of
from duetime.stores.copying.comparison import Difference
from duetime.stores.copying.run import Compared, CopyReport
from duetime.stores.copying.tables import Table

SHOWN_DIFFERENCES = 10


def copy_document(source: str, target: str, report: CopyReport) -> dict[str, object]:
    """The result as JSON. The field names are documented, and must not change."""
    document: dict[str, object] = {
        "source": source,
        "target": target,
        "timers": report.timers,
        "copied": report.copied,
        "resumed_at": report.resumed_at,
        "already_finished": report.compared is None,
        "copy_ms": round(report.copy_seconds * 1_000),
        "compare_ms": round(report.compare_seconds * 1_000),
    }
    compared = report.compared
    if compared is None:
        return document
    return document | {
        "equal": not compared.differences,
        "checksum": _hex(total_of(compared.checksums.values())),
        "counts": _counts(compared.checksums),
        "rows": _rows(compared.checksums),
        "differences": [_difference(each) for each in compared.differences],
        "examples": compared.examples,
    }


def print_copy(source: str, target: str, report: CopyReport, *, verify_only: bool) -> None:
    compared = report.compared
    names = f"{printable(source)} to {printable(target)}"
    if compared is None:
        print(f"Copied {names} already, {counted(report.timers, 'timer')}: there is nothing to do.")
        return
    if compared.differences:
        _print_differences(source, target, compared)
        print(_advice(compared, verify_only=verify_only))
        return
    compare_ms = report.compare_seconds * 1_000
    if verify_only:
        print(f"{printable(source)} and {printable(target)} are equal, compared in", end=" ")
        print(f"{span(compare_ms)}.")
    else:
        rate = report.copied / max(report.copy_seconds, 0.001)
        print(f"Copied {names}.")
        before = f" after {report.resumed_at:,} of an earlier run" if report.resumed_at else ""
        print(
            f"{counted(report.copied, 'timer')}{before} in {span(report.copy_seconds * 1_000)}"
            f" ({rate:,.0f}/s), compared in {span(compare_ms)}: both sides are equal."
        )
    fields = [*_counts(compared.checksums).items(), *_rows(compared.checksums).items()]
    print_fields(
        [
            *((name, Text(f"{count:,}")) for name, count in fields),
            ("checksum", Text(_hex(total_of(compared.checksums.values())))),
        ]
    )
    if not verify_only:
        print(
            "Start the service on the target with the same ENCRYPTION_KEYS and settings. Do not"
            " start it on the source again: both would fire the same timers."
        )


def _print_differences(source: str, target: str, compared: Compared) -> None:
    print(f"{printable(source)} and {printable(target)} differ:")
    for each in compared.differences[:SHOWN_DIFFERENCES]:
        rows = (
            f"{counted(each.source.rows, 'row')} in the source, {each.target.rows:,} in the target"
        )
        sums = "" if each.source.total == each.target.total else ", checksums differ"
        print(f"  {_name(each.group)}: {rows}{sums}")
    more = len(compared.differences) - SHOWN_DIFFERENCES
    if more > 0:
        print(f"  and {more} more")
    for name in compared.examples:
        print(f"  such as {printable(name)}")


def _advice(compared: Compared, *, verify_only: bool) -> str:
    if not verify_only:
        return "No service starts on an unfinished copy. Begin again with an empty target."
    if any(each.group.table is Table.SHARDS for each in compared.differences):
        return (
            "Every start of a service changes the shards. If one of these stores is a copy of the"
            " other, a service has run on one of them since, and differences are to be expected."
        )
    return "Nothing was changed. A new copy needs an empty target."


def _difference(difference: Difference) -> dict[str, object]:
    group = difference.group
    return {
        "table": group.table,
        "namespace": group.namespace,
        "status": None if group.status is None else TimerStatus(group.status).label,
        "source": {"count": difference.source.rows, "checksum": _hex(difference.source)},
        "target": {"count": difference.target.rows, "checksum": _hex(difference.target)},
    }


def _name(group: Group) -> str:
    if group.namespace is None or group.status is None:
        return group.table
    return f"{printable(group.namespace)}, {TimerStatus(group.status).label}"


def _counts(checksums: Mapping[Group, Checksum]) -> dict[str, int]:
    """The timers of each status."""
    return {
        status.label: sum(each.rows for group, each in checksums.items() if group.status == status)
        for status in TimerStatus
    }


def _rows(checksums: Mapping[Group, Checksum]) -> dict[str, int]:
    """The rows of each other table."""
    others: Sequence[Table] = [table for table in Table if table is not Table.TIMERS]
    return {table: checksums.get(Group(table), Checksum(0, 0)).rows for table in others}


def _hex(checksum: Checksum) -> str:
    return f"{checksum.total:016x}"
