"""Problems: anything wrong, one sentence each, with the instant since when it has been so."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum

from msgspec import Struct

from duetime.background import BackgroundLoop
from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.domain.security.access import Access
from duetime.ports.clock import Clock

LOOK_SECONDS = 2.0
"""Time between two looks."""

MAX_PROBLEMS = 200
"""Problems that are known at once; beyond that, the least severe are left out."""


class Severity(IntEnum):
    """Lower is worse."""

    CRITICAL = 0
    """Timers cannot fire or be created, or will soon not."""

    WARNING = 1
    """Some timers are late or fail."""

    NOTICE = 2
    """Nothing is late yet."""


class Finding(Struct, frozen=True, kw_only=True):
    """A problem as its source sees it. `kind` and `subject` tell findings apart from one look to
    the next.

    `concerns` has the namespaces that the finding is about, each with a number of timers; None if
    it is about the whole service. Then only keys for all namespaces are shown it, unless it
    `is_for_all`. `sentence` gets the number of timers in the visible namespaces.

    `since` is for sources that know; otherwise the first look that found it counts. With
    `has_period` the sentence names the time that it is about, and a second one would confuse. A
    finding is shown once it has lasted `after_seconds`. `href` leads to the page to act on,
    `advice` says what to do, `detail` is for keys that see all namespaces, and `runbook` names a
    page below docs/runbooks.
    """

    kind: str
    subject: str = ""
    severity: Severity
    sentence: Callable[[int], str]
    concerns: Mapping[str, int] | None = None
    is_for_all: bool = False
    since: Instant | None = None
    has_period: bool = False
    after_seconds: float = 0.0
    href: str | None = None
    advice: str = ""
    detail: str = ""
    runbook: str = ""


class Problem(Struct, frozen=True, kw_only=True):
    """A finding in words, for one caller."""

    kind: str
    subject: str
    severity: Severity
    sentence: str
    since: Instant
    has_period: bool = False
    href: str | None = None
    advice: str = ""
    detail: str = ""
    runbook: str = ""


Source = Callable[[], Iterable[Finding]]
"""Looks at one part of the service, without waiting for anything."""


class ProblemWatch(BackgroundLoop):
    """Looks at every part now and then, and remembers since when each problem has lasted. Each
    process knows the problems that it sees itself, and those that other members tell."""

    name = "problems"

    def __init__(self, clock: Clock, sources: Sequence[Source]) -> None:
        super().__init__(clock)
        self._sources = list(sources)
        self._found: list[tuple[Finding, Instant]] = []
        self._first_seen: dict[tuple[str, str], Instant] = {}

    def add(self, source: Source) -> None:
        self._sources.append(source)

    async def step(self) -> None:
        self.look()
        await self.wait(LOOK_SECONDS)

    def look(self) -> None:
        now = self._clock.now()
        findings = [finding for source in self._sources for finding in source()]
        findings.sort(key=lambda each: each.severity)
        del findings[MAX_PROBLEMS:]
        self._first_seen = {
            (each.kind, each.subject): min(
                now, self._first_seen.get((each.kind, each.subject), each.since or now)
            )
            for each in findings
        }
        lasting = [(each, self._first_seen[each.kind, each.subject]) for each in findings]
        self._found = [
            (each, since)
            for each, since in lasting
            if now - since >= each.after_seconds * MICROSECONDS_PER_SECOND
        ]

    def problems(self, access: Access) -> list[Problem]:
        """The problems that concern the caller, the worst first."""
        problems = [
            _problem_of(finding, since, timers, access)
            for finding, since in self._found
            if (timers := _visible_timers(finding, access)) is not None
        ]
        problems.sort(key=lambda each: (each.severity, each.since))
        return problems


def _visible_timers(finding: Finding, access: Access) -> int | None:
    """The number of timers that the finding is about, for the caller; None if it is none of their
    business."""
    if finding.concerns is None:
        return 0 if finding.is_for_all or access.namespaces is None else None
    visible = [count for name, count in finding.concerns.items() if access.sees(name)]
    return sum(visible) if visible else None


def _problem_of(finding: Finding, since: Instant, timers: int, access: Access) -> Problem:
    return Problem(
        kind=finding.kind,
        subject=finding.subject,
        severity=finding.severity,
        sentence=finding.sentence(timers),
        since=since,
        has_period=finding.has_period,
        href=finding.href,
        advice=finding.advice,
        detail=finding.detail if access.namespaces is None else "",
        runbook=finding.runbook,
    )
