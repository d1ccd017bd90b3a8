"""The Grafana dashboard: whole, and every query answered by a real Prometheus."""

import json
import runpy
from collections import Counter
from itertools import combinations
from typing import Any

from tests.monitoring.rules import DASHBOARD, all_rules, metrics_in
from tests.monitoring.test_rules import known_metrics

SOURCE = DASHBOARD.with_name("source")
KINDS = {"row", "timeseries", "stat", "heatmap", "table"}

Json = dict[str, Any]


def dashboard() -> Json:
    loaded: Json = json.loads(DASHBOARD.read_text())
    return loaded


def panels() -> list[Json]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def expressions() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel["targets"]]


def test_the_dashboard_is_the_one_that_its_source_makes() -> None:
    made = runpy.run_path(str(SOURCE), run_name="dashboard_source")["RENDERED"]
    assert DASHBOARD.read_text() == made, "run: python deploy/grafana/source"


def test_it_imports_without_a_question() -> None:
    loaded = dashboard()
    assert "__inputs" not in loaded
    assert loaded["id"] is None
    variables = {each["name"]: each for each in loaded["templating"]["list"]}
    assert list(variables) == ["datasource", "job", "instance", "namespace"]
    source = variables.pop("datasource")
    assert (source["type"], source["query"]) == ("datasource", "prometheus")
    users = [*variables.values(), *panels()]
    users += [target for panel in panels() for target in panel["targets"]]
    assert {each["datasource"]["uid"] for each in users} == {"${datasource}"}
    for name in ("instance", "namespace"):
        assert (variables[name]["multi"], variables[name]["includeAll"]) == (True, True)


def test_panels_have_their_own_ids_and_places() -> None:
    placed = dashboard()["panels"]
    assert max(Counter(panel["id"] for panel in placed).values()) == 1
    assert {panel["type"] for panel in placed} <= KINDS
    for panel in placed:
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
    for one, other in combinations((panel["gridPos"] for panel in placed), 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above, (one, other)


def test_panels_have_titles_descriptions_and_units() -> None:
    titles = [panel["title"] for panel in panels()]
    assert len(set(titles)) == len(titles)
    for panel in panels():
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]


def test_queries_use_metrics_of_the_catalogue_and_records_of_the_rules_only() -> None:
    records = {rule["record"] for rule in all_rules() if "record" in rule}
    for expression in expressions():
        assert metrics_in(expression) <= known_metrics()
        used = {word.split("{")[0] for word in expression.split() if ":duetime" in word}
        assert used <= records, expression


def test_every_metric_that_a_rule_watches_can_be_seen() -> None:
    """Somebody who was woken by an alert finds its numbers on the dashboard."""
    shown = {name for expression in expressions() for name in metrics_in(expression)}
    watched = {name for rule in all_rules() for name in metrics_in(rule["expr"])}
    assert watched - shown <= NOT_DRAWN


NOT_DRAWN = {
    # Facts that the numbers beside them show.
    "duetime_engine_running",
    "duetime_clock_skewed",
    "duetime_timers_counted_timestamp_seconds",
    "duetime_objective_attempts_total",
    "duetime_objective_ratio",
    "duetime_objective_window_seconds",
    "duetime_shards",
    "duetime_workers",
    "duetime_workers_answering",
}
