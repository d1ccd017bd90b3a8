"""Whether spans are to be exported, by the standard variables of OpenTelemetry."""

from collections.abc import Mapping
from typing import Final

from duetime.domain.errors import DuetimeError, ErrorKind

EXPORTER: Final = "OTEL_TRACES_EXPORTER"
ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
DISABLED: Final = "OTEL_SDK_DISABLED"
SAMPLER: Final = "OTEL_TRACES_SAMPLER"
SAMPLER_ARGUMENT: Final = "OTEL_TRACES_SAMPLER_ARG"

EXTRA: Final = "duetime[otel]"

_OTLP = {
    "http/protobuf": "otlp_proto_http",
    "grpc": "otlp_proto_grpc",
}


class WrongTracing(DuetimeError):
    """Traces are configured and cannot be exported; the message names the variable."""

    kind = ErrorKind.INVALID_INPUT


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
    return tuple(_otlp_name(environment) if name == "otlp" else name for name in names)


def _otlp_name(environment: Mapping[str, str]) -> str:
    for variable in PROTOCOLS:
        protocol = environment.get(variable, "").strip()
        if protocol:
            if protocol not in _OTLP:
                raise WrongTracing(f"{variable} must be one of {', '.join(_OTLP)}")
            return _OTLP[protocol]
    return "otlp_proto_http"
