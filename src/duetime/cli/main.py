"""The `duetime` command and its list of subcommands."""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, NamedTuple

import typer

from duetime import __version__

_RUN = "Run"
_TIMERS = "Timers (talk to a running server)"
_WEB_UI = "Web UI (of a running server)"
_SECURITY = "Security (talk to a running server)"
_BUS = "Message bus (talk to the broker)"
_STORE = "Store (open it directly, with the settings of serve)"


class _Command(NamedTuple):
    """A function, or a group of subcommands, in a module of `duetime.cli.commands`. A function
    that `checks_arguments` finds those it does not take in `Context.args`, and refuses them."""

    module: str
    attribute: str
    panel: str
    checks_arguments: bool = False


COMMANDS = {
    "dev": _Command("run.dev", "dev", _RUN),
    "serve": _Command("run.serve", "serve", _RUN),
    "listen": _Command("run.listen", "listen", _RUN),
    "open": _Command("web_ui", "open_web_ui", _WEB_UI),
    "create": _Command("timers.create", "create", _TIMERS),
    "get": _Command("timers.single_timer", "get", _TIMERS),
    "explain": _Command("timers.explain", "explain", _TIMERS),
    "list": _Command("timers.list", "list_timers", _TIMERS),
    "update": _Command("timers.single_timer", "update", _TIMERS),
    "cancel": _Command("timers.bulk", "cancel", _TIMERS),
    "redrive": _Command("timers.bulk", "redrive", _TIMERS),
    "reschedule": _Command("timers.bulk", "reschedule", _TIMERS, checks_arguments=True),
    "run-now": _Command("timers.bulk", "run_now", _TIMERS, checks_arguments=True),
    "operations": _Command("timers.operations", "operations", _TIMERS),
    "import": _Command("timers.importing", "import_timers", _TIMERS),
    "export": _Command("timers.export", "export", _TIMERS),
    "namespaces": _Command("timers.namespaces", "namespaces", _TIMERS),
    "audit-log": _Command("security.audit_log", "audit_log", _TIMERS),
    "endpoints": _Command("timers.endpoints", "endpoints", _TIMERS),
    "health": _Command("timers.health", "health", _TIMERS),
    "keys": _Command("security.keys", "keys", _SECURITY),
    "secrets": _Command("security.secrets", "secrets", _SECURITY),
    "bus": _Command("bus", "bus", _BUS),
    "migrate": _Command("store.migrate", "migrate", _STORE),
    "cluster": _Command("store.cluster", "cluster", _STORE),
    "audit": _Command("store.audit", "audit", _STORE),
    "backup": _Command("store.backup", "backup", _STORE),
    "restore": _Command("store.backup", "restore", _STORE),
    "copy": _Command("store.copy", "copy", _STORE),
}


_COMPLETION_VARIABLE = "_DUETIME_COMPLETE"
"""Set by the shell while a command line is being completed."""


def command_line(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The `duetime` command with the named subcommands. No other module is imported: a client
    command starts without the code of the server."""
    app = typer.Typer(
        name="duetime",
        help="Durable timers: register a callback for an instant, and Duetime makes it.",
        epilog="Start with: duetime dev",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for name in names:
        command = COMMANDS[name]
        module = import_module(f"duetime.cli.commands.{command.module}")
        target = getattr(module, command.attribute)
        if isinstance(target, typer.Typer):
            app.add_typer(target, name=name, rich_help_panel=command.panel)
        else:
            app.command(
                name,
                rich_help_panel=command.panel,
                context_settings={"allow_extra_args": command.checks_arguments},
            )(target)
    return app


def _print_version(is_requested: bool) -> None:
    if is_requested:
        print(f"duetime {__version__}")
        raise typer.Exit


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
    name = _named_command(sys.argv, os.environ)
    app = command_line([name]) if name in COMMANDS else command_line()
    app(prog_name="duetime")


def _named_command(arguments: Sequence[str], environ: Mapping[str, str]) -> str:
    """The first argument, also of a command line that is being completed beyond that argument."""
    if _COMPLETION_VARIABLE in environ:
        line = environ.get("COMP_WORDS") or environ.get("_TYPER_COMPLETE_ARGS") or ""
        words = f"{line}|".split()
        return words[1] if len(words) > 2 else ""
    return arguments[1] if len(arguments) > 1 else ""
