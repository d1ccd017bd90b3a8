"""The handler of the v1 API that explains a timer."""

from starlette.types import Receive, Scope

from duetime.api.http.answers import Answer
from duetime.api.http.caller import caller_of
from duetime.api.http.values import STATUS_LABELS, instant_or_none
from duetime.api.v1.answers import ok
from duetime.api.v1.explaining.types import (
    AttemptLatenessAnswer,
    ExplanationAnswer,
    PeriodAnswer,
)
from duetime.api.v1.requests import key_in_path
from duetime.domain.instants import MICROSECONDS_PER_MS, format_instant
from duetime.service.explaining import AttemptExplanation, Explaining, Explanation, Period


class ExplainingV1:
    def __init__(self, explaining: Explaining) -> None:
        self._explaining = explaining

    async def explain(self, scope: Scope, receive: Receive) -> Answer:
        key = key_in_path(scope)
        # An endpoint may be called by other teams too, so its state is not for every key.
        sees_endpoints = caller_of(scope).access.namespaces is None
        return ok(_answer_of(await self._explaining.explain(key, sees_endpoints=sees_endpoints)))


def _answer_of(explanation: Explanation) -> ExplanationAnswer:
    return ExplanationAnswer(
        namespace=explanation.key.namespace,
        id=explanation.key.id,
        status=STATUS_LABELS[explanation.status],
        verdict=explanation.verdict,
        advice=explanation.advice,
        asked_at=format_instant(explanation.asked_at),
        until_at=format_instant(explanation.until_at),
        lateness_ms=_ms(explanation.late),
        next_attempt_at=instant_or_none(explanation.next_attempt_at),
        periods=[_period(each) for each in explanation.periods],
        attempts=[_attempt(each) for each in explanation.attempts],
        node=explanation.node,
        node_url=explanation.node_url,
        live=explanation.is_live,
        owner=explanation.owner,
        owner_url=explanation.owner_url,
    )


def _period(period: Period) -> PeriodAnswer:
    return PeriodAnswer(
        from_at=format_instant(period.from_at),
        to_at=format_instant(period.to_at),
        ms=period.microseconds / MICROSECONDS_PER_MS,
        cause=period.cause.value,
        attempt=period.attempt,
        sentence=period.sentence,
        see=period.see,
    )


def _attempt(attempt: AttemptExplanation) -> AttemptLatenessAnswer:
    return AttemptLatenessAnswer(
        number=attempt.number,
        due_at=format_instant(attempt.due_at),
        sent_at=instant_or_none(attempt.sent_at),
        answered_at=instant_or_none(attempt.answered_at),
        lateness_ms=_ms(attempt.late),
        outcome=attempt.outcome.value,
        error=attempt.error,
    )


def _ms(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / MICROSECONDS_PER_MS
