"""Charts: what they show, to eyes, to pointers and to screen readers."""

from xml.etree import ElementTree

import pytest

from duetime.domain.instants import Instant
from duetime.ports.inspection import DueCount
from duetime.service.reporting.due_outlook import Horizon, Outlook
from duetime.service.reporting.recent_figures import SHOWN_SLOTS, SlotSum
from duetime.web.charts.bars import LEAST_HEIGHT, Bar, bar_chart
from duetime.web.charts.drawing import Drawing
from duetime.web.charts.due_chart import due_chart
from duetime.web.charts.frame import Mark
from duetime.web.charts.lines import Line, line_chart
from duetime.web.charts.recent_charts import NOT_KNOWN, recent_charts
from duetime.web.charts.scale import scale_to, short, short_ms
from duetime.web.charts.shard_grid import shard_grid

HOSTILE = '"><script>alert(1)</script>'


def parsed(drawing: Drawing) -> ElementTree.Element:
    """A drawing is well-formed, whatever is in it, and has no style of its own."""
    markup = str(drawing)
    assert "style=" not in markup
    assert "<script" not in markup
    return ElementTree.fromstring(markup)


def of_class(top: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [each for each in top.iter() if name in each.get("class", "").split()]


def titles(top: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in top.iter("title")]


@pytest.mark.parametrize(
    ("highest", "ticks"),
    [
        (0, [0, 0.5, 1]),
        (1, [0, 0.5, 1]),
        (7, [0, 2.5, 5, 7.5]),
        (10, [0, 5, 10]),
        (99, [0, 50, 100]),
        (240, [0, 100, 200, 300]),
        (0.004, [0, 0.002, 0.004]),
        (float("nan"), [0, 0.5, 1]),
        (float("inf"), [0, 0.5, 1]),
    ],
)
def test_scales_have_round_numbers(highest: float, ticks: list[float]) -> None:
    assert list(scale_to(highest).ticks) == ticks


def test_counts_have_no_fractions() -> None:
    assert list(scale_to(1, whole=True).ticks) == [0, 1]
    assert list(scale_to(7, whole=True).ticks) == [0, 3, 6, 9]


def test_a_scale_reaches_every_value_with_few_lines() -> None:
    for value in (0.03, 0.9, 1.01, 3, 11, 19.9, 101, 9_999, 123_456):
        scale = scale_to(value)
        assert scale.top >= value
        assert scale.top <= 3.4 * value
        assert len(scale.ticks) <= 5


def test_numbers_on_axes_are_short() -> None:
    assert [short(value) for value in (0, 0.5, 12, 1_200, 10_000, 2.5e6)] == [
        "0", "0.5", "12", "1.2k", "10k", "2.5M",
    ]  # fmt: skip
    assert [short_ms(ms) for ms in (0.2, 40, 1_500, 90_000, 7_200_000)] == [
        "0.2 ms", "40 ms", "1.5 s", "1.5 min", "2 h",
    ]  # fmt: skip


def test_a_small_bar_beside_a_huge_one_is_seen() -> None:
    chart = parsed(
        bar_chart(
            [Bar(1, "one"), Bar(9_999, "many"), Bar(0, "none")], [], label="L", description="D"
        )
    )
    heights = [float(bar.get("height", "0")) for bar in of_class(chart, "bar")]
    assert heights[0] == LEAST_HEIGHT
    assert heights[1] > 30 * LEAST_HEIGHT
    assert len(heights) == 2
    assert titles(chart) == ["one", "many", "none"]
    assert chart.get("role") == "img"
    assert chart.get("aria-label") == "L. D"


def test_a_bar_that_is_cut_off_has_a_gap() -> None:
    whole = parsed(bar_chart([Bar(10, "w")], [], label="", description=""))
    cut = parsed(bar_chart([Bar(10, "c", is_cut=True)], [], label="", description=""))
    assert len(of_class(whole, "bar")) == 1
    assert len(of_class(cut, "bar")) == 2


def test_hostile_words_stay_words() -> None:
    bars = parsed(bar_chart([Bar(1, HOSTILE)], [Mark(0, HOSTILE)], label=HOSTILE, description=""))
    assert titles(bars) == [HOSTILE]
    assert bars.get("aria-label") == f"{HOSTILE}. "
    assert HOSTILE in [each.text for each in bars.iter("text")]
    parsed(shard_grid([0], label=HOSTILE, description=HOSTILE))
    line = Line("a", [1.0], "line-1")
    parsed(line_chart([line], [], label=HOSTILE, description="", words_at=lambda _: HOSTILE))


def test_a_line_has_gaps_where_nothing_is_known() -> None:
    values = [None, 1.0, 2.0, None, 3.0, None]
    chart = parsed(
        line_chart(
            [Line("a", values, "line-1")], [], label="", description="", words_at=lambda _: ""
        )
    )
    paths = [path.get("d", "") for path in of_class(chart, "line")]
    assert len(paths) == 2
    assert paths[0].startswith("M1 ")
    assert paths[1].startswith("M3.6 "), "a single value is a short line"


def test_charts_without_values_are_drawn() -> None:
    for values in ([None] * 5, [0.0] * 5):
        line = Line("a", values, "line-1", is_filled=True)
        parsed(line_chart([line], [], label="", description="", words_at=lambda _: ""))
    parsed(shard_grid([], label="", description=""))


def test_thousands_of_shards_stay_small() -> None:
    grid = shard_grid([shard % 3 for shard in range(4_096)], label="", description="")
    parsed(grid)
    assert len(str(grid)) < 120_000
    owners = [None if shard == 7 else shard // 2_048 for shard in range(4_096)]
    top = parsed(shard_grid(owners, label="", description=""))
    assert [path.get("class") for path in top] == ["owner-1", "nobody", "owner-2"]


def test_the_due_chart_tells_where_it_is_cut_off() -> None:
    few = DueCount(3, is_all=True), DueCount(10_000, is_all=False), DueCount(1, is_all=True)
    bars = [*few, *[DueCount(0, True)] * 57]
    chart = due_chart(Outlook(Horizon.HOUR, Instant(0), bars, 2))
    assert chart.total == "10,004+"
    assert chart.cut == "10,000"
    assert list(chart.rows) == [
        ("within 1 min", "3"),
        ("in 1 min to 2 min", "10,000+"),
        ("in 2 min to 3 min", "1"),
    ]
    assert chart.leaves_out == 2
    top = parsed(chart.drawing)
    assert titles(top)[1] == "in 1 min to 2 min: 10,000+ timers"
    assert titles(top)[2] == "in 2 min to 3 min: 1 timer"
    assert "10,004+ in all" in top.get("aria-label", "")


def test_the_charts_of_the_last_minutes_say_what_they_do_not_know() -> None:
    unknown = [SlotSum(began_at=Instant(0))] * SHOWN_SLOTS
    charts = recent_charts(unknown)
    assert (charts.fired, charts.p99, charts.members) == (NOT_KNOWN, NOT_KNOWN, 0)
    assert not charts.knows_all
    assert "15 min ago: not known" in titles(parsed(charts.rates))
    assert {row.fired for row in charts.rows} == {NOT_KNOWN}


def test_the_charts_of_the_last_minutes_show_the_last_slot() -> None:
    slot = SlotSum(
        began_at=Instant(0),
        attempts_per_second=12.4,
        completed_per_second=12.0,
        p50_ms=0.84,
        p99_ms=2.1,
        members=3,
    )
    charts = recent_charts([slot] * SHOWN_SLOTS)
    assert (charts.fired, charts.p50, charts.p99) == ("12.4", "0.8 ms", "2.1 ms")
    assert charts.members == 3
    assert charts.knows_all
    assert len(charts.rows) == 15
    assert "5 min ago: p50 0.8 ms, p99 2.1 ms" in titles(parsed(charts.lateness))
    assert len(str(charts.rates)) < 20_000
