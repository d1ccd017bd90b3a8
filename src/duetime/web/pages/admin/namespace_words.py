"""A namespace in the words and numbers of its page."""

from collections.abc import Mapping
from math import floor
from urllib.parse import quote

from msgspec import Struct

from duetime.domain.lateness.objective import LOW_BUDGET, ErrorBudget, LatenessObjective
from duetime.domain.namespace import Namespace
from duetime.domain.retry import RetryPolicy
from duetime.domain.wording import counted, span
from duetime.ports.inspection import NamespaceCounts
from duetime.web.rendering.words import number

MOST_WAITS = 4
"""Retries up to which each wait is named."""

Facts = tuple[tuple[str, str], ...]


class ShownObjective(Struct, frozen=True, kw_only=True):
    """A lateness objective with its status. `left` is the share of the error budget from 0 to 1,
    for the picture; `kind` is the class of its colour."""

    text: str
    state: str
    kind: str
    details: str
    left: float


class NamespaceRow(Struct, frozen=True, kw_only=True):
    """A line of the list. A number that is None is not known."""

    namespace: Namespace
    path: str
    pending: int | None
    failed: int | None
    objective: ShownObjective | None
    retries: str | None
    """The retry policy in words, unless it is the default one."""


def path_of(name: str) -> str:
    """The page of a namespace, whose name may have any characters."""
    return f"/ui/namespaces/{quote(name, safe='')}"


def row_of(
    namespace: Namespace, counts: NamespaceCounts | None, budget: ErrorBudget | None
) -> NamespaceRow:
    name, policy = namespace.name, namespace.options.retry_policy
    return NamespaceRow(
        namespace=namespace,
        path=path_of(name),
        pending=None if counts is None else _count(counts.pending, name),
        failed=None if counts is None else _count(counts.failed, name),
        objective=shown_objective(namespace.options.slo, budget),
        retries=None if policy == RetryPolicy() else retry_words(policy),
    )


def _count(counts: Mapping[str | None, int], name: str) -> int | None:
    """A namespace that is missing has no timers, unless some are counted together."""
    found = counts.get(name)
    return found if found is not None or counts.get(None) else 0


def shown_objective(
    objective: LatenessObjective | None, budget: ErrorBudget | None
) -> ShownObjective | None:
    if objective is None:
        return None
    if budget is None or not budget.attempts:
        words = "not counted yet" if budget is None else "no attempts yet"
        return ShownObjective(text=objective.text, state=words, kind="", details="", left=1.0)
    state, kind = "on track", "ok"
    if budget.left < 0:
        state, kind = "missed", "bad"
    elif budget.left < LOW_BUDGET:
        state, kind = "at risk", "warn"
    in_time = _percent_below(1 - budget.late / budget.attempts)
    left = max(0.0, budget.left)
    rest = (
        f"{left * 100:.0f} % of the error budget is left" if left else "the error budget is spent"
    )
    return ShownObjective(
        text=objective.text,
        state=state,
        kind=kind,
        details=(
            f"{in_time} % of {counted(budget.attempts, 'attempt')} in time, "
            f"{number(budget.late)} late: {rest}"
        ),
        left=left,
    )


def _percent_below(share: float) -> str:
    """Rounded down, so that 100 means all."""
    return f"{floor(share * 1e6) / 1e4:.4f}".rstrip("0").rstrip(".")


def retry_words(policy: RetryPolicy) -> str:
    """Such as "3 retries, after 30 s, 1 min and 2 min, within 1 d"."""
    if policy.max_retries == 0:
        return "No retries"
    retries = "1 retry" if policy.max_retries == 1 else f"{policy.max_retries:,} retries"
    waits = [
        span(policy.interval_ms(n + 1)) for n in range(min(policy.max_retries, MOST_WAITS + 1))
    ]
    if len(waits) > MOST_WAITS:
        last = span(policy.interval_ms(policy.max_retries))
        after = f"after {waits[0]}, {waits[1]} and so on, up to {last}"
        if waits[0] == last:
            after = f"{last} apart"
    else:
        *others, last = waits
        after = f"after {', '.join(others)} and {last}" if others else f"after {last}"
    return f"{retries}, {after}, within {span(policy.max_duration_ms)}"


def facts_of(namespace: Namespace) -> Facts:
    """The options in words, by their names."""
    options = namespace.options
    seconds, payload = options.retention_seconds, options.max_payload_bytes
    kept = "as long as the service keeps them" if seconds is None else "for ever"
    return (
        ("Shards", number(namespace.num_shards)),
        ("Unfinished timers", _limit(options.max_pending)),
        ("Callbacks at once", _limit(options.concurrency)),
        ("Largest payload", "that of the service" if payload is None else f"{payload:,} bytes"),
        ("Networks of callbacks", options.callback_networks or "those of the service"),
        ("Finished timers are kept", f"for {span(seconds * 1_000)}" if seconds else kept),
        ("Retries", retry_words(options.retry_policy)),
    )


def _limit(most: int | None) -> str:
    return "no limit" if most is None else f"{most:,} at most"
