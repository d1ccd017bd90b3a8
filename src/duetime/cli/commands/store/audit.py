"""`duetime audit`: check that every accepted timer is in exactly one state."""

import contextlib
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace
from rich.console import Console

from duetime.cli.commands.options import ConfigOption
from duetime.cli.commands.store.access import (
    inspector_of,
    opened,
    require_file,
    run_on_store,
    store_name,
    store_settings,
)
from duetime.cli.commands.store.liveness import can_tell, findings_of_silence, look_twice
from duetime.cli.output.audit_views import AcceptedCheck, audit_document, print_audit
from duetime.cli.output.timer_views import print_json
from duetime.cli.terminal import ExitCode, fail, refuse
from duetime.clock import SystemClock
from duetime.domain.keys import TimerKey
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.ports.inspection import AuditReport, StoreInspector
from duetime.settings import (
    MemoryStoreSettings,
    PostgresStoreSettings,
    Settings,
    SqliteStoreSettings,
)

_BATCH_SIZE = 1_000


def audit(
    accepted: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File of timers that must exist: one id per line."),
    ] = None,
    config: ConfigOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Check that every timer ever accepted is in exactly one state.

    Reads the store that `serve` would use, whether or not the service is running, and changes
    nothing. Takes seconds per million timers. The exit status is 0 if all is well, 1 if something
    is wrong, 3 if the store cannot be reached. (`duetime audit-log` is something else: it shows who
    did what.)

    Examples:

    * `duetime audit`
    * `duetime audit --accepted ids.txt --json`
    """
    keys = None if accepted is None else read_keys(accepted)
    settings = store_settings(config)
    store = settings.store
    if isinstance(store, MemoryStoreSettings):
        fail("timers are kept in memory: only the server itself can see them", ExitCode.USAGE)
    if isinstance(store, SqliteStoreSettings):
        require_file(store.path, "audit")
    with _spinner():
        report, check = run_on_store(_audit(inspector_of(store, settings), keys, settings))
    if as_json:
        print_json(audit_document(report, check))
    else:
        print_audit(store_name(store), report, check)
    if report.findings or (check is not None and not check.is_clean):
        raise typer.Exit(ExitCode.FAILED)


async def _audit(
    inspector: StoreInspector, keys: list[TimerKey] | None, settings: Settings
) -> tuple[AuditReport, AcceptedCheck | None]:
    async with opened(inspector):
        report = await inspector.audit(SystemClock().now())
        is_shared = isinstance(settings.store, PostgresStoreSettings)
        if report.overdue and is_shared and can_tell(settings.lease_seconds):
            facts, silent = await look_twice(inspector, settings.lease_seconds)
            silence = findings_of_silence(facts, silent)
            report = replace(report, findings=[*report.findings, *silence])
        return report, None if keys is None else await check_accepted(inspector, keys)


@contextlib.contextmanager
def _spinner() -> Iterator[None]:
    """A spinner, on a terminal."""
    with contextlib.ExitStack() as stack:
        if sys.stderr.isatty():
            stack.enter_context(Console(stderr=True).status("Reading every timer ..."))
        yield


def read_keys(path: Path) -> list[TimerKey]:
    """The keys in a file: on each line an id in the default namespace, or a namespace, a tab and
    an id."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        refuse("--accepted", f"{path}: {error.strerror}")
    except UnicodeDecodeError:
        refuse("--accepted", f"{path} is not UTF-8")
    return [_key(line) for line in lines if line.strip()]


async def check_accepted(inspector: StoreInspector, keys: list[TimerKey]) -> AcceptedCheck:
    check = AcceptedCheck(len(keys))
    rest = iter(keys)
    while batch := list(islice(rest, _BATCH_SIZE)):
        for key, states in zip(batch, await inspector.states(batch), strict=True):
            if not states:
                check.missing.append(key)
            elif len(states) > 1:
                check.in_several_states.append(key)
    return check


def _key(line: str) -> TimerKey:
    namespace, tab, id = line.partition("\t")
    return TimerKey(namespace, id) if tab else TimerKey(DEFAULT_NAMESPACE, line.strip())
