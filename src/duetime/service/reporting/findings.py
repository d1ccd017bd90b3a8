"""The words for everything that can be wrong, from the numbers about it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from urllib.parse import quote

from duetime.domain.instants import Instant
from duetime.ports.endpoints import EndpointPause, EndpointState, EndpointStatus, HeldTimers
from duetime.service.reporting.bus_report import BusReport
from duetime.service.reporting.cluster_report import ClusterReport
from duetime.service.reporting.problems import Finding, Severity

LAGGING_COMMANDS = 10_000
"""Commands that may wait at the broker without being a problem."""

OWNERLESS_SECONDS = 5.0
"""Time for which a shard is without an owner while members come and go."""

SLOW_STORE_SECONDS = 0.5
"""Time after which the store should have answered a simple question."""

MOST_FAILED_QUIETLY = 10
"""Timers that may fail within the time that is looked at."""

SHOWN_ERROR_CHARACTERS = 160

_BREAKER = (
    "A few attempts at a time look whether it answers again. To keep timers from failing while it"
    " is mended, pause the endpoint."
)

_USUAL_PORTS = {"https": ":443", "http": ":80"}


def number(count: int) -> str:
    return f"{count:,}"


def timers(count: int, *, is_all: bool = True) -> str:
    """A number of timers in words."""
    if not is_all:
        return f"More than {number(count)} timers"
    return "1 timer" if count == 1 else f"{number(count)} timers"


def name_of(endpoint: str) -> str:
    """An endpoint as people say it: the host of a URL, with the port unless it is the usual one."""
    scheme, _, place = endpoint.partition("://")
    return (place or endpoint).removesuffix(_USUAL_PORTS.get(scheme, ""))


def behind_breakers(
    held: Iterable[HeldTimers], statuses: Sequence[EndpointStatus]
) -> Iterable[Finding]:
    """Open breakers of endpoints that are not paused, with the timers that wait behind them or
    without any."""
    by_endpoint: dict[str, dict[str, int]] = defaultdict(dict)
    since: dict[str, Instant] = {}
    for group in held:
        groups = by_endpoint[group.endpoint]
        groups[group.namespace] = groups.get(group.namespace, 0) + group.timers
        if group.since is not None:
            since[group.endpoint] = min(group.since, since.get(group.endpoint, group.since))
    known = {each.endpoint: each for each in statuses}
    for endpoint, groups in by_endpoint.items():
        status = known.get(endpoint)
        if status is not None and status.pause is not None:
            continue
        yield Finding(
            kind="breaker_open",
            subject=endpoint,
            severity=Severity.WARNING,
            sentence=_waits_behind_breaker(name_of(endpoint)),
            concerns=groups,
            since=since.get(endpoint),
            href=_endpoint_page(endpoint),
            advice=_BREAKER,
            detail=_last_error(status),
            runbook="alerts/breaker-open",
        )
    for status in statuses:
        is_open = status.pause is None and status.state is not EndpointState.CLOSED
        if is_open and status.endpoint not in by_endpoint:
            yield Finding(
                kind="breaker_open",
                subject=status.endpoint,
                severity=Severity.WARNING,
                sentence=_always(f"The breaker of {name_of(status.endpoint)} is open"),
                since=status.opened_at,
                href=_endpoint_page(status.endpoint),
                advice=_BREAKER,
                detail=_last_error(status),
                runbook="alerts/breaker-open",
            )


def of_pauses(
    statuses: Iterable[EndpointStatus], put_off_elsewhere: Mapping[str, int], *, are_all: bool
) -> Iterable[Finding]:
    """Paused endpoints, with the timers that wait for them here and elsewhere. If these are not
    `are_all`, more may wait."""
    for status in statuses:
        if status.pause is not None:
            waiting = status.waiting + put_off_elsewhere.get(status.endpoint, 0)
            yield _paused(status.pause, waiting, is_all=are_all)


def _paused(pause: EndpointPause, waiting: int, *, is_all: bool) -> Finding:
    words = f"{name_of(pause.endpoint)} is paused"
    if waiting:
        at_least = "" if is_all else "at least "
        verb = "waits" if waiting == 1 else "wait"
        words += f", and {at_least}{timers(waiting)} {verb} for it"
    return Finding(
        kind="endpoint_paused",
        subject=pause.endpoint,
        severity=Severity.NOTICE,
        sentence=_always(words),
        since=pause.paused_at,
        href=_endpoint_page(pause.endpoint),
        advice=f"Paused by {pause.paused_by}{f': {pause.reason}' if pause.reason else ''}.",
    )


def overdue_timers(overdue: Mapping[str, int], *, are_all: bool) -> Iterable[Finding]:
    if not any(overdue.values()):
        return
    yield Finding(
        kind="timers_overdue",
        severity=Severity.CRITICAL,
        sentence=lambda count: (
            f"{timers(count, is_all=are_all)} should have fired more than a minute ago"
        ),
        concerns={name: count for name, count in overdue.items() if count},
        href="/ui/timers?status=pending&due_until=now-1m&sort=execute_at",
        advice="No node has claimed them yet: the service is down, overloaded or cut off.",
        runbook="alerts/overdue-growing",
    )


def failing_timers(failed: Mapping[str, int]) -> Iterable[Finding]:
    """`failed` has the timers that failed within the last hour, by namespace."""
    rising = {name: count for name, count in failed.items() if count > 0}
    if sum(rising.values()) <= MOST_FAILED_QUIETLY:
        return
    yield Finding(
        kind="timers_failing",
        severity=Severity.WARNING,
        sentence=lambda count: f"{timers(count)} failed in the last hour",
        has_period=True,
        concerns=rising,
        href="/ui/timers?status=failed",
        advice="Look at their errors, and redrive them once the cause is mended.",
        runbook="alerts/failed-growing",
    )


def missed_objective(namespace: str, objective: str, budget_left: float) -> Finding:
    """`budget_left` is below 0 by the share of the budget that was overdrawn."""
    return Finding(
        kind="objective_missed",
        subject=namespace,
        severity=Severity.WARNING,
        sentence=_always(
            f"Namespace {namespace} misses its lateness objective ({objective}):"
            f" {number(round((1 - budget_left) * 100))} % of the late attempts that it allows"
        ),
        concerns={namespace: 0},
        href=f"/ui/namespaces/{quote(namespace, safe='')}",
        advice="Nothing is lost. The budget recovers as late attempts leave the window.",
        runbook="alerts/objective-missed",
    )


def of_store(*, is_away: bool, answer_seconds: float | None, is_running: bool) -> Iterable[Finding]:
    if is_away:
        yield Finding(
            kind="store_away",
            severity=Severity.CRITICAL,
            sentence=_always("The store does not answer: nothing fires and nothing is created"),
            is_for_all=True,
            advice="Everything accepted is safe, and fires when the store is back. Mend the"
            " database: there is no need to restart the service.",
            runbook="alerts/store-errors",
        )
        return
    if answer_seconds is not None and answer_seconds >= SLOW_STORE_SECONDS:
        yield Finding(
            kind="store_slow",
            severity=Severity.WARNING,
            sentence=_always(
                f"The store is slow: a simple question took {answer_seconds:.1f} seconds"
            ),
            is_for_all=True,
            advice="Look for a busy disk, locks or another program in the database.",
            runbook="alerts/store-slow",
        )
    if not is_running:
        yield Finding(
            kind="engine_stopped",
            severity=Severity.CRITICAL,
            sentence=_always("The engine of this node does not work: its timers wait"),
            is_for_all=True,
            after_seconds=OWNERLESS_SECONDS,
            advice="It starts again by itself once the store answers. If the store works and other"
            " nodes run, restart this node.",
            runbook="alerts/engine-not-running",
        )


def of_disk(*, free_bytes: int, reserve_bytes: int, is_short: bool, is_full: bool) -> list[Finding]:
    if not (is_short or is_full):
        return []
    words = (
        "The disk of the store is full: nothing can be written, and timers wait"
        if is_full
        else f"The disk of the store is short: {_size(free_bytes)} are free, and below"
        f" {_size(reserve_bytes)} no new timers are accepted"
    )
    return [
        Finding(
            kind="disk",
            severity=Severity.CRITICAL,
            sentence=_always(words),
            is_for_all=True,
            advice="Make room on the disk. Everything accepted still fires.",
            runbook="disk-full",
        )
    ]


def of_clocks(report: ClusterReport, limit_ms: float) -> Iterable[Finding]:
    for member in report.members:
        offset_ms = member.facts.clock_offset_ms
        if offset_ms is None or abs(offset_ms) <= limit_ms:
            continue
        direction, effect = ("behind", "late") if offset_ms > 0 else ("ahead of", "early")
        yield Finding(
            kind="clock_skewed",
            subject=member.node,
            severity=Severity.WARNING,
            sentence=_always(
                f"The clock of {member.facts.host or member.node} is {abs(offset_ms) / 1_000:.1f}"
                f" seconds {direction} the store's: its timers fire that much too {effect}"
            ),
            href="/ui/cluster",
            advice="Synchronise the clocks (NTP).",
            runbook="clock-trouble",
        )


def of_shards(report: ClusterReport) -> Iterable[Finding]:
    lost = len(report.without_owner)
    if not lost:
        return
    yield Finding(
        kind="shards_without_owner",
        severity=Severity.CRITICAL,
        sentence=_always(
            f"{number(lost)} of {number(len(report.owners))} shards have no owner:"
            " their timers wait"
        ),
        after_seconds=OWNERLESS_SECONDS,
        href="/ui/cluster",
        advice="Bring a node with a working database back: it takes all of them.",
        runbook="alerts/shards-without-owner",
    )


def silent_member(node: str, seconds: float) -> Finding:
    words = f"Node {node} has not been heard of for {seconds:.0f} seconds"
    return _of_member("member_silent", node, Severity.WARNING, words, has_period=True)


def lost_member(node: str, at: Instant) -> Finding:
    words = f"Node {node} was lost, and others took its shards"
    return _of_member("member_lost", node, Severity.NOTICE, words, at)


def _of_member(
    kind: str,
    node: str,
    severity: Severity,
    words: str,
    since: Instant | None = None,
    *,
    has_period: bool = False,
) -> Finding:
    return Finding(
        kind=kind,
        subject=node,
        severity=severity,
        sentence=_always(words),
        since=since,
        has_period=has_period,
        href="/ui/cluster",
        advice="Start it again if it was not stopped on purpose. There is nothing to clean up.",
        runbook="alerts/member-missing",
    )


def of_bus(report: BusReport | None) -> Iterable[Finding]:
    if report is None:
        return
    if not report.is_connected or not report.is_consuming:
        words = (
            f"No commands are consumed from {report.broker}"
            if report.is_connected
            else f"The broker {report.broker} does not answer: commands wait there, events here"
        )
        yield Finding(
            kind="bus_away",
            severity=Severity.CRITICAL,
            sentence=_always(words),
            after_seconds=2.0,
            href="/ui/bus",
            advice="Nothing is lost. Bring the broker back with its data: the service connects"
            " again by itself.",
            runbook="broker-away",
        )
    elif report.lag is not None and report.lag > LAGGING_COMMANDS:
        yield Finding(
            kind="bus_lagging",
            severity=Severity.WARNING,
            sentence=_always(f"{number(report.lag)} commands wait at the broker"),
            href="/ui/bus",
            advice="Their timers do not exist yet. Look whether the store is slow or short of room;"
            " on PostgreSQL, more nodes share the commands.",
            runbook="alerts/bus-lag",
        )


def of_nats(server: str, *, is_connected: bool) -> list[Finding]:
    if is_connected:
        return []
    words = f"NATS at {server} does not answer: callbacks to it fail and are tried again"
    return [
        Finding(
            kind="nats_away",
            severity=Severity.WARNING,
            sentence=_always(words),
            after_seconds=2.0,
            advice="Bring the server back, then redrive the timers that failed for good.",
            runbook="broker-away",
        )
    ]


def _always(sentence: str) -> Callable[[int], str]:
    """A sentence without a number of timers."""
    return lambda count: sentence


def _waits_behind_breaker(name: str) -> Callable[[int], str]:
    def sentence(count: int) -> str:
        verb = "waits" if count == 1 else "wait"
        return f"{timers(count)} for {name} {verb} behind an open breaker"

    return sentence


def _last_error(status: EndpointStatus | None) -> str:
    if status is None or not status.last_error:
        return ""
    error = status.last_error
    if len(error) > SHOWN_ERROR_CHARACTERS:
        error = f"{error[: SHOWN_ERROR_CHARACTERS - 1]}…"
    return f"Last error: {error}"


def _endpoint_page(endpoint: str) -> str:
    return f"/ui/endpoints?find={quote(endpoint, safe='')}"


def _size(count: int) -> str:
    if count >= 10 * 2**30:
        return f"{count / 2**30:,.0f} GB"
    return f"{count / 2**20:,.0f} MB"
