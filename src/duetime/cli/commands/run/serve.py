"""`duetime serve`: run the service with settings from the environment."""

import os
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from duetime.cli.commands.number_options import whole_number
from duetime.cli.commands.options import ConfigOption
from duetime.cli.terminal import ExitCode, fail
from duetime.domain.errors import DuetimeError, SettingsError
from duetime.domain.limits import MAX_PORT
from duetime.event_loop import run, stop_signal
from duetime.listener import (
    AddressUnavailable,
    bind,
    is_loopback,
    naming_metrics_port,
    own_addresses,
    url_of,
)
from duetime.server.worker_link import WorkerLink, worker_link
from duetime.settings import Settings, load_settings
from duetime.settings.reference import PLACEHOLDER_API_KEY


def serve(
    config: ConfigOption = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on (default: HOST).")] = None,
    port: Annotated[
        int | None, whole_number(0, MAX_PORT, help="Port to listen on (default: PORT).")
    ] = None,
    workers: Annotated[
        int | None, whole_number(1, help="Processes that share the port (default: WORKERS).")
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option(
            "--insecure",
            help="Allow AUTH=none on an address that other machines can reach.",
        ),
    ] = False,
) -> None:
    """Run the service.

    Settings come from the environment, `.env` and an optional TOML file. `API_KEY` is required;
    everything else has a default. See docs/reference/configuration.md and `.env.example`.

    Examples:

    * `(umask 077; echo "API_KEY=$(openssl rand -hex 32)" >> .env) && duetime serve`
    * `duetime serve --config duetime.toml --port 9090`
    * `DATABASE_URL=postgresql://db.example/duetime duetime serve --workers 4`
    """
    link = worker_link(os.environ)
    given = {"HOST": host, "PORT": link.port if link else port, "WORKERS": workers}
    overrides = {name: str(value) for name, value in given.items() if value is not None}
    try:
        settings = load_settings(os.environ | overrides, toml_path=config)
        _check_door(settings, insecure)
    except SettingsError as error:
        _fail(link, error.message, ExitCode.USAGE)
    try:
        if link is None and settings.workers > 1:
            _supervise(settings, _worker_options(config, host, workers, insecure))
        else:
            run(_serve(settings, link))
    except AddressUnavailable as error:
        _fail(link, error.message + (" or PORT" if error.in_use else ""), ExitCode.FAILED)
    except SettingsError as error:
        # Some settings are checked against the contents of the store, or by OpenTelemetry.
        _fail(link, error.message, ExitCode.USAGE)
    except DuetimeError as error:
        _fail(link, error.message, ExitCode.FAILED)


def _check_door(settings: Settings, insecure: bool) -> None:
    """Raises `SettingsError` if anyone could use the API without anyone having decided that."""
    if settings.api_key == PLACEHOLDER_API_KEY:
        raise SettingsError(
            "API_KEY is the one of .env.example, which everyone knows: set it to a secret of your "
            "own (openssl rand -hex 32 makes one)"
        )
    if settings.api_key is None and not insecure and not is_loopback(settings.host):
        raise SettingsError(
            f"AUTH=none lets everyone use the API who can reach HOST={settings.host}: set "
            "HOST=127.0.0.1, or leave AUTH out and set API_KEY, or say --insecure if a gateway "
            "checks all callers"
        )
    metrics = settings.metrics_address
    if (
        settings.api_key is None
        and not (insecure or settings.metrics_public)
        and metrics is not None
        and not is_loopback(metrics[0])
    ):
        raise SettingsError(
            f"AUTH=none lets everyone read the metrics who can reach METRICS_HOST={metrics[0]}: "
            "set METRICS_HOST=127.0.0.1, or METRICS_PUBLIC=true if everyone may"
        )


def _fail(link: WorkerLink | None, message: str, code: ExitCode) -> NoReturn:
    """End the command. A worker reports to its supervisor, which prints the message once."""
    if link is None:
        fail(message, code)
    link.report_error(message)
    raise typer.Exit(code)


