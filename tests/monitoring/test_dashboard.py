"""The Grafana dashboard: whole, and every query answered by a real Prometheus."""

import json
import re
import runpy
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import httpx
import pytest
from uuid_utils import uuid7

from duetime.domain.instants import format_instant
from tests.brokers.bus_client import schedule_timer
from tests.brokers.nats_bus_client import NatsBusClient
from tests.brokers.nats_fixtures import MakeNats
from tests.monitoring.prometheus import JOB, Prometheus
from tests.monitoring.rules import DASHBOARD, all_rules, metrics_in
from tests.monitoring.test_rules import known_metrics
from tests.polling import poll
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.databases import (
    Database,
    PostgresDatabase,
    SqliteDatabase,
    on_every_database,
)
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import create_timer, in_ms

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


async def _fire_all_kinds(
    api: httpx.AsyncClient, bus: NatsBusClient, receiver: CallbackReceiver
) -> None:
    """Timers of both kinds of callback that complete, fail, are changed and are canceled."""
    for number in range(20):
        path = "/failing" if number % 4 == 0 else "/"
        await create_timer(api, receiver.url + path, in_ms(100))
    timer_id = await create_timer(api, receiver.url, in_ms(3_600_000))
    change = {"execute_at": format_instant(in_ms(1_800_000))}
    assert (await api.put(f"/timers/{timer_id}", json=change)).status_code == 200
    assert (await api.delete(f"/timers/{timer_id}")).status_code == 200
    calls = [str(uuid7()) for _ in range(20)]
    await bus.send([schedule_timer(call, in_ms(100)) for call in calls])
    await bus.book.wait_for_calls(calls)


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.timeout(240)
@on_every_database
async def test_every_query_is_answered_from_a_server_at_work(
    tmp_path: Path,
    database: Database,
    prometheus: Prometheus,
    receiver: CallbackReceiver,
    make_nats: MakeNats,
) -> None:
    broker = make_nats()
    settings = {"TIMER_BROKER_URL": broker.url, "METRICS_ENDPOINTS": "10", **database.settings}
    receiver.script("/failing", Answer(status=500))
    async with (
        ServerProcess(tmp_path, **settings) as server,
        server.client() as api,
        NatsBusClient(broker.url) as bus,
    ):
        objective = {"slo": "99.9 % within 1s over 30d"}
        assert (await api.put("/api/v1/namespaces/default", json=objective)).status_code == 200
        await prometheus.watch(server)
        expected = {
            expression
            for expression in expressions()
            if not any(name in expression for name in ABSENT[type(database)] | WHEN_IN_TROUBLE)
        }

        async def unanswered() -> set[str]:
            """A rate needs two samples, so that timers have to go on firing."""
            await _fire_all_kinds(api, bus, receiver)
            for each in list(expected):
                if await prometheus.query(_filled_in(each)):
                    expected.remove(each)
            return expected

        asked = set(expected)
        try:
            await poll(unanswered, lambda left: not left)
        except TimeoutError:
            raise AssertionError(f"no data for {expected}") from None
        for expression in set(expressions()) - asked:
            await prometheus.query(_filled_in(expression))
        for variable in dashboard()["templating"]["list"][1:]:
            values = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"])
            assert values is not None
            assert await prometheus.label_values(values[2], _filled_in(values[1]))


def _filled_in(expression: str) -> str:
    """The expression with the variables as Grafana fills them in for everything."""
    for name, value in (("job", JOB), ("instance", ".*"), ("namespace", ".*")):
        expression = expression.replace(f"${name}", value)
    return expression.replace("$__rate_interval", "5s")


WHEN_IN_TROUBLE = {
    "duetime_claims_handed_back_total",
    "duetime_store_errors_total",
    "duetime_timers_redriven_total",
    "duetime_timers_replaced_total",
    "duetime_endpoint_breaker_open",
    # The rules that the test's Prometheus has are shortened, and need some seconds of attempts.
    "duetime_objective_burn",
}
"""Metrics without a sample while all is well, or nobody does what they count."""

ABSENT: dict[type[Database], set[str]] = {
    SqliteDatabase: {"duetime_postgres_", "duetime_clock_offset_seconds"},
    PostgresDatabase: {"duetime_sqlite_", "duetime_disk_", "duetime_store_commit_size"},
}


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
