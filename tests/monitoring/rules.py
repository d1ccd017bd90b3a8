"""The alert rules of deploy/, and a copy of them for tests that cannot wait for minutes."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy" / "prometheus" / "duetime.rules.yaml"
RULE_TESTS = RULES.with_name("duetime.rules.test.yaml")
DASHBOARD = ROOT / "deploy" / "grafana" / "duetime.json"
PAGES = ROOT / "docs" / "runbooks" / "alerts"

SHORTENED_TIMES = 60
"""A minute of the rules is a second of the shortened ones."""

Rule = dict[str, Any]

_RANGE = re.compile(r"(?<=\[)(\d+)([smhd])(?=\])")
_AGE = re.compile(r"(?<=_age_seconds\) > )(\d+)")
_DURATION = re.compile(r"(\d+)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_METRIC = re.compile(r"\b(?:duetime|timer|process)_\w+\b(?!:)")


def all_rules() -> list[Rule]:
    return list(_rules_in(yaml.safe_load(RULES.read_text())))


def alerts() -> dict[str, Rule]:
    """The rules of alerts by their names."""
    return {rule["alert"]: rule for rule in all_rules() if "alert" in rule}


def shortened(text: str) -> str:
    """The same rules with every range of an expression, every least age and every `for` divided by
    SHORTENED_TIMES. Everything else stays as it is."""
    document = yaml.safe_load(text)
    for rule in _rules_in(document):
        expression = _RANGE.sub(_shortened, rule["expr"])
        rule["expr"] = _AGE.sub(lambda age: f"{int(age[1]) / SHORTENED_TIMES:g}", expression)
        if "for" in rule:
            rule["for"] = _DURATION.sub(_shortened, rule["for"])
    return str(yaml.safe_dump(document, sort_keys=False))


def without_durations(text: str) -> Any:
    """The rules with a zero for every range, every least age and every `for`."""
    document = yaml.safe_load(text)
    for rule in _rules_in(document):
        rule["expr"] = _AGE.sub("0", re.sub(r"\[\w+\]", "[0]", rule["expr"]))
        if "for" in rule:
            rule["for"] = 0
    return document


def metrics_in(expression: str) -> set[str]:
    """The metrics that an expression names; not those of recording rules, which have colons."""
    without_records = re.sub(r"\w+:[\w:]+", "", expression)
    return set(_METRIC.findall(without_records))


def page_of(alert: str) -> Path:
    """DuetimeNoPolls has the page no-polls.md."""
    words = re.findall(r"[A-Z][a-z]*", alert.removeprefix("Duetime"))
    return PAGES / ("-".join(words).lower() + ".md")


def _rules_in(document: Any) -> Iterator[Rule]:
    for group in document["groups"]:
        yield from group["rules"]


def _shortened(duration: re.Match[str]) -> str:
    seconds = int(duration[1]) * _SECONDS[duration[2]] / SHORTENED_TIMES
    return f"{round(seconds * 1_000)}ms"
