"""Structured logs: a stable event name such as `timer.failed`, and fields.

Modules log with `structlog.get_logger()`; messages that libraries log through the standard library
are written in the same way. Nothing is formatted for a level that is off.
"""

import logging
import sys
from typing import TextIO

import msgspec
import structlog
from structlog.types import EventDict, Processor, WrappedLogger

from duetime.telemetry.current_work import add_current_work

_LEVELS = {
    "trace": logging.NOTSET,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}
_TALKATIVE_LIBRARIES = ("asyncio", "httpcore", "httpx", "uvicorn")


def configure_logs(level: str, layout: str, stream: TextIO | None = None) -> None:
    """Send all logs to `stream` (standard error unless given).

    `level` is trace, debug, info, warn or error; all messages of libraries appear with trace, and
    only their warnings otherwise. `layout` is json, text or auto, which is text on a terminal.
    """
    stream = stream or sys.stderr
    minimum = _LEVELS[level]
    as_text = layout == "text" or (layout == "auto" and stream.isatty())
    preparation: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        add_current_work,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="timestamp"),
    ]
    structlog.configure(
        processors=[*preparation, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(minimum),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=preparation,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_rendering(as_text, colors=stream.isatty()),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(minimum)
    for name in _TALKATIVE_LIBRARIES:
        logging.getLogger(name).setLevel(
            logging.NOTSET if level == "trace" else max(minimum, logging.WARNING)
        )


def _rendering(as_text: bool, colors: bool) -> list[Processor]:
    if as_text:
        # Tracebacks without variables: payloads and passwords may be among them.
        return [
            structlog.dev.ConsoleRenderer(
                colors=colors,
                pad_event_to=24,
                exception_formatter=structlog.dev.plain_traceback,
            )
        ]
    return [structlog.processors.format_exc_info, _in_reading_order, _as_json]


def _in_reading_order(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    first = {name: event.pop(name) for name in ("timestamp", "level", "event") if name in event}
    return {**first, **event}


def _as_json(_: WrappedLogger, __: str, event: EventDict) -> str:
    return msgspec.json.encode(event, enc_hook=str).decode()
