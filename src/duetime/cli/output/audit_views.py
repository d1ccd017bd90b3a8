"""The report of an audit, for people and for programs."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.text import Text

from duetime.cli.output.layout import print_fields, print_table
from duetime.cli.terminal import console, printable
from duetime.domain.keys import TimerKey
from duetime.ports.inspection import AuditFinding, AuditReport


@dataclass(slots=True)
class AcceptedCheck:
    """The result of looking up the timers that `--accepted` names."""

    keys: int = 0
    missing: list[TimerKey] = field(default_factory=list)
    in_several_states: list[TimerKey] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not self.missing and not self.in_several_states


def audit_document(report: AuditReport, check: AcceptedCheck | None) -> dict[str, object]:
    """The report as JSON. The field names are documented, and must not change."""
    document: dict[str, object] = {
        "accepted": report.accepted,
        "forgotten": report.forgotten,
        "counts": {status.label: count for status, count in report.counts.items()},
        "overdue": report.overdue,
        "findings": report.findings,
    }
    if check is not None:
        document["checked"] = {
            "keys": check.keys,
            "missing": [_name(key) for key in check.missing],
            "in_several_states": [_name(key) for key in check.in_several_states],
        }
    return document


def print_audit(store: str, report: AuditReport, check: AcceptedCheck | None) -> None:
    fields = [("accepted", report.accepted), ("forgotten", report.forgotten)]
    fields += [(status.label, count) for status, count in report.counts.items()]
    fields.append(("overdue", report.overdue))
    if check is not None:
        fields += [("checked", check.keys), ("missing", len(check.missing))]
        fields.append(("in several states", len(check.in_several_states)))
    numbers = [(name, Text(f"{number:,}")) for name, number in fields]
    print_fields([("store", Text(printable(store))), *numbers])
    if check is not None:
        for words, keys in (
            ("missing", check.missing),
            ("in several states", check.in_several_states),
        ):
            for key in keys:
                console().print(
                    Text(f"{words}: {printable(_name(key))}", style="red"), soft_wrap=True
                )
    if report.findings:
        _print_findings(report.findings)
    elif check is None or check.is_clean:
        console().print(
            Text("Every timer that was accepted is in exactly one state.", style="green")
        )


def _print_findings(findings: Sequence[AuditFinding]) -> None:
    """One below the other on a terminal, because problems are sentences; else a table."""
    headings = ("problem", "timers", "for example")
    rows = [
        (
            Text(printable(finding.problem), style="red"),
            Text(f"{finding.count:,}"),
            Text(printable(", ".join(finding.examples)) or "-"),
        )
        for finding in findings
    ]
    output = console()
    output.print()
    if not output.is_terminal:
        print_table(headings, rows)
        return
    for number, row in enumerate(rows):
        if number:
            output.print()
        print_fields(list(zip(headings, row, strict=True)))


def _name(key: TimerKey) -> str:
    return f"{key.namespace}/{key.id}"
