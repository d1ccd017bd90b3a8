"""The alert rules: valid, tested, explained, and each caused on a real server."""

import ast
import subprocess
from pathlib import Path

import yaml

from duetime.telemetry.metrics.catalogue.all_metrics import ALL_METRICS
from duetime.telemetry.metrics.metric import Kind
from tests.monitoring.rules import (
    PAGES,
    ROOT,
    RULE_TESTS,
    RULES,
    alerts,
    all_rules,
    metrics_in,
    page_of,
    shortened,
    without_durations,
)
from tests.toolchain import tool

SECTIONS = ("Meaning", "First look", "Causes", "What to do", "Over when")


def known_metrics() -> set[str]:
    names = {metric.name for metric in ALL_METRICS}
    for metric in ALL_METRICS:
        if metric.kind is Kind.HISTOGRAM:
            names |= {f"{metric.name}_{part}" for part in ("bucket", "sum", "count")}
    return names


def caused_on_servers() -> set[str]:
    """The alerts that tests of this package wait for: the arguments of `fires`."""
    return {
        argument.value
        for path in Path(__file__).parent.glob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "fires"
        for argument in node.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }


def test_promtool_accepts_the_rules_and_their_tests() -> None:
    for command in (["check", "rules", RULES.name], ["test", "rules", RULE_TESTS.name]):
        done = subprocess.run(
            [tool("promtool"), *command],
            cwd=RULES.parent,
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_test_in_which_it_fires_and_one_in_which_it_is_silent() -> None:
    tests = yaml.safe_load(RULE_TESTS.read_text())["tests"]
    silent = {each["name"].partition(",")[0] for each in tests if ", silent" in each["name"]}
    firing = {
        sample["labels"].split('"')[1]
        for each in tests
        for check in each["promql_expr_test"]
        for sample in check["exp_samples"]
    }
    assert silent == firing == alerts().keys()


def test_every_alert_fires_on_a_real_server() -> None:
    assert caused_on_servers() == alerts().keys()


def test_every_alert_says_how_bad_it_is_and_what_to_read() -> None:
    for name, rule in alerts().items():
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}, name
        annotations = rule["annotations"]
        assert annotations.keys() == {"summary", "description", "runbook_url"}, name
        assert ROOT / annotations["runbook_url"] == page_of(name), name


def test_every_alert_has_a_page_and_every_page_an_alert() -> None:
    assert {page_of(name) for name in alerts()} == set(PAGES.glob("*.md")) - {PAGES / "index.md"}


def test_every_page_answers_the_questions_of_somebody_who_was_woken() -> None:
    for name, rule in alerts().items():
        text = page_of(name).read_text()
        assert text.startswith(f"# {name}\n"), name
        assert f"Severity: {rule['labels']['severity']}" in text, name
        headings = [line[3:] for line in text.splitlines() if line.startswith("## ")]
        assert headings == list(SECTIONS), name


def test_rules_use_metrics_of_the_catalogue_only() -> None:
    used = {name for rule in all_rules() for name in metrics_in(rule["expr"])}
    assert used <= known_metrics()


def test_shortened_rules_differ_in_durations_only() -> None:
    text = RULES.read_text()
    assert without_durations(shortened(text)) == without_durations(text)
    assert "[5m]" in text
    assert "[5000ms]" in shortened(text)
    assert "_age_seconds) > 60" in text
    assert "_age_seconds) > 1\n" in shortened(text)
    assert "for: 1000ms" in shortened(text)
