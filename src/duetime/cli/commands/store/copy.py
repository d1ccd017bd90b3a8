"""`duetime copy`: move everything from one store into another."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from duetime.cli.commands.options import ConfigOption
from duetime.cli.commands.store.access import SERVER_SETTINGS, run_on_store
from duetime.cli.commands.store.copy_sides import (
    URL_FORMS,
    Side,
    opened_sides,
    read_side,
    reading,
    refuse_pair,
)
from duetime.cli.output.copy_views import copy_document, print_copy
from duetime.cli.output.progress import counting_on_stderr
from duetime.cli.output.timer_views import print_json
from duetime.cli.terminal import ExitCode, fail
from duetime.clock import SystemClock
from duetime.stores.copying.ports import DEFAULT_BATCH_ROWS
from duetime.stores.copying.run import CopyReport, compare, run_copy
from duetime.stores.copying.transfer import Advance

MAX_BATCH_ROWS = 100_000


def copy(
    from_url: Annotated[str, typer.Option("--from", metavar="URL", help=f"Source: {URL_FORMS}.")],
    to_url: Annotated[str, typer.Option("--to", metavar="URL", help=f"Empty target: {URL_FORMS}.")],
    from_schema: Annotated[
        str | None, typer.Option(metavar="NAME", help="Schema of the source [PG_SCHEMA].")
    ] = None,
    to_schema: Annotated[
        str | None, typer.Option(metavar="NAME", help="Schema of the target [PG_SCHEMA].")
    ] = None,
    batch: Annotated[
        int, typer.Option(min=1, max=MAX_BATCH_ROWS, help="Timers written in one transaction.")
    ] = DEFAULT_BATCH_ROWS,
    verify_only: Annotated[
        bool, typer.Option("--verify-only", help="Write nothing; compare the two stores.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing if all goes well.")] = False,
    config: ConfigOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Copy all timers, namespaces, keys, secrets, operations and the audit log to another store.

    Stop the service first. The target must be empty; it is migrated by this command. Both sides are
    compared at the end, by counts and checksums. No service starts on the target before they are
    equal. A copy that was interrupted, even by `kill -9`, goes on when the command is run again.

    Passwords need not be in the URLs: `PGPASSWORD` and `~/.pgpass` work as they do for `psql`.

    Examples:

    * `duetime copy --from duetime.db --to postgresql://timers@db.example/timers`
    * `duetime copy --from sqlite:////srv/duetime.db --to postgresql://db.example/timers --json`
    """
    source = read_side("--from", from_url, from_schema, config, SERVER_SETTINGS)
    target = read_side("--to", to_url, to_schema, config, SERVER_SETTINGS)
    refuse_pair(source, target)
    work = _compare(source, target, quiet) if verify_only else _copy(source, target, batch, quiet)
    try:
        report = run_on_store(work)
    except KeyboardInterrupt:
        advice = "" if verify_only else ": run the same command again, and it goes on"
        fail(f"interrupted{advice}", ExitCode.FAILED)
    is_different = report.compared is not None and bool(report.compared.differences)
    if as_json:
        print_json(copy_document(source.name, target.name, report))
    elif is_different or not quiet:
        print_copy(source.name, target.name, report, verify_only=verify_only)
    if is_different:
        raise typer.Exit(ExitCode.FAILED)


async def _copy(source: Side, target: Side, batch: int, quiet: bool) -> CopyReport:
    async with opened_sides(source, target) as sides:
        return await run_copy(sides, SystemClock(), _Showing(quiet), rows=batch)


async def _compare(source: Side, target: Side, quiet: bool) -> CopyReport:
    clock = SystemClock()
    started = clock.monotonic()
    async with reading(source) as ours, reading(target) as theirs:
        timers = await ours.count_timers()
        compared = await compare(ours, theirs, timers, _Showing(quiet))
    took = clock.monotonic() - started
    return CopyReport(timers=timers, compared=compared, compare_seconds=took)


class _Showing:
    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet

    @contextmanager
    def __call__(self, verb: str, timers: int) -> Iterator[Advance]:
        with counting_on_stderr(verb, total=timers, quiet=self._quiet) as progress:
            yield progress.advance
