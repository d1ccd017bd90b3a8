"""`duetime export`: write timers to a file that can be imported."""

import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Raw, Struct

from duetime.cli.client.export_lines import (
    NamespaceMembers,
    Page,
    create_line,
    full_line,
    full_namespace_line,
    hides_secrets,
)
from duetime.cli.client.v1 import Query, V1Client, path_segment
from duetime.cli.commands.options import (
    ApiKeyOption,
    DueAfterOption,
    DueBeforeOption,
    QuietOption,
    ServerOption,
    WithSecretsOption,
    read_due_range,
    read_secrets,
)
from duetime.cli.commands.timers.bulk import AllNamespacesOption
from duetime.cli.output.progress import Progress, progress_on_stderr
from duetime.cli.terminal import ExitCode, fail, printable, refuse
from duetime.domain.limits import MAX_V1_PAGE_TIMERS
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.domain.wording import counted

Write = Callable[[bytes], object]


class ExportedStatus(StrEnum):
    PENDING = "pending"
    EXECUTING = "executing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    ALL = "all"


class Exported(Struct):
    """Counts of the timers that were written, of those among them without their secrets, of those
    that have no line, and of those that the server could not read."""

    written: int = 0
    redacted: int = 0
    left_out: int = 0
    unreadable: int = 0


def export(
    namespace: Annotated[
        str | None, typer.Option(metavar="NAME", help="Namespace to export [default].")
    ] = None,
    all_namespaces: AllNamespacesOption = False,
    status: Annotated[
        ExportedStatus | None,
        typer.Option(help="Only timers with this status [pending; all with `--full`]."),
    ] = None,
    due_after: DueAfterOption = None,
    due_before: DueBeforeOption = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write to this file, all or nothing [stdout]."),
    ] = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="Write timers with their whole state, and their namespaces."),
    ] = False,
    with_secrets: WithSecretsOption = False,
    quiet: QuietOption = False,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
) -> None:
    """Write timers as one JSON object per line, ordered by due instant.

    The command covers one namespace, `default` if none is given, or all of them one after the other
    with `--all-namespaces`. Standard error says which.

    `duetime import` accepts the lines, and creates the timers as new ones. Timers whose callbacks
    are not made over HTTP cannot be created so: they are left out and counted on standard error,
    and the exit status is 1. The same holds for timers that the server cannot read.

    With `--full` the lines have the whole state: status, attempts, errors and what recognises
    repeats, of timers of every kind, and the namespaces with their options. `duetime import`
    restores all of that.

    Secrets in headers and URLs are written as `[redacted]`, and standard error says so. Such lines
    can be imported only where the same timers exist, which keep their secrets. Use `--with-secrets`
    to take timers to another server, and keep the file as secret as these are.

    Examples:

    * `duetime export --namespace orders --with-secrets --output orders.ndjson`
    * `duetime export --all-namespaces --full --with-secrets --output copy.ndjson`
    """
    if all_namespaces and namespace is not None:
        refuse("--namespace / --all-namespaces", "give one of them, not both")
    query: dict[str, str | int] = {"limit": MAX_V1_PAGE_TIMERS}
    query |= read_due_range(due_after, due_before) | read_secrets(with_secrets)
    if status is None:
        status = ExportedStatus.ALL if full else ExportedStatus.PENDING
    if status is not ExportedStatus.ALL:
        query["status"] = status.value
    client = V1Client(server, api_key)
    with (
        _destination(output) as write,
        progress_on_stderr("exported", total_bytes=None, quiet=quiet) as progress,
        client.kept_open(),
    ):
        names, lines = _namespaces(client, namespace, all_namespaces, full)
        write(lines)
        exported = Exported()
        for name in names:
            _export(client, {"namespace": name, **query}, write, progress, exported, full=full)
    if not quiet:
        covered = f"all {counted(len(names), 'namespace')}"
        if not all_namespaces:
            covered = f"namespace {printable(repr(names[0]))}"
        if namespace is None and not all_namespaces:
            covered += " (--all-namespaces exports the others too)"
        print(f"exported {counted(exported.written, 'timer')} of {covered}", file=sys.stderr)
    if exported.redacted:
        print(
            f"without the secrets of {counted(exported.redacted, 'timer')}: another server needs "
            "an export with --with-secrets",
            file=sys.stderr,
        )
    if problems := _problems(exported):
        fail("\n".join(problems), ExitCode.FAILED)


