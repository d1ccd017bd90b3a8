"""A span as the event loop keeps it, before the SDK knows of it."""

from collections.abc import Mapping
from typing import ClassVar, Final

from msgspec import Struct
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags

from duetime.domain.instants import Instant

_SAMPLED: Final = SpanContext(1, 1, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


Attributes = Mapping[str, str | int | float]


class SpanRecord(Struct, kw_only=True):
    """`link` is the span of the create."""

    context: ClassVar[SpanContext] = _SAMPLED
    """Every recorded span is sampled, which is all that the SDK's queue wants to know."""

    name: str
    kind: SpanKind
    trace_id: int
    span_id: int
    began_at: Instant
    attributes: dict[str, str | int | float]
    parent: SpanContext | None = None
    link: SpanContext | None = None
    ended_at: Instant = Instant(0)
    is_error: bool = False

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-01"


def context_of(traceparent: str) -> SpanContext:
    return SpanContext(
        trace_id=int(traceparent[3:35], 16),
        span_id=int(traceparent[36:52], 16),
        is_remote=True,
        trace_flags=TraceFlags(int(traceparent[53:55], 16)),
    )
