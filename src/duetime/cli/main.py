"""The `duetime` command and its list of subcommands."""

import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from duetime import __version__
from duetime.cli.commands.audit import audit
from duetime.cli.commands.bus import bus
from duetime.cli.commands.cancel import cancel
from duetime.cli.commands.cluster import cluster
from duetime.cli.commands.create import create
from duetime.cli.commands.dev import dev
from duetime.cli.commands.endpoints import endpoints
from duetime.cli.commands.export import export
from duetime.cli.commands.get import get
from duetime.cli.commands.health import health
from duetime.cli.commands.importing import import_timers
from duetime.cli.commands.list import list_timers
from duetime.cli.commands.listen import listen
from duetime.cli.commands.migrate import migrate
from duetime.cli.commands.namespaces import namespaces
from duetime.cli.commands.redrive import redrive
from duetime.cli.commands.serve import serve
from duetime.cli.commands.update import update

app = typer.Typer(
    name="duetime",
    help="Durable timers: register a callback for an instant, and it is made.",
    epilog="Start with: duetime dev",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)

_RUN = "Run"
_TIMERS = "Timers (talk to a running server)"
_BUS = "Message bus (talk to the broker)"
_STORE = "Store (read it directly, with the settings of serve)"

app.command(rich_help_panel=_RUN)(dev)
app.command(rich_help_panel=_RUN)(serve)
app.command(rich_help_panel=_RUN)(listen)
app.command(rich_help_panel=_TIMERS)(create)
app.command(rich_help_panel=_TIMERS)(get)
app.command("list", rich_help_panel=_TIMERS)(list_timers)
app.command(rich_help_panel=_TIMERS)(update)
app.command(rich_help_panel=_TIMERS)(cancel)
app.command(rich_help_panel=_TIMERS)(redrive)
app.command("import", rich_help_panel=_TIMERS)(import_timers)
app.command(rich_help_panel=_TIMERS)(export)
app.add_typer(namespaces, name="namespaces", rich_help_panel=_TIMERS)
app.command(rich_help_panel=_TIMERS)(endpoints)
app.command(rich_help_panel=_TIMERS)(health)
app.add_typer(bus, name="bus", rich_help_panel=_BUS)
app.command(rich_help_panel=_STORE)(migrate)
app.command(rich_help_panel=_STORE)(cluster)
app.command(rich_help_panel=_STORE)(audit)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"duetime {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    pass


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets a question mark, not a traceback.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    app(prog_name="duetime")