def _problems(exported: Exported) -> list[str]:
    problems = []
    if exported.left_out:
        problems.append(
            f"left out {counted(exported.left_out, 'timer')} whose callbacks are not made over "
            "HTTP: only an export with --full has them"
        )
    if exported.unreadable:
        problems.append(
            f"incomplete: {counted(exported.unreadable, 'timer')} could not be read by the server; "
            "`duetime audit` says which"
        )
    return problems


def _namespaces(
    client: V1Client, namespace: str | None, all_namespaces: bool, full: bool
) -> tuple[Sequence[str], bytes]:
    """The names of the namespaces to export, and the lines that restore these namespaces."""
    if all_namespaces:
        found = client.read_as(NamespaceMembers, client.fetch("/namespaces")).namespaces
    elif full:
        path = "/namespaces/" + path_segment("--namespace", namespace or DEFAULT_NAMESPACE)
        found = [client.read_as(dict[str, Raw], client.fetch(path))]
    else:
        return [namespace or DEFAULT_NAMESPACE], b""
    names = [client.read_as(str, bytes(members["name"])) for members in found]
    return names, b"".join(map(full_namespace_line, found)) if full else b""


def _export(
    client: V1Client,
    query: Query,
    write: Write,
    progress: Progress,
    exported: Exported,
    *,
    full: bool,
) -> None:
    path, to_line = ("/timers/export", full_line) if full else ("/timers", create_line)
    cursor: str | None = ""
    while cursor is not None:
        page_query = {**query, "cursor": cursor} if cursor else query
        page = client.read_as(Page, client.fetch(path, query=page_query))
        lines = [line for timer in page.timers if (line := to_line(timer)) is not None]
        exported.redacted += sum(map(hides_secrets, page.timers))
        written = b"".join(lines)
        write(written)
        exported.written += len(lines)
        exported.left_out += len(page.timers) - len(lines)
        exported.unreadable += page.unreadable
        progress.advance(len(written), exported.written)
        cursor = page.next_cursor


@contextmanager
def _destination(output: Path | None) -> Iterator[Write]:
    """The function that writes lines to the output. A file is created or replaced only once it is
    complete; a failure before that leaves nothing behind. Headers and payloads may hold secrets, so
    only the owner can read a new file; a replaced file keeps its mode."""
    if output is None or str(output) == "-":
        with _standard_output() as write:
            yield write
        return
    target = output.resolve()
    # A device or a pipe is written to directly: it cannot be replaced.
    replaces = target.is_file() or not target.exists()
    path = target.with_name(f".{target.name}.{os.getpid()}.partial") if replaces else target
    try:
        file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")
        if replaces and target.exists():
            os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
    except OSError as error:
        refuse("--output", f"{printable(str(output))}: {error.strerror}")
    try:
        with file:
            yield file.write
            file.flush()
            if replaces:
                os.fsync(file.fileno())
                path.replace(target)
    except BaseException as error:
        if replaces:
            path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            fail(f"{printable(str(output))}: {error.strerror}", ExitCode.FAILED)
        raise


@contextmanager
def _standard_output() -> Iterator[Write]:
    try:
        yield sys.stdout.buffer.write
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough.
        _discard_standard_output()
        raise typer.Exit(ExitCode.FAILED) from None
    except OSError as error:
        _discard_standard_output()
        fail(f"standard output: {error.strerror}", ExitCode.FAILED)


def _discard_standard_output() -> None:
    """Point standard output at the null device, so that the flush at exit cannot fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
