"""The options of an engine."""

from msgspec import Struct

from duetime.ports.membership import NodeFacts


class EngineOptions(Struct, frozen=True, kw_only=True):
    """`retention_seconds` is for namespaces without a retention of their own; None keeps their
    finished timers for ever. `owner` is the name of this process, unique among all that ever
    share the store; `facts` describe the process to the others."""

    owner: str
    horizon_ms: float = 50.0
    poll_seconds: float = 5.0
    batch_size: int = 500
    concurrency: int = 4_096
    concurrency_per_endpoint: int = 1_024
    retention_seconds: float | None = None
    lease_seconds: float = 10.0
    clock_skew_limit_ms: float = 500.0
    facts: NodeFacts = NodeFacts()
