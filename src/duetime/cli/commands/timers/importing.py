"""`duetime import`: create the timers in a file."""

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from io import BufferedReader
from pathlib import Path
from typing import Annotated, cast

import typer
from msgspec import UNSET
from msgspec.structs import asdict
from rich.text import Text

from duetime.cli.client.answers import ImportSummary, LineError, Restored
from duetime.cli.client.v1 import Query, V1Client
from duetime.cli.commands.options import ApiKeyOption, JsonOption, QuietOption, ServerOption
from duetime.cli.output.columns import Column, Cut
from duetime.cli.output.layout import print_fields, print_table
from duetime.cli.output.progress import Progress, progress_on_stderr
from duetime.cli.output.timer_views import print_json
from duetime.cli.terminal import ExitCode, fail, printable, refuse
from duetime.clock import SystemClock
from duetime.domain.wording import counted, span

CHUNK_BYTES = 128 * 1024
STALL_SECONDS = 60.0
"""Time without any progress after which the server is given up."""

SHOWN_ERRORS = 10
_ERROR_COLUMNS = (
    "line",
    Column("id", Cut.APART, least=12, enough=24),
    Column("problem", Cut.WRAP, least=30, enough=40),
)


def import_timers(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="File with one JSON object per line; - is stdin.")
    ],
    namespace: Annotated[
        str | None, typer.Option(metavar="NAME", help="Namespace of lines without one [default].")
    ] = None,
    quiet: QuietOption = False,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create or restore the timers in a file of any length.

    Each line is the body of a `POST /api/v1/timers`, as `duetime export` writes it. Timers whose
    instants have passed are due at once. An import may be repeated: timers that already exist are
    recognised by their ids. The exit status is 1 if a line was invalid or in conflict with an
    existing timer.

    The lines of `duetime export --full` restore namespaces, and timers with their status and
    attempts. A timer that was executing becomes pending, so its attempt may be made twice.

    Examples:

    * `duetime import timers.ndjson --namespace orders`
    * `zcat timers.ndjson.gz | duetime import -`
    """
    query = {} if namespace is None else {"namespace": namespace}
    clock = SystemClock()
    with _opened(file) as source:
        client = V1Client(server, api_key)
        # Report a wrong key or namespace now, not after everything was sent.
        client.request("GET", "/timers", query={"limit": 1, **query})
        started_at = clock.monotonic()
        document = _send(client, source, query, _size_of(file), quiet)
    summary = client.read_as(ImportSummary, document)
    if as_json:
        print_json(document)
    else:
        _print_summary(summary, took_ms=(clock.monotonic() - started_at) * 1_000)
    if summary.conflicts or summary.invalid:
        raise typer.Exit(ExitCode.FAILED)


def _opened(file: str) -> "BufferedReader | nullcontext[BufferedReader]":
    if file == "-":
        return nullcontext(cast(BufferedReader, sys.stdin.buffer))
    try:
        return Path(file).open("rb")
    except OSError as error:
        refuse("FILE", f"{printable(file)}: {error.strerror}")


def _size_of(file: str) -> int | None:
    """The size of a regular file; None for a pipe or a device."""
    path = Path(file)
    return path.stat().st_size if file != "-" and path.is_file() else None


def _send(
    client: V1Client, source: BufferedReader, query: Query, size: int | None, quiet: bool
) -> object:
    with progress_on_stderr("sent", total_bytes=size, quiet=quiet, noun="line") as progress:
        chunks = FileChunks(source, progress)
        try:
            return client.upload("/timers/import", chunks, query=query, stall_seconds=STALL_SECONDS)
        except KeyboardInterrupt:
            fail(f"interrupted; {_how_to_resume(chunks)}", ExitCode.FAILED)
        except typer.Exit:
            print(_how_to_resume(chunks), file=sys.stderr, flush=True)
            raise


def _how_to_resume(chunks: "FileChunks") -> str:
    return (
        f"about {chunks.lines:,} lines were sent; to resume, run the same command again: "
        "timers that were already created are recognised by their ids"
    )


class FileChunks:
    """The file in chunks, only one of which is in memory."""

    def __init__(self, source: BufferedReader, progress: Progress) -> None:
        self.lines = 0
        self._source = source
        self._progress = progress

    def __iter__(self) -> Iterator[bytes]:
        while chunk := _read(self._source):
            yield chunk
            self.lines += chunk.count(b"\n")
            self._progress.advance(len(chunk), self.lines)


def _read(source: BufferedReader) -> bytes:
    try:
        return source.read1(CHUNK_BYTES)
    except OSError as error:
        fail(f"FILE: cannot read further: {error.strerror}", ExitCode.FAILED)


def _print_summary(summary: ImportSummary, took_ms: float) -> None:
    print(f"{counted(summary.lines, 'line')} read in {span(took_ms)}.")
    counts = {
        "created": summary.created,
        "existing": summary.existing,
        "conflicts": summary.conflicts,
        "invalid": summary.invalid,
    }
    fields = [(name, Text(f"{count:,}")) for name, count in counts.items()]
    if summary.restored is not UNSET:
        fields.append(("restored", Text(_in_words(summary.restored, summary))))
    print_fields(fields)
    shown = summary.errors[:SHOWN_ERRORS]
    if shown:
        print()
        print_table(_ERROR_COLUMNS, list(map(_row, shown)))
    refused = summary.conflicts + summary.invalid
    if refused > len(shown):
        listed = len(summary.errors)
        which = "all of them" if listed == refused else f"the first {listed:,}"
        print(f"and {refused - len(shown):,} more; --json shows {which}")


def _in_words(restored: Restored, summary: ImportSummary) -> str:
    """Such as "2 namespaces, 10 pending and 3 failed timers"."""
    namespaces = counted(restored.namespaces, "namespace")
    by_status = asdict(restored.timers)
    counts = [f"{count:,} {status}" for status, count in by_status.items() if count]
    if not counts:
        is_repeat = summary.existing and not (summary.conflicts or summary.invalid)
        return _repeat_in_words(restored, summary) if is_repeat else f"{namespaces}, no timers"
    *others, last = counts
    listed = f"{', '.join(others)} and {last}" if others else last
    return f"{namespaces}, {listed} {'timer' if sum(by_status.values()) == 1 else 'timers'}"


def _repeat_in_words(restored: Restored, summary: ImportSummary) -> str:
    there = restored.existing_namespaces
    new = restored.namespaces - there
    restored_now = f"{counted(new, 'namespace')};" if new else "nothing:"
    namespaces = f"{counted(there, 'namespace')} and " if there else ""
    timers = counted(summary.existing, "timer")
    return f"{restored_now} {namespaces}{timers} were there already"


def _row(error: LineError) -> list[Text]:
    id = "" if error.id is UNSET else printable(error.id)
    return [Text(str(error.line)), Text(id), Text(printable(error.message))]
