"""`duetime backup` and `duetime restore`: a copy of the store, and its way back."""

import contextlib
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from duetime.cli.commands.options import ConfigOption
from duetime.cli.commands.store.access import (
    ending_on_store_errors,
    require_file,
    store_settings,
    without_secrets,
)
from duetime.cli.output.backup_views import (
    print_backup,
    print_restore,
    restore_document,
    store_document,
)
from duetime.cli.output.progress import progress_on_stderr
from duetime.cli.output.timer_views import print_json
from duetime.cli.terminal import ExitCode, fail
from duetime.clock import SystemClock
from duetime.settings import MemoryStoreSettings, PostgresStoreSettings, Settings

JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Print nothing if all goes well.")]

_DUMP = """run this, or pg_basebackup for all of the server:
  pg_dump --format=custom --schema={schema} --file={file} {url}"""

# `pg_restore --clean` drops only what is in the dump, and so fails on tables of a later release.
_LOAD = """stop every node, then run:
  psql --command='ALTER SCHEMA {schema} RENAME TO {schema}_before' {url}  # if it exists
  pg_restore --single-transaction --dbname={url} {file}
Once everything is right: DROP SCHEMA {schema}_before CASCADE"""


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write the copy to.")],
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
    quiet: QuietOption = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy the store to a file, while the service runs or not.

    Copies the SQLite file that `serve` would use, in one consistent state, however much is written
    meanwhile. The copy is checked before it gets its name: FILE is complete, or it does not exist.
    For PostgreSQL the command shows what to use instead.

    Examples:

    * `duetime backup /backups/duetime-monday.db`
    * `duetime backup /backups/latest.db --force --quiet`
    """
    settings = store_settings(config)
    database = _sqlite_file(settings, file, _DUMP)
    require_file(database, f"backup {shlex.quote(str(file))}")
    clock = SystemClock()
    started_at = clock.monotonic()
    with _copying():
        from duetime.stores.sqlite.backup.placing import back_up
        from duetime.stores.sqlite.backup.snapshot import size_of_store

        size = size_of_store(database)
        with progress_on_stderr("copied", total_bytes=size, quiet=quiet) as progress:
            content = back_up(
                database,
                file,
                force=force,
                now=clock.now(),
                advance=progress.advance,
                reserve_bytes=settings.disk_reserve_bytes,
            )
    took_ms = (clock.monotonic() - started_at) * 1_000
    if as_json:
        print_json(store_document(database, file, content) | {"took_ms": round(took_ms)})
    elif not quiet:
        print_backup(database, file, content, took_ms)


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Copy that `backup` made.")],
    force: Annotated[
        bool, typer.Option("--force", help="Replace the store that is there.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; check FILE and show what is in it.")
    ] = False,
    quiet: QuietOption = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a backup the store that `serve` would use.

    Stop the service first. FILE is checked and copied; a crash leaves the old store or the new one,
    whole. Timers that are overdue by then fire at once when the service starts. Timers that fired
    after the backup fire again, with the same `webhook-id`.

    Examples:

    * `duetime restore /backups/duetime-monday.db --dry-run`
    * `duetime restore /backups/duetime-monday.db --force`
    """
    database = _sqlite_file(store_settings(config), file, _LOAD)
    now = SystemClock().now()
    with _copying():
        from duetime.stores.sqlite.backup import placing
        from duetime.stores.sqlite.backup.snapshot import check_store, size_of_store

        is_occupied = placing.is_occupied(database)
        if dry_run:
            content = check_store(file, now)
        else:
            size = size_of_store(file)
            with progress_on_stderr("copied", total_bytes=size, quiet=quiet) as progress:
                content = placing.restore(
                    file, database, force=force, now=now, advance=progress.advance
                )
    if as_json:
        document = restore_document(
            database, file, content, is_occupied=is_occupied, dry_run=dry_run
        )
        print_json(document)
    elif not quiet:
        print_restore(database, file, content, now, is_occupied=is_occupied, dry_run=dry_run)


def _sqlite_file(settings: Settings, file: Path, instead: str) -> Path:
    """The file of the store. Ends the command if the store is not a file."""
    store = settings.store
    if isinstance(store, MemoryStoreSettings):
        fail("timers are kept in memory: there is no file to copy", ExitCode.USAGE)
    if isinstance(store, PostgresStoreSettings):
        advice = instead.format(
            schema=store.schema,
            file=shlex.quote(str(file)),
            url=shlex.quote(without_secrets(store.url)),
        )
        fail(f"timers are kept in PostgreSQL, which has its own tools; {advice}", ExitCode.USAGE)
    return store.path


@contextlib.contextmanager
def _copying() -> Iterator[None]:
    """Ends the command if the copy is refused, fails or is interrupted."""
    try:
        with ending_on_store_errors():
            yield
    except KeyboardInterrupt:
        fail("interrupted: nothing was changed", ExitCode.FAILED)