def _worker_options(
    config: Path | None, host: str | None, workers: int | None, insecure: bool
) -> list[str]:
    """The options of this process for its workers, without the port, which they inherit."""
    given = {"--config": config, "--host": host, "--workers": workers}
    options = [f"{name}={value}" for name, value in given.items() if value is not None]
    return [*options, "--insecure"] if insecure else options


def _supervise(settings: Settings, options: list[str]) -> None:
    from duetime.server.supervisor import supervise
    from duetime.server.worker_slot import WorkerFailed

    _prepare_logs(settings)
    try:
        ended_by = run(supervise(settings, options))
    except WorkerFailed as error:
        fail(error.message, error.status)
    if ended_by is not None:
        raise typer.Exit(128 + ended_by)


async def _serve(settings: Settings, link: WorkerLink | None) -> None:
    # Imported here so that `duetime --help` starts quickly.
    import structlog
    from structlog.contextvars import bind_contextvars

    from duetime.composition import assemble
    from duetime.server.server import metrics_served, serve_until
    from duetime.server.worker_metrics import WorkerMetrics

    if link is not None:
        bind_contextvars(worker=link.number)
    _prepare_logs(settings, warns=link is None)
    stopped = stop_signal()
    if link is not None:
        link.stop_on_request(stopped)
    listener = link.listener if link else bind(settings.host, settings.port)

    tells_settings = link is None or link.number == 1

    def on_started() -> None:
        if tells_settings:
            _log_callbacks(settings)
        if link is not None:
            link.report_ready()

    metrics_listener = None
    if settings.metrics_address is not None:
        with naming_metrics_port():
            metrics_listener = bind(*settings.metrics_address, shared=link is not None)
    workers = None
    if link is not None:
        # Not the setting, which may have changed since the supervisor was started.
        count = link.workers or settings.workers
        workers = WorkerMetrics(link.metrics_directory, link.number, count)
    service = assemble(settings, own_addresses(listener, metrics_listener), workers)
    async with metrics_served(service.app.metrics, metrics_listener):
        if metrics_listener is not None and tells_settings:
            structlog.get_logger().info("metrics.served", url=f"{url_of(metrics_listener)}/metrics")
        await serve_until(
            stopped,
            service,
            listener,
            grace_seconds=settings.shutdown_grace_seconds,
            door=service.door,
            drain_seconds=lambda: settings.drain_seconds if link is None or link.drains else 0.0,
            answers_early=link is None or link.is_alone,
            on_started=on_started,
            logs_start=link is None,
        )


def _prepare_logs(settings: Settings, *, warns: bool = True) -> None:
    import structlog

    from duetime.telemetry.logs import configure_logs

    configure_logs(settings.log_level, settings.log_format)
    if not warns:
        return
    for warning in settings.warnings:
        structlog.get_logger().warning("settings.misspelt", advice=warning)
    if settings.api_key is None:
        structlog.get_logger().warning(
            "auth.open",
            advice="AUTH=none: everyone who can reach this API can use it",
        )


def _log_callbacks(settings: Settings) -> None:
    """Tell where callbacks may go. A proxy decides alone unless CALLBACK_PROXY_GUARD=on."""
    import structlog

    proxy = settings.callback_proxy
    if not settings.judges_callbacks:
        structlog.get_logger().warning(
            "callbacks.unguarded",
            networks_ignored=settings.callback_networks.text,
            advice="CALLBACK_PROXY alone decides where callbacks go: CALLBACK_NETWORKS and "
            "callbackNetworks of namespaces do not apply unless CALLBACK_PROXY_GUARD=on",
        )
    structlog.get_logger().info(
        "callbacks.allowed",
        networks=settings.callback_networks.text if settings.judges_callbacks else None,
        proxy=None if proxy is None else proxy.name,
    )
