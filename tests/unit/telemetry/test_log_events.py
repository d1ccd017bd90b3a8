"""The reference page has every event that the code logs, with its level and its fields."""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

from duetime.domain.security.audit import AuditEntry
from duetime.telemetry.log_events.reference import AREAS, EVENTS, PAGE_PATH, page_text

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "src" / "duetime"
REWRITE = "rewrite it with: .venv/bin/python -m duetime.telemetry.log_events.reference"

LOGGERS = {"_log", "log", "structlog.get_logger()"}
LEVELS = {"debug", "info", "warning", "error", "critical", "exception"}

# The names and fields that a call takes from elsewhere, as they stand in the call.
NAMES_FROM_ELSEWHERE = {
    ("background.py", "f'{error.what}.unavailable'"): "{}.unavailable",
    ("background.py", "f'{self._absent}.available'"): "{}.available",
    ("nats/session_keeper.py", "event"): "_log_problem",
    ("stores/sqlite/disk/failure.py", "event"): "_on_failure",
}
FIELDS_FROM_ELSEWHERE = {
    "ending.facts()": {"status", "signal", "error"},
    "_fields(entry)": set(AuditEntry.__struct_fields__),
    "_fields(batch[0])": set(AuditEntry.__struct_fields__),
}


class Line(NamedTuple):
    """A call that logs."""

    place: str
    name: str
    level: str
    fields: frozenset[str]


@cache
def calls_and_assignments() -> list[tuple[str, ast.AST]]:
    """All calls and assignments, each with its file."""
    return [
        (path.relative_to(SOURCE).as_posix(), node)
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call | ast.Assign | ast.AnnAssign)
    ]


def absent_things() -> set[str]:
    """The words by which background loops name what they wait for: `what` of error classes."""
    return {
        node.value.value
        for _, node in calls_and_assignments()
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        and [ast.unparse(target) for target in node.targets] == ["what"]
    }


def first_arguments(function: str) -> set[str]:
    """The texts with which a function of this name is called."""
    return {
        node.args[0].value
        for _, node in calls_and_assignments()
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == function
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    }


def names_of(file: str, argument: ast.expr) -> set[str]:
    if isinstance(argument, ast.Constant):
        return {str(argument.value)}
    elsewhere = NAMES_FROM_ELSEWHERE[file, ast.unparse(argument)]
    if "{}" in elsewhere:
        return {elsewhere.format(what) for what in absent_things()}
    return first_arguments(elsewhere)


def fields_of(call: ast.Call, file: str) -> set[str]:
    fields = {"exception"} if getattr(call.func, "attr", "") == "exception" else set()
    for keyword in call.keywords:
        text = ast.unparse(keyword.value)
        if keyword.arg is not None:
            fields.add("exception" if keyword.arg == "exc_info" else keyword.arg)
        elif text in FIELDS_FROM_ELSEWHERE:
            fields |= FIELDS_FROM_ELSEWHERE[text]
        else:
            fields |= keys_of(text, file)
    return fields


def keys_of(variable: str, file: str) -> set[str]:
    """The keys of a dictionary that is written out where it is assigned."""
    for place, node in calls_and_assignments():
        if place != file:
            continue
        if isinstance(node, ast.Assign):
            target, value = ast.unparse(node.targets[0]), node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target, value = ast.unparse(node.target), node.value
        else:
            continue
        if target == variable and isinstance(value, ast.Dict):
            return {ast.literal_eval(key) for key in value.keys if key is not None}
    raise AssertionError(f"write out the fields of **{variable}, or add them to the test")


@cache
def logged_lines() -> list[Line]:
    lines: list[Line] = []
    for file, node in calls_and_assignments():
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        logger, level = ast.unparse(node.func.value), node.func.attr
        if logger not in LOGGERS or level not in LEVELS:
            continue
        shown_level = "error" if level == "exception" else level
        fields = frozenset(fields_of(node, file))
        lines += [
            Line(f"{file}:{node.lineno}", name, shown_level, fields)
            for name in names_of(file, node.args[0])
        ]
    return lines


def test_the_page_is_made_from_the_descriptions() -> None:
    assert (ROOT / PAGE_PATH).read_text(encoding="utf-8") == page_text(), REWRITE


def test_every_event_is_described_once() -> None:
    assert len(EVENTS) == sum(len(area.events) for area in AREAS)


def test_descriptions_have_the_events_of_the_code_and_no_others() -> None:
    lines = logged_lines()
    unknown = [f"{line.place} {line.name}" for line in lines if line.name not in EVENTS]
    assert not unknown, f"describe these in duetime/telemetry/log_events: {unknown}"
    assert EVENTS.keys() - {line.name for line in lines} == set()


def test_levels_and_fields_are_those_of_the_code() -> None:
    fields: defaultdict[str, set[str]] = defaultdict(set)
    for line in logged_lines():
        assert line.level == EVENTS[line.name].level, line.place
        fields[line.name] |= line.fields
    for name, event in EVENTS.items():
        assert set(event.fields) == fields[name], name


def test_what_happened_and_what_to_do_are_said() -> None:
    for event in EVENTS.values():
        assert event.meaning.endswith("."), event.name
        if event.level in ("warning", "error", "critical"):
            assert event.advice.endswith("."), f"{event.name}: say what to do"
