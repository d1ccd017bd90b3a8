"""Timers whose endpoint fails twice: three attempts each, none early, none repeated."""

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from bench.harness.callback_answers import FAILURES, Manner
from bench.harness.create_bodies import V1Form
from bench.harness.load_generator import generate
from bench.harness.receiver import Callback, Receiver
from bench.harness.server import Server
from bench.limits.http_clients import COMPARED_CONCURRENCY, PostFigures, Posts, measure_client
from bench.measurements.firing import GRACE_SECONDS, creation_faults
from bench.measurements.v1.batches import all_at, batch_load, due_soon
from bench.measurements.v1.listing import TimerSeen, read_all, read_page
from bench.scale import V1Scale
from duetime.domain.instants import parse_instant

ATTEMPTS = FAILURES + 1
INTERVALS_MS = (200, 400)
"""Least intervals between the attempts."""
RETRY_POLICY: dict[str, int | str] = {
    "maxRetries": 5,
    "initialInterval": f"{INTERVALS_MS[0]}ms",
    "maxInterval": "1s",
}
POLL_SECONDS = 0.02


class RetriesAudit(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of wrong timers, according to the receiver and to the lists."""

    wrong_attempts: int
    """Timers that did not arrive as attempts 1, 2 and 3."""
    early: int
    """Timers with an attempt before its due instant or before the end of its interval."""
    wrong_ids: int
    """Timers with several webhook-ids, or with one that another timer has too."""
    not_completed: int
    wrong_in_lists: int
    """Timers whose listed attempts are not three, or were sent before they were due."""

    @property
    def faults(self) -> list[str]:
        counts = {
            f"not attempted exactly {ATTEMPTS} times": self.wrong_attempts,
            "attempted early": self.early,
            "without a unique webhook-id": self.wrong_ids,
            "not completed": self.not_completed,
            "with wrong attempts in lists": self.wrong_in_lists,
        }
        return [f"retries: {count} {kind}" for kind, count in counts.items() if count]


class RetriesFigures(msgspec.Struct, frozen=True, kw_only=True):
    """`seconds` count from the due instant until the lists show no unfinished timer.

    `limit_seconds` is the sum of the intervals and of a bare loop of the client with as many
    posts; `ratio` is `seconds` divided by it."""

    count: int
    attempts: int
    seconds: float
    limit_seconds: float
    ratio: float
    client: PostFigures
    audit: RetriesAudit
    faults: list[str]


def measure_retries(server: Server, receiver: Receiver, scale: V1Scale) -> RetriesFigures:
    """The default namespace must be empty."""
    count = scale.retried_timers
    posts = Posts(url=receiver.url, concurrency=COMPARED_CONCURRENCY, count=ATTEMPTS * count)
    client = measure_client(posts)
    receiver.forget()
    with Receiver(Manner.FAIL_FIRST) as failing:
        due_us = due_soon(count)
        form, first_number = V1Form(retry_policy=RETRY_POLICY), failing.reserve(count)
        creates = generate(
            batch_load(
                server, failing.url, count, all_at(due_us), form=form, first_number=first_number
            )
        )
        failing.wait_for(ATTEMPTS * count, due_us / 1e6 - time.time() + GRACE_SECONDS)
        settled_us, settled = wait_until_nothing_is_left(server)
        callbacks = failing.take()
    record = audit_retries(callbacks, list(read_all(server, {})), first_number, count)
    seconds = (settled_us - due_us) / 1e6
    limit_seconds = sum(INTERVALS_MS) / 1_000 + client.seconds
    return RetriesFigures(
        count=count,
        attempts=len(callbacks),
        seconds=round(seconds, 3),
        limit_seconds=round(limit_seconds, 3),
        ratio=round(seconds / limit_seconds, 2),
        client=client,
        audit=record,
        faults=[
            *creation_faults("retries", creates, count, due_us),
            *record.faults,
            *([] if settled else [f"retries: unfinished after {GRACE_SECONDS:.0f} s"]),
        ],
    )


def wait_until_nothing_is_left(server: Server) -> tuple[int, bool]:
    """Call this after the last attempts arrived: then no executing timer becomes pending again, so
    none is missed between the two lists."""
    deadline = time.monotonic() + GRACE_SECONDS
    while True:
        left = any(
            read_page(server, {"status": status, "limit": 1}).timers
            for status in ("pending", "executing")
        )
        now_us = time.time_ns() // 1_000
        if not left or time.monotonic() > deadline:
            return now_us, not left
        time.sleep(POLL_SECONDS)


def audit_retries(
    callbacks: Iterable[Callback], listed: Sequence[TimerSeen], first_number: int, count: int
) -> RetriesAudit:
    by_number: dict[int, list[Callback]] = defaultdict(list)
    for callback in callbacks:
        by_number[callback.number].append(callback)
    expected = range(first_number, first_number + count)
    strangers = by_number.keys() - set(expected)
    timers = [by_number.get(number, []) for number in expected]
    ids = [{each.webhook_id for each in arrivals} for arrivals in timers]
    distinct = len({webhook_id for each in ids for webhook_id in each if webhook_id})
    return RetriesAudit(
        wrong_attempts=len(strangers)
        + sum([each.attempt for each in arrivals] != [1, 2, 3] for arrivals in timers),
        early=sum(map(came_early, timers)),
        wrong_ids=max(sum(len(each) != 1 for each in ids), abs(count - distinct)),
        not_completed=count - sum(timer.status == "completed" for timer in listed),
        wrong_in_lists=sum(map(listed_wrongly, listed)),
    )


def came_early(arrivals: Sequence[Callback]) -> bool:
    """The receiver answers at once, so the interval begins after the arrival."""
    if any(each.arrived_us < each.due_us for each in arrivals):
        return True
    return any(
        after.arrived_us - before.arrived_us < interval_ms * 1_000
        for before, after, interval_ms in zip(arrivals, arrivals[1:], INTERVALS_MS, strict=False)
    )


def listed_wrongly(timer: TimerSeen) -> bool:
    attempts = timer.attempts
    if [each.number for each in attempts] != list(range(1, ATTEMPTS + 1)):
        return True
    if [each.error is None for each in attempts] != [False] * FAILURES + [True]:
        return True
    return any(
        each.sent_at is None or parse_instant(each.sent_at) < parse_instant(each.due_at)
        for each in attempts
    )
