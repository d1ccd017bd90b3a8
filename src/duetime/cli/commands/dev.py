"""`duetime dev`: everything on this machine, and a timer that fires at once."""

import asyncio
import os
from pathlib import Path
from typing import Annotated

import typer

from duetime.cli.dev_key import dev_api_key
from duetime.cli.output.callback_lines import readable_line
from duetime.cli.output.dev_welcome import DevAddresses, print_welcome
from duetime.cli.output.terminal import ExitCode, console, fail
from duetime.cli.output.wording import span
from duetime.cli.receiver import ReceivedCallback, Receiver
from duetime.clock import SystemClock
from duetime.domain.errors import DuetimeError, SettingsError
from duetime.domain.instants import format_instant, plus_ms
from duetime.server.event_loop import run, stop_signal
from duetime.server.listener import bind_next_free, url_of
from duetime.settings import Settings, load_settings

DEMO_PATH = "/demo"
DEMO_DELAY_MS = 3_000

_NOT_FOR_DEV = {
    "AUTH",
    "DATABASE_URL",
    "DUETIME_CONFIG",
    "HOST",
    "PORT",
    "TIMER_DB_PATH",
    "WORKERS",
}


def dev(
    port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65535,
            envvar="PORT",
            help="Port of the API; if taken, the next free one.",
        ),
    ] = 8080,
    host: Annotated[str, typer.Option(help="Address of the API.")] = "127.0.0.1",
    db: Annotated[Path, typer.Option(help="SQLite file that keeps the timers.")] = Path(
        "duetime-dev.db"
    ),
) -> None:
    """Try Duetime on this machine: no configuration needed.

    Starts the service and a small receiver, prints a command to paste, and shows a demo timer
    arrive. Timers are kept in a file, so they survive a restart.
    """
    try:
        settings = _dev_settings(host, port, db)
    except SettingsError as error:
        fail(error.message, ExitCode.USAGE)
    except OSError as error:
        fail(f"the API key cannot be kept in {error.filename}: {error.strerror}", ExitCode.FAILED)
    try:
        run(_Dev(settings, db).run())
    except DuetimeError as error:
        fail(error.message, ExitCode.FAILED)


def _dev_settings(host: str, port: int, db: Path) -> Settings:
    """Settings of the environment where they make sense here; `.env` is for `serve`."""
    environ = {
        name: text
        for name, text in os.environ.items()
        if name not in _NOT_FOR_DEV and not name.startswith("PG_")
    }
    defaults = {"MIN_DELAY_SECONDS": "0", "LOG_FORMAT": "text", "LOG_LEVEL": "warn"}
    fixed = {
        "HOST": host,
        "PORT": str(port),
        "TIMER_DB_PATH": str(db),
        "API_KEY": dev_api_key(os.environ, Path.cwd()),
    }
    return load_settings({**defaults, **environ, **fixed}, dotenv_path=None)


class _Dev:
    """The service and the receiver in one process."""

    def __init__(self, settings: Settings, db_path: Path) -> None:
        self._settings = settings
        self._db_path = db_path
        self._clock = SystemClock()
        self._output = console()
        self._demo: asyncio.Task[None] | None = None

    async def run(self) -> None:
        # Imported here so that the other commands start quickly.
        from duetime.composition import assemble
        from duetime.logs import configure_logs
        from duetime.server.server import serve_until

        settings = self._settings
        configure_logs(settings.log_level, settings.log_format)
        stopped = stop_signal()
        api_listener = bind_next_free(settings.host, settings.port)
        port: int = api_listener.getsockname()[1]
        # The port beside the API's stays the same over restarts if it can, so that timers
        # that were created before a restart still find the receiver.
        receiver_listener = bind_next_free("127.0.0.1", min(port + 1, 65535))
        receiver = Receiver(self._clock, self._show)
        await receiver.start(receiver_listener)
        addresses = DevAddresses(
            api_url=_reachable(url_of(api_listener)),
            receiver_url=url_of(receiver_listener),
            api_key=settings.api_key or "",
            db_path=self._db_path,
        )
        try:
            await serve_until(
                stopped,
                assemble(settings),
                api_listener,
                grace_seconds=settings.shutdown_grace_seconds,
                on_started=lambda: self._welcome(addresses, port),
            )
        finally:
            await receiver.stop()
        self._say(f"Stopped. Your timers are kept in {self._db_path}.")

    def _say(self, line: str, style: str | None = None) -> None:
        self._output.print(line, style=style, soft_wrap=True)

    def _welcome(self, addresses: DevAddresses, port: int) -> None:
        """Said once the service runs: a database in use would make every address untrue."""
        if self._settings.port not in (0, port):
            self._say(f"Port {self._settings.port} is taken; using {port} instead.")
        print_welcome(self._output, addresses)
        self._demo = asyncio.create_task(self._create_demo_timer(addresses))

    async def _create_demo_timer(self, addresses: DevAddresses) -> None:
        import httpx

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
            async with httpx.AsyncClient(trust_env=False) as client:
                answer = await client.post(
                    addresses.api_url + "/timers",
                    json=body,
                    headers={"X-API-Key": addresses.api_key},
                )
            answer.raise_for_status()
        except httpx.HTTPError as error:
            self._say(f"The demo timer could not be created: {error}", style="red")
        else:
            self._say(f"A demo timer is due in {span(DEMO_DELAY_MS)} ...")

    def _show(self, callback: ReceivedCallback) -> None:
        self._output.print(readable_line(callback), soft_wrap=True)
        late_ms = callback.lateness_ms
        if callback.target == DEMO_PATH and late_ms is not None:
            self._say(f"✔ demo timer arrived, {late_ms:.1f} ms after its instant", style="green")


def _reachable(url: str) -> str:
    """The URL for a client on this machine: no one can connect to "any address"."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
