"""`duetime audit`: whether every timer is where it should be."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace
from rich.console import Console

from duetime.cli.accepted_keys import AcceptedCheck, check_accepted, read_keys
from duetime.cli.liveness import findings_of_silence, look_twice
from duetime.cli.options import ConfigOption
from duetime.cli.output.audit_views import audit_document, print_audit
from duetime.cli.output.terminal import ExitCode, fail
from duetime.cli.output.views import print_json
from duetime.cli.store_access import (
    inspector_of,
    opened,
    run_on_store,
    store_settings,
)
from duetime.clock import SystemClock
from duetime.domain.keys import TimerKey
from duetime.ports.inspection import AuditReport, StoreInspector
from duetime.settings import MemoryStoreSettings, PostgresStoreSettings, Settings


def audit(
    accepted: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Timers that must be there: an id in each line."),
    ] = None,
    config: ConfigOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Check the books: every timer ever accepted is in exactly one state.

    Reads the store that `serve` would use, beside the service or without it, and changes nothing.
    Takes seconds per million timers. The exit status is 0 if all is well, 1 if something is
    wrong, 3 if the store cannot be reached.

    Examples:

    * `duetime audit`
    * `duetime audit --accepted ids.txt --json`
    """
    keys = None if accepted is None else read_keys(accepted)
    settings = store_settings(config)
    store = settings.store
    if isinstance(store, MemoryStoreSettings):
        fail("timers are kept in memory: only their own process sees them", ExitCode.USAGE)
    with _at_work():
        report, check = run_on_store(_audit(inspector_of(store, settings), keys, settings))
    if as_json:
        print_json(audit_document(report, check))
    else:
        print_audit(report, check)
    if report.findings or (check is not None and not check.is_clean):
        raise typer.Exit(ExitCode.FAILED)


async def _audit(
    inspector: StoreInspector, keys: list[TimerKey] | None, settings: Settings
) -> tuple[AuditReport, AcceptedCheck | None]:
    async with opened(inspector):
        report = await inspector.audit(SystemClock().now())
        if report.overdue and isinstance(settings.store, PostgresStoreSettings):
            facts, silent = await look_twice(inspector, settings.lease_seconds)
            silence = findings_of_silence(facts, silent)
            report = replace(report, findings=[*report.findings, *silence])
        return report, None if keys is None else await check_accepted(inspector, keys)


@contextlib.contextmanager
def _at_work() -> Iterator[None]:
    """Something that moves, for whoever waits in front of a terminal."""
    with contextlib.ExitStack() as stack:
        if sys.stderr.isatty():
            stack.enter_context(Console(stderr=True).status("Reading every timer ..."))
        yield
