"""The verdict on a timer: one sentence that says why it fired when it did, or why it has not."""

from collections import Counter
from collections.abc import Sequence
from shlex import quote

from msgspec import Struct

from duetime.domain.instants import Instant, format_instant
from duetime.domain.lateness.waits import WaitCause
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.domain.timer import Attempt, Timer, TimerStatus
from duetime.domain.transitions import was_due_at
from duetime.ports.endpoints import EndpointState, FiringReport
from duetime.service.explaining.explanation import Period
from duetime.service.explaining.sentences import advice_of, endpoint_text, length_text

ON_TIME = 20_000
"""Microseconds of lateness up to which a timer fired on time."""

_NAMES = {
    WaitCause.CLAIM: "waiting to be claimed",
    WaitCause.ENGINE: "waiting in a busy node",
    WaitCause.LANE: "waiting in the lane of its endpoint",
    WaitCause.SLOTS: "waiting for a free slot",
    WaitCause.BREAKER: "waiting for its endpoint's breaker to close",
    WaitCause.PAUSED: "waiting for its paused endpoint to be resumed",
    WaitCause.QUOTA: "waiting for its namespace's quota",
    WaitCause.SHORTAGE: "waiting for a resource of the node",
    WaitCause.STORE: "waiting for the store",
    WaitCause.CLOCK: "skipped by the clock",
    WaitCause.HANDOVER: "while its shard moved to another node",
    WaitCause.FAILOVER: "until another node took over from one that was gone",
    WaitCause.NODE_DOWN: "while no node was running",
    WaitCause.NOT_RECORDED: "not recorded",
    WaitCause.ACCEPTED_LATE: "before it was created",
    WaitCause.RETRY_POLICY: "between attempts, by its retry policy",
    WaitCause.ENDPOINT: "in attempts that failed",
}


class Verdict(Struct, frozen=True):
    sentence: str
    advice: str | None = None


def verdict_of(
    timer: Timer,
    attempts: Sequence[Attempt],
    periods: Sequence[Period],
    late: int | None,
    report: FiringReport,
    now: Instant,
) -> Verdict:
    """`late` is that of the explanation, and `attempts` are those of the firing."""
    match timer.status:
        case TimerStatus.COMPLETED:
            return _completed(timer, attempts, periods, late)
        case TimerStatus.FAILED:
            return _failed(timer, attempts)
        case TimerStatus.CANCELED:
            return Verdict(f"Canceled at {format_instant(timer.updated_at)}: it does not fire.")
        case _:
            return _unfinished(timer, attempts, periods, late, report, now)


def _typed(timer: Timer) -> str:
    """The timer as a person types it for a command."""
    namespace, id = timer.key.namespace, quote(timer.key.id)
    return id if namespace == DEFAULT_NAMESPACE else f"{id} --namespace {quote(namespace)}"


def _completed(
    timer: Timer, attempts: Sequence[Attempt], periods: Sequence[Period], late: int | None
) -> Verdict:
    if late is None or not attempts:
        return Verdict("Completed. Its attempts are not recorded.")
    number = attempts[-1].number
    at_attempt = f" at attempt {number}" if number > 1 else ""
    answer = periods[-1] if periods and periods[-1].cause is WaitCause.ENDPOINT else None
    took = f"; the answer took {length_text(answer.microseconds)}" if answer is not None else ""
    if late < ON_TIME:
        advice = None
        if answer is not None and answer.microseconds > 1_000_000:
            advice = advice_of(WaitCause.ENDPOINT, timer)
        return Verdict(
            f"Fired on time{at_attempt}: {length_text(late)} after its instant{took}.", advice
        )
    main, part = _main_cause(periods[:-1] if answer is not None else periods)
    return Verdict(
        f"Fired {length_text(late)} late{at_attempt}: {length_text(part)} of it"
        f" {_NAMES[main]}{took}.",
        _advice_afterwards(main, timer),
    )


def _advice_afterwards(cause: WaitCause, timer: Timer) -> str | None:
    """Advice about a wait that is over. After a pause, there is nothing to do."""
    return None if cause is WaitCause.PAUSED else advice_of(cause, timer)


def _failed(timer: Timer, attempts: Sequence[Attempt]) -> Verdict:
    made = attempts[-1].number if attempts else timer.attempt
    why = timer.last_error or "no error is recorded"
    policy = timer.retry_policy
    if policy is None or policy.max_retries == 0:
        left = "It has no retries."
    elif timer.failures > policy.max_retries:
        retries = policy.max_retries
        left = "Its 1 retry is used up." if retries == 1 else f"Its {retries} retries are used up."
    else:
        left = "No retry follows: the time for retries was over, or this failure is final."
    tried = "1 attempt" if made == 1 else f"{made} attempts"
    return Verdict(
        f"Failed after {tried}: {why}. {left}",
        f"Mend the receiver, then fire the timer once more: `duetime redrive {_typed(timer)}`.",
    )


