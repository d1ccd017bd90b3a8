"""`duetime dev`: the service and a receiver in one process, with a demo timer."""

import asyncio
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from duetime.cli.browser import open_in_browser
from duetime.cli.client.dev_server import DEV_DB_PATH, DEV_KEY_PATH, DevAnnouncement
from duetime.cli.client.platform import NotCreated, create_from_event_loop
from duetime.cli.client.server_lookup import client_dotenv
from duetime.cli.commands.number_options import whole_number
from duetime.cli.commands.run.receiver import Receiver
from duetime.cli.output.dev_welcome import DevAddresses, print_welcome
from duetime.cli.output.received_callback import ReceivedCallback, readable_line
from duetime.cli.terminal import ExitCode, console, fail
from duetime.clock import SystemClock
from duetime.domain.errors import DuetimeError, SettingsError, StoreInUse
from duetime.domain.instants import format_instant, plus_ms
from duetime.domain.limits import MAX_PORT
from duetime.domain.security.access import EVERYTHING
from duetime.domain.wording import span
from duetime.event_loop import run, stop_signal
from duetime.listener import bind_next_free, own_addresses, url_of
from duetime.settings import Settings, load_settings

DEMO_PATH = "/demo"
DEMO_DELAY_MS = 3_000

_RUN_BOTH = 'to run both: duetime dev --db other.db, or make run ARGS="--db other.db"'

_NOT_FOR_DEV = {
    "AUTH",
    "DATABASE_URL",
    "DUETIME_CONFIG",
    "HOST",
    "METRICS_HOST",
    "METRICS_PORT",
    "TIMER_DB_PATH",
    "WORKERS",
}


