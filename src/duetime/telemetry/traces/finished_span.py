"""A span that is over, before the SDK knows of it."""

from collections.abc import Mapping
from typing import ClassVar, Final

from msgspec import Struct
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags

from duetime.domain.instants import Instant

_SAMPLED: Final = SpanContext(1, 1, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


class FinishedSpan(Struct, kw_only=True):
    """`parent` and `link` are traceparents."""

    context: ClassVar[SpanContext] = _SAMPLED
    """All spans that are finished are sampled, which is all that the SDK's queue wants to know."""

    name: str
    kind: SpanKind
    trace_id: int
    span_id: int
    began_at: Instant
    attributes: dict[str, str | int | float]
    parent: str | None = None
    link: str | None = None
    ended_at: Instant = Instant(0)
    is_error: bool = False

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-01"


Attributes = Mapping[str, str | int | float]
