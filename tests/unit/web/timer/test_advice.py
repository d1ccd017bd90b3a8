"""The advice on the page of a timer leads to pages and buttons instead of commands."""

import pytest
from msgspec.structs import replace

from duetime.domain.instants import plus_ms
from duetime.domain.lateness.waits import WaitCause
from duetime.ports.endpoints import FiringReport
from duetime.service.explaining.explaining import explanation_of
from duetime.testing import make_timer
from duetime.testing.virtual_clock import START_AT
from duetime.web.pages.timer.advice import AdvicePart, advice_parts, waits_for_resume

OURS = FiringReport(node="one", owns_shard=True, owner="one")
ENDPOINTS = AdvicePart("Endpoints", "/ui/endpoints")


@pytest.mark.parametrize(
    ("report", "link"),
    [
        (replace(OURS, waits_for=WaitCause.PAUSED), ENDPOINTS),
        (replace(OURS, waits_for=WaitCause.BREAKER), ENDPOINTS),
        (FiringReport(node="one", owns_shard=False), AdvicePart("Cluster", "/ui/cluster")),
    ],
)
def test_pages_take_the_place_of_commands(report: FiringReport, link: AdvicePart) -> None:
    timer, now = make_timer(execute_at=START_AT), plus_ms(START_AT, 2_000)
    explanation = explanation_of(timer, report, now)
    parts = advice_parts(explanation, timer, sees_everything=True)
    assert link in parts
    assert not any(part.is_command for part in parts)
    assert waits_for_resume(explanation, timer) == (report.waits_for is WaitCause.PAUSED)
    # Such pages are not for everybody.
    parts = advice_parts(explanation, timer, sees_everything=False)
    assert not any(part.link for part in parts)
    assert any(part.is_command for part in parts)
