"""Whether spans are to be exported, by the standard variables of OpenTelemetry."""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from duetime.domain.errors import SettingsError

EXPORTER: Final = "OTEL_TRACES_EXPORTER"
ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
HEADERS: Final = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
DISABLED: Final = "OTEL_SDK_DISABLED"
SAMPLER: Final = "OTEL_TRACES_SAMPLER"
SAMPLER_ARGUMENT: Final = "OTEL_TRACES_SAMPLER_ARG"

QUEUE: Final = "OTEL_BSP_MAX_QUEUE_SIZE"
BATCH: Final = "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"
DELAY: Final = "OTEL_BSP_SCHEDULE_DELAY"

EXTRA: Final = "duetime[otel]"

_OTLP = {
    "http/protobuf": "otlp_proto_http",
    "grpc": "otlp_proto_grpc",
}

_SHORTEST_SECRET = 8
"""Length of the shortest value of a header that is taken for a secret."""

# As the SDK reads it, which also takes a value with spaces.
_is_header = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+[ \t]*=[ \t]*[ !#-+\--:<-\[\]-~]*").fullmatch
_is_positive = re.compile(r"0*[1-9][0-9]{0,8}").fullmatch
_is_printable = re.compile(r"[ -~]*").fullmatch


_DEFAULT_QUEUE, _DEFAULT_BATCH, _DEFAULT_DELAY_MS = 2048, 512, 5000


class WrongTracing(SettingsError):
    """Traces are configured and cannot be exported; the message names the variable."""


class ExportQueue(NamedTuple):
    """Spans that may wait for the collector, spans of one export, and the time between exports."""

    max_spans: int
    max_batch: int
    delay_ms: int


def exporter_names(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the exporters, as packages of OpenTelemetry register them. Traces are off if
    there is none. Raises `WrongTracing`."""
    if environment.get(DISABLED, "").strip().lower() == "true":
        return ()
    given = environment.get(EXPORTER, "").strip()
    if not given:
        # The SDK's default would be otlp, to a collector on this machine.
        given = "otlp" if any(environment.get(name, "").strip() for name in ENDPOINTS) else "none"
    names = dict.fromkeys(part.strip().lower() for part in given.split(",") if part.strip())
    if "none" in names:
        return ()
    found = tuple(_otlp_name(environment) if name == "otlp" else name for name in names)
    if any(name.startswith("otlp") for name in found):
        _check_headers(environment)
    if _OTLP["http/protobuf"] in found:
        _check_endpoint(environment)
    return found


def _otlp_name(environment: Mapping[str, str]) -> str:
    variable, protocol = _first_given(environment, PROTOCOLS) or ("", "http/protobuf")
    if protocol not in _OTLP:
        raise WrongTracing(f"{variable} must be one of {', '.join(_OTLP)}")
    return _OTLP[protocol]


def export_queue(environment: Mapping[str, str]) -> ExportQueue:
    """Raises `WrongTracing`."""
    max_spans = _positive(environment, QUEUE, _DEFAULT_QUEUE)
    max_batch = _positive(environment, BATCH, min(_DEFAULT_BATCH, max_spans))
    if max_batch > max_spans:
        raise WrongTracing(f"{BATCH} must be at most {QUEUE}, which is {max_spans}")
    return ExportQueue(max_spans, max_batch, _positive(environment, DELAY, _DEFAULT_DELAY_MS))


def _positive(environment: Mapping[str, str], variable: str, default: int) -> int:
    given = environment.get(variable, "").strip()
    if not given:
        return default
    if not _is_positive(given):
        raise WrongTracing(f"{variable} must be a whole number from 1 to 999999999")
    return int(given)


def secrets_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Values of headers, which no log line and no message may have."""
    found: set[str] = set()
    for variable in HEADERS:
        for header in _headers_in(environment.get(variable, "")):
            value = header.partition("=")[2].strip() or header
            found |= {value, unquote(value).strip()}
    # The longest first, because one may be part of another.
    long_enough = (value for value in found if len(value) >= _SHORTEST_SECRET)
    return tuple(sorted(long_enough, key=len, reverse=True))


def _check_headers(environment: Mapping[str, str]) -> None:
    given = _first_given(environment, HEADERS)
    if given is None:
        return
    variable, headers = given
    for header in _headers_in(headers):
        if not _is_header(header) or not _is_printable(unquote(header)):
            # The SDK would log the header, which may be a key.
            raise WrongTracing(
                f"{variable} must be headers such as name=value,name=value, with URL-encoded values"
            )


def _headers_in(given: str) -> Iterator[str]:
    return (header for part in given.split(",") if (header := part.strip()))


def _check_endpoint(environment: Mapping[str, str]) -> None:
    given = _first_given(environment, ENDPOINTS)
    if given is None:
        return
    variable, endpoint = given
    try:
        url = urlsplit(endpoint)
        is_url = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise WrongTracing(f"{variable} must be a URL such as http://collector:4318")


def _first_given(
    environment: Mapping[str, str], variables: tuple[str, ...]
) -> tuple[str, str] | None:
    """The first of the variables that is not empty, and its value."""
    for variable in variables:
        value = environment.get(variable, "").strip()
        if value:
            return variable, value
    return None
