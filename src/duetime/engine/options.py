"""The options of an engine."""

from msgspec import Struct

from duetime.ports.membership import NodeFacts


class EngineOptions(Struct, frozen=True, kw_only=True):
    """`retention_seconds` is for namespaces without a retention of their own; None keeps their
    finished timers for ever. `audit_retention_seconds` is for the audit log. `owner` is the name of
    this process, unique among all that ever share the store; `facts` describe the process to the
    others."""

    owner: str
    horizon_ms: float
    poll_seconds: float
    batch_size: int
    concurrency: int
    concurrency_per_endpoint: int
    retention_seconds: float | None
    audit_retention_seconds: float | None = None
    lease_seconds: float
    clock_skew_limit_ms: float
    facts: NodeFacts = NodeFacts()
