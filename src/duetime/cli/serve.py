"""`duetime serve`: run the service with the settings of the environment."""

import os
from pathlib import Path
from typing import Annotated

import typer

from duetime.cli.event_loop import run, stop_signal
from duetime.cli.listener import AddressUnavailable, bind
from duetime.cli.terminal import ExitCode, fail
from duetime.domain.errors import DuetimeError, SettingsError
from duetime.settings import Settings, load_settings
from duetime.settings.reference import PLACEHOLDER_API_KEY


def serve(
    config: Annotated[
        Path | None, typer.Option(help="TOML file with settings (else DUETIME_CONFIG).")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on (else HOST).")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port to listen on (else PORT).")
    ] = None,
) -> None:
    """Run the service.

    Settings come from the environment, `.env` and an optional TOML file. `API_KEY` is required;
    everything else has a default. See docs/reference/configuration.md and `.env.example`.

    Examples:

    * `API_KEY=$(openssl rand -hex 32) duetime serve`
    * `duetime serve --config duetime.toml --port 9090`
    """
    overrides = {"HOST": host, "PORT": None if port is None else str(port)}
    environ = os.environ | {name: text for name, text in overrides.items() if text is not None}
    try:
        settings = load_settings(environ, toml_path=config)
    except SettingsError as error:
        fail(error.message, ExitCode.USAGE)
    try:
        run(_serve(settings))
    except AddressUnavailable as error:
        fail(error.message + (" or PORT" if error.in_use else ""), ExitCode.FAILED)
    except DuetimeError as error:
        fail(error.message, ExitCode.FAILED)


async def _serve(settings: Settings) -> None:
    # Imported here so that the other commands start quickly.
    import structlog

    from duetime.cli.server import serve_until
    from duetime.composition import assemble
    from duetime.logs import configure_logs

    configure_logs(settings.log_level, settings.log_format)
    if settings.api_key in (None, PLACEHOLDER_API_KEY):
        structlog.get_logger().warning(
            "auth.open", advice="anyone can use this API: set API_KEY to a secret of your own"
        )
    stopped = stop_signal()
    listener = bind(settings.host, settings.port)
    await serve_until(
        stopped, assemble(settings), listener, grace_seconds=settings.shutdown_grace_seconds
    )
