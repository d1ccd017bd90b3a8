import pytest

from duetime.domain.instants import Instant, plus_ms
from duetime.domain.wording import lateness, relative, span

NOW = Instant(1_700_000_000_000_000)


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [
        (0, "0 ms"),
        (850, "850 ms"),
        (999.7, "1 s"),
        (1_000, "1 s"),
        (9_400, "9.4 s"),
        (9_960, "10 s"),
        (59_000, "59 s"),
        (59_600, "1 min"),
        (90_000, "1.5 min"),
        (3_599_990, "1 h"),
        (36_000_000, "10 h"),
        (86_399_000, "1 d"),
        (30 * 86_400_000, "30 d"),
    ],
)
def test_span(duration_ms: float, text: str) -> None:
    assert span(duration_ms) == text


def test_relative() -> None:
    assert relative(plus_ms(NOW, 9_000), NOW) == "in 9 s"
    assert relative(plus_ms(NOW, -180_000), NOW) == "3 min ago"
    assert relative(NOW, NOW) == "now"


def test_lateness() -> None:
    assert lateness(1.234) == "1.2 ms late"
    assert lateness(-0.31) == "0.3 ms early"
    assert lateness(61_000) == "1 min late"
    assert lateness(None) == "-"