def dev(
    port: Annotated[
        int | None,
        whole_number(
            0,
            MAX_PORT,
            help="Port of the API (default: PORT); the next free one if it is taken.",
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address of the API.")] = "127.0.0.1",
    db: Annotated[Path, typer.Option(help="SQLite file for the timers.")] = DEV_DB_PATH,
    opens: Annotated[
        bool, typer.Option("--open", help="Open the Web UI in the browser, signed in.")
    ] = False,
) -> None:
    """Try Duetime on this machine, without any configuration.

    Starts the service and a small receiver, prints a link to the Web UI and a command to paste, and
    shows how a demo timer fires. Timers are kept in a file, so they survive a restart.
    """
    try:
        settings = _dev_settings(host, port, db)
    except SettingsError as error:
        fail(error.message, ExitCode.USAGE)
    except OSError as error:
        fail(f"cannot write the API key to {error.filename}: {error.strerror}", ExitCode.FAILED)
    try:
        run(_Dev(settings, db, opens=opens).run())
    except StoreInUse as error:
        fail(f"{error.message}; {_RUN_BOTH}", ExitCode.FAILED)
    except SettingsError as error:
        fail(error.message, ExitCode.USAGE)
    except DuetimeError as error:
        fail(error.message, ExitCode.FAILED)


def _dev_settings(host: str, port: int | None, db: Path) -> Settings:
    """The settings that make sense here. The environment gives most of them. `.env` is for `serve`,
    except for the port and the brokers: other commands in this directory take them from there."""
    dotenv = {
        name: text
        for name, text in client_dotenv().items()
        if name in ("PORT", "TIMER_BROKER_URL") or name.startswith("NATS_")
    }
    environ = {
        name: text
        for name, text in os.environ.items()
        if name not in _NOT_FOR_DEV and not name.startswith("PG_")
    }
    defaults = {
        "CALLBACK_NETWORKS": "public,private,loopback",
        "MIN_DELAY_SECONDS": "0",
        "LOG_FORMAT": "text",
        "LOG_LEVEL": "warn",
    }
    fixed = {
        "HOST": host,
        "TIMER_DB_PATH": str(db),
        "API_KEY": dev_api_key(os.environ, Path.cwd()),
    }
    if port is not None:
        fixed["PORT"] = str(port)
    return load_settings({**defaults, **dotenv, **environ, **fixed}, dotenv_path=None)


def dev_api_key(environ: Mapping[str, str], directory: Path) -> str:
    """API_KEY from the environment, else the stored key, else a new key that is stored.

    Only the owner can read the file. The key in `.env` is the one of `serve`, and not shown here.
    """
    given = environ.get("API_KEY")
    if given:
        return given
    path = directory / DEV_KEY_PATH
    try:
        stored = path.read_text(encoding="ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        stored = ""
    if stored:
        return stored
    key = "dev-" + secrets.token_hex(16)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.write(key + "\n")
    return key


class _Dev:
    """The service and the receiver in one process."""

    def __init__(self, settings: Settings, db_path: Path, *, opens: bool) -> None:
        self._settings = settings
        self._opens = opens
        self._db_path = db_path
        self._clock = SystemClock()
        self._output = console()
        self._demo: asyncio.Task[None] | None = None
        self._opening: asyncio.Task[bool] | None = None
        self._announcement: DevAnnouncement | None = None

    async def run(self) -> None:
        # Imported here so that `duetime --help` starts quickly.
        from duetime.api.v1.security.ui_links import sign_in_path
        from duetime.composition import assemble
        from duetime.server.server import serve_until
        from duetime.telemetry.logs import configure_logs

        settings = self._settings
        configure_logs(settings.log_level, settings.log_format)
        stopped = stop_signal()
        api_listener = bind_next_free(settings.host, settings.port)
        port: int = api_listener.getsockname()[1]
        # The receiver uses the port after the API's, so that timers created before a restart
        # still find it.
        receiver_listener = bind_next_free("127.0.0.1", min(port + 1, MAX_PORT))
        receiver = Receiver(self._clock, self._show)
        await receiver.start(receiver_listener)
        api_url = _reachable(url_of(api_listener))
        try:
            service = assemble(settings, own_addresses(api_listener))
            addresses = DevAddresses(
                api_url=api_url,
                # It works as long as this process, so that it can be clicked an hour later.
                ui_link=api_url + sign_in_path(service.sessions.standing_code(EVERYTHING)),
                receiver_url=url_of(receiver_listener),
                api_key=settings.api_key or "",
                db_path=self._db_path,
                broker=None if settings.broker is None else settings.broker.name,
            )
            await serve_until(
                stopped,
                service,
                api_listener,
                grace_seconds=settings.shutdown_grace_seconds,
                door=service.door,
                on_started=lambda: self._welcome(addresses, port),
            )
        finally:
            if self._announcement is not None:
                self._announcement.withdraw()
            await receiver.stop()
        self._say(f"Stopped. Your timers are kept in {self._db_path}.")

    def _say(self, line: str, style: str | None = None) -> None:
        self._output.print(line, style=style, soft_wrap=True)

    def _welcome(self, addresses: DevAddresses, port: int) -> None:
        """Called once the service runs, because a database in use keeps it from starting."""
        if self._settings.port not in (0, port):
            self._say(f"Port {self._settings.port} is taken; using {port} instead.")
        with suppress(OSError):
            # Without the file the welcome names the server in its command.
            self._announcement = DevAnnouncement(addresses.api_url, Path.cwd())
        print_welcome(self._output, addresses)
        if self._opens:
            opening = asyncio.to_thread(open_in_browser, addresses.ui_link)
            self._opening = asyncio.create_task(opening)
        self._demo = asyncio.create_task(self._create_demo_timer(addresses))

    async def _create_demo_timer(self, addresses: DevAddresses) -> None:
        due = format_instant(plus_ms(self._clock.now(), DEMO_DELAY_MS))
        body = {
            "execute_at": due,
            "callback": {
                "type": "http",
                "url": addresses.receiver_url + DEMO_PATH,
                "payload": {"message": "Hello from Duetime", "execute_at": due},
            },
        }
        try:
            await create_from_event_loop(addresses.api_url, addresses.api_key, body)
        except NotCreated as error:
            self._say(f"The demo timer could not be created: {error}", style="red")
        else:
            self._say(f"A demo timer is due in {span(DEMO_DELAY_MS)} ...")

    def _show(self, callback: ReceivedCallback) -> None:
        self._output.print(readable_line(callback), soft_wrap=True)
        late_ms = callback.lateness_ms
        if callback.target == DEMO_PATH and late_ms is not None:
            self._say(f"✔ demo timer arrived, {late_ms:.1f} ms after its instant", style="green")


def _reachable(url: str) -> str:
    """The URL for clients on this machine, which cannot connect to the wildcard address."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