def _unfinished(
    timer: Timer,
    attempts: Sequence[Attempt],
    periods: Sequence[Period],
    late: int | None,
    report: FiringReport,
    now: Instant,
) -> Verdict:
    trouble = _trouble(timer, report)
    if timer.status is TimerStatus.PENDING and attempts and not report.waits and timer.due_at > now:
        last = attempts[-1]
        left = length_text(timer.due_at - now)
        return Verdict(
            f"Waiting for its retry, planned for {format_instant(timer.due_at)} (in {left}):"
            f" attempt {last.number} ended with: {last.error}.",
            advice_of(WaitCause.RETRY_POLICY, timer),
        )
    if _is_executed_elsewhere(timer, report) and was_due_at(timer) <= now:
        return _elsewhere(timer, report)
    if late is None:
        left = length_text(max(0, timer.due_at - now))
        sentence = f"Not due yet: it fires in {left}, at {format_instant(timer.due_at)}."
        if trouble is None or (report.owner is not None and trouble == _ownership(timer, report)):
            return Verdict(sentence)
        return Verdict(sentence, trouble.sentence)
    overdue = f"Due for {length_text(late)}"
    if report.sent_at is not None:
        answer = periods[-1].microseconds if periods else 0
        return Verdict(
            f"{overdue}: attempt {timer.attempt} is under way to {endpoint_text(timer)}, without an"
            f" answer for {length_text(answer)}.",
            "Wait for the answer, or for the callback's timeout.",
        )
    if trouble is not None:
        return Verdict(f"{overdue}: {trouble.sentence}", trouble.advice)
    if report.waits_for is None and periods:
        main, part = _main_cause(periods)
        return Verdict(
            f"{overdue}, and about to be sent: {length_text(part)} of it {_NAMES[main]}.",
            _advice_afterwards(main, timer),
        )
    cause = report.waits_for or WaitCause.CLAIM
    again = ""
    if timer.status is TimerStatus.PENDING and timer.due_at > now:
        again = f" It is tried again at {format_instant(timer.due_at)}."
    return Verdict(
        f"{overdue}: {_reason_now(cause, timer, report)}{again}",
        advice_of(cause, timer),
    )


def _is_executed_elsewhere(timer: Timer, report: FiringReport) -> bool:
    return timer.status is TimerStatus.EXECUTING and not report.owns_shard


def _elsewhere(timer: Timer, report: FiringReport) -> Verdict:
    """The verdict on an attempt that another node has claimed, and may have sent."""
    advice = _ownership(timer, report).advice
    if report.owner is None:
        return Verdict(
            f"Attempt {timer.attempt} was claimed and may have been sent, but no living node owns"
            " its shard.",
            advice,
        )
    return Verdict(
        f"Attempt {timer.attempt} is waiting to be sent or under way: its shard belongs to"
        f" {_owner_text(report)}, which knows more.",
        advice,
    )


def _owner_text(report: FiringReport) -> str:
    where = f" at {report.owner_url}" if report.owner_url else ""
    return f"node {report.owner}{where}"


def _ownership(timer: Timer, report: FiringReport) -> Verdict:
    """The verdict of a node that does not own the shard."""
    if report.owner is None:
        return Verdict(
            "no living node owns its shard.",
            "Start a node, or see `duetime cluster`; a fail-over takes LEASE_SECONDS at most.",
        )
    if report.owner_url is not None and report.owner_url == report.node_url:
        advice = "Repeat the command until that node answers: it shares its address with this one."
    else:
        server = report.owner_url or "URL"
        advice = f"Ask that node: `duetime explain {_typed(timer)} --server {server}`."
    sentence = f"its shard belongs to {_owner_text(report)}, which knows why it waits."
    return Verdict(sentence, advice)


def _trouble(timer: Timer, report: FiringReport) -> Verdict | None:
    """The reason for which no timer of the shard is sent, as far as this node knows."""
    if report.disk_is_full:
        return Verdict(
            "the disk is full, so claims cannot be written.",
            "Make room on the disk of the database; the service goes on by itself.",
        )
    if not report.owns_shard:
        return _ownership(timer, report)
    if not report.is_running:
        return Verdict(
            "the engine of its node does not run, most likely because the store is away.",
            "See `duetime health` and the log of the node.",
        )
    if report.endpoint is not None and report.endpoint.pause is not None:
        pause = report.endpoint.pause
        reason = "" if pause.reason is None else f" ({pause.reason})"
        return Verdict(
            f"{pause.endpoint} is paused since {format_instant(pause.paused_at)} by"
            f" {pause.paused_by}{reason}.",
            advice_of(WaitCause.PAUSED, timer),
        )
    if report.clock_ahead_ms is not None:
        ahead = report.clock_ahead_ms
        side = "ahead of" if ahead > 0 else "behind"
        return Verdict(
            f"the node's clock is {abs(ahead):.0f} ms {side} the store's.",
            "Synchronise the clocks (NTP).",
        )
    return None


def _reason_now(cause: WaitCause, timer: Timer, report: FiringReport) -> str:
    endpoint = report.endpoint
    if cause is WaitCause.BREAKER and endpoint is not None:
        since = "" if endpoint.opened_at is None else f" since {format_instant(endpoint.opened_at)}"
        state = "open" if endpoint.state is not EndpointState.CLOSED else "closing"
        return (
            f"the breaker of {endpoint.endpoint} is {state}{since}"
            f" (last error: {endpoint.last_error})."
        )
    if cause is WaitCause.QUOTA:
        return (
            f"namespace '{timer.key.namespace}' has {report.quota_in_flight} of"
            f" {report.quota_limit} callbacks under way on this node."
        )
    if cause is WaitCause.LANE and endpoint is not None:
        return (
            f"{endpoint.endpoint} has {endpoint.in_flight} callbacks under way and"
            f" {endpoint.waiting} waiting."
        )
    return f"{_NAMES[cause]}."


def _main_cause(periods: Sequence[Period]) -> tuple[WaitCause, int]:
    sums: Counter[WaitCause] = Counter()
    for period in periods:
        sums[period.cause] += period.microseconds
    if not sums:
        return WaitCause.ENGINE, 0
    return sums.most_common(1)[0]
