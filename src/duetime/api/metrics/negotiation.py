"""The format and the encoding that a client of `/metrics` prefers."""

from collections.abc import Iterable, Iterator

from duetime.telemetry.metrics.exposition import Format

_OPENMETRICS = "application/openmetrics-text"
_OPENMETRICS_VERSIONS = ("", "1.0.0")

RawHeaders = Iterable[tuple[bytes, bytes]]


def format_for(headers: RawHeaders) -> Format:
    """OpenMetrics if the client prefers it, else the text that every client can read."""
    text = openmetrics = anything = 0.0
    for media, version, quality in _ranges(headers, b"accept"):
        if media == _OPENMETRICS and version in _OPENMETRICS_VERSIONS:
            openmetrics = max(openmetrics, quality)
        elif media in ("text/plain", "text/*"):
            text = max(text, quality)
        elif media == "*/*":
            anything = max(anything, quality)
    return Format.OPENMETRICS if openmetrics > max(text, anything) else Format.PROMETHEUS


def accepts_gzip(headers: RawHeaders) -> bool:
    codings = {name: quality for name, _, quality in _ranges(headers, b"accept-encoding")}
    return codings.get("gzip", codings.get("*", 0.0)) > 0


def _ranges(headers: RawHeaders, name: bytes) -> Iterator[tuple[str, str, float]]:
    """The name, the version and the quality of each part of a header."""
    for given, value in headers:
        if given != name:
            continue
        for part in value.decode("latin-1").lower().split(","):
            media, *pairs = (piece.strip() for piece in part.split(";"))
            parameters = {
                key.rstrip(): value.strip(' "')
                for key, _, value in (pair.partition("=") for pair in pairs)
            }
            yield media, parameters.get("version", ""), _quality(parameters.get("q", "1"))


def _quality(text: str) -> float:
    """From 0 to 1; 0 for anything else."""
    try:
        quality = float(text)
    except ValueError:
        return 0.0
    return quality if 0 <= quality <= 1 else 0.0
