"""The options of the engine, from the settings."""

import os
import secrets
import socket

import structlog

from duetime import __version__
from duetime.descriptors import DescriptorBudget
from duetime.engine import EngineOptions
from duetime.local_process import process_name
from duetime.ports.clock import Clock
from duetime.ports.membership import NodeFacts
from duetime.settings import Settings

ANY_ADDRESS = ("0.0.0.0", "::")

_log = structlog.get_logger()


def _concurrency(settings: Settings, budget: DescriptorBudget) -> int:
    configured = settings.delivery_concurrency
    if configured > budget.callbacks:
        _log.warning(
            "service.descriptors_limited",
            setting="DELIVERY_CONCURRENCY",
            configured=configured,
            used=budget.callbacks,
            open_files=budget.limit,
            advice="raise the hard limit of open files (ulimit -Hn, or LimitNOFILE of the service)"
            " or lower DELIVERY_CONCURRENCY",
        )
    return min(configured, budget.callbacks)


def _url(settings: Settings, host: str) -> str:
    """The address of this process for other members. Nobody knows it beforehand if the system
    chooses a port."""
    if not settings.port:
        return ""
    return f"http://{host if settings.host in ANY_ADDRESS else settings.host}:{settings.port}"


def engine_options(settings: Settings, clock: Clock, budget: DescriptorBudget) -> EngineOptions:
    host, pid = socket.gethostname(), os.getpid()
    return EngineOptions(
        # A pid may be used again on the same host, and no two nodes may have the same name.
        owner=f"{host}:{pid}:{secrets.token_hex(4)}",
        horizon_ms=settings.claim_horizon_ms,
        poll_seconds=settings.polling_interval_ms / 1_000,
        batch_size=settings.claim_batch_size,
        concurrency=_concurrency(settings, budget),
        concurrency_per_endpoint=settings.delivery_concurrency_per_endpoint,
        retention_seconds=settings.retention_days * 86_400 or None,
        audit_retention_seconds=settings.audit_retention_days * 86_400 or None,
        lease_seconds=settings.lease_seconds,
        clock_skew_limit_ms=settings.clock_skew_limit_ms,
        facts=NodeFacts(
            host=host,
            pid=pid,
            process=process_name(),
            version=__version__,
            url=_url(settings, host),
            started_at=clock.now(),
        ),
    )
