"""The handler of the v1 API that says what is wrong."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct
from starlette.types import Receive, Scope

from duetime.api.http.answers import Answer
from duetime.api.http.caller import caller_of
from duetime.api.http.types import InstantText
from duetime.api.v1.answers import ok
from duetime.domain.instants import format_instant
from duetime.service.reporting.problems import ProblemWatch, Severity

_SEVERITIES: dict[Severity, Literal["critical", "warning", "notice"]] = {
    Severity.CRITICAL: "critical",
    Severity.WARNING: "warning",
    Severity.NOTICE: "notice",
}


class ProblemAnswer(Struct, frozen=True, rename="camel"):
    """Something that is wrong."""

    kind: Annotated[str, Meta(description="A word that stays the same, such as `breaker_open`.")]
    subject: Annotated[
        str, Meta(description="The endpoint, namespace or node that it is about, if there is one.")
    ]
    severity: Literal["critical", "warning", "notice"]
    sentence: Annotated[str, Meta(description="The problem in words, for people.")]
    since: InstantText
    advice: str
    detail: Annotated[str, Meta(description="Empty for keys that do not see all namespaces.")]
    runbook: Annotated[str, Meta(description="A page of the documentation below `runbooks`.")]


class ProblemListAnswer(Struct, frozen=True):
    """The problems, the worst first."""

    problems: Sequence[ProblemAnswer]


class ProblemsV1:
    def __init__(self, problems: ProblemWatch) -> None:
        self._problems = problems

    async def page(self, scope: Scope, receive: Receive) -> Answer:
        problems = self._problems.problems(caller_of(scope).access)
        return ok(
            ProblemListAnswer(
                [
                    ProblemAnswer(
                        kind=each.kind,
                        subject=each.subject,
                        severity=_SEVERITIES[each.severity],
                        sentence=each.sentence,
                        since=format_instant(each.since),
                        advice=each.advice,
                        detail=each.detail,
                        runbook=each.runbook,
                    )
                    for each in problems
                ]
            )
        )
