"""House rules that no linter knows: file sizes, module names, and who may read a clock."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLOCK = ROOT / "src" / "duetime" / "clock.py"

MAX_LINES = 400
BANNED_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "impl", "misc"}
CLOCK_CALLS = {
    "asyncio.sleep",
    "datetime.date.today",
    "datetime.datetime.now",
    "datetime.datetime.today",
    "datetime.datetime.utcnow",
    "time.monotonic",
    "time.monotonic_ns",
    "time.sleep",
    "time.time",
    "time.time_ns",
}


def python_files(*directories: str) -> list[Path]:
    return [
        path
        for directory in directories
        for path in sorted((ROOT / directory).rglob("*.py"))
        if not any(part.startswith((".", "__pycache__")) for part in path.relative_to(ROOT).parts)
    ]


def imported_names(tree: ast.AST) -> dict[str, str]:
    """What each imported name stands for, e.g. {"dt": "datetime", "nap": "asyncio.sleep"}."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                names[alias.asname or root] = alias.name if alias.asname else root
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def dotted_name(node: ast.AST, names: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = dotted_name(node.value, names)
        return owner and f"{owner}.{node.attr}"
    return None


def clock_uses(source: str) -> Iterator[tuple[int, str]]:
    """Line and full name of every mention of a clock or a sleep, whether called or passed on."""
    tree = ast.parse(source)
    names = imported_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            name = dotted_name(node, names)
            if name in CLOCK_CALLS:
                yield node.lineno, name


def test_files_stay_short() -> None:
    too_long = {
        str(path.relative_to(ROOT)): lines
        for path in python_files("src", "tests", "bench")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > MAX_LINES
    }
    assert not too_long, f"split these by concept, they exceed {MAX_LINES} lines: {too_long}"


def test_modules_are_named_after_a_concept() -> None:
    vague = {
        str(path.relative_to(ROOT))
        for path in python_files("src", "tests", "bench")
        for part in path.relative_to(ROOT).with_suffix("").parts
        if part.rpartition("_")[2] in BANNED_NAMES
    }
    assert not vague, f"name these after what they hold: {sorted(vague)}"


def test_only_the_clock_module_reads_time_or_sleeps() -> None:
    # Benchmarks measure real time, so they are free to read it.
    uses = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in python_files("src", "tests")
        if path != CLOCK
        for line, name in clock_uses(path.read_text(encoding="utf-8"))
    ]
    assert not uses, "take a clock as an argument, or wait for an event:\n" + "\n".join(uses)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import time\ntime.time()", ["time.time"]),
        ("import time as t\nf(default=t.monotonic)", ["time.monotonic"]),
        ("from asyncio import sleep as nap\nnap(1)", ["asyncio.sleep"]),
        ("from datetime import datetime\ndatetime.now(UTC)", ["datetime.datetime.now"]),
        ("import datetime as dt\ndt.datetime.now()", ["datetime.datetime.now"]),
        ("import asyncio.subprocess\nasyncio.sleep(0)", ["asyncio.sleep"]),
        ('"""Never call time.time() here."""\nimport time  # time.sleep(1)', []),
        ("clock.sleep(1)\nself.time.time()\nimport time\ntime.perf_counter()", []),
    ],
)
def test_clock_uses_are_found_through_aliases_but_not_in_prose(
    source: str, expected: list[str]
) -> None:
    assert [name for _, name in clock_uses(source)] == expected
