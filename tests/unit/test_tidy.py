"""House rules that no linter checks: sizes, names, clocks and prose."""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLOCK = ROOT / "src" / "duetime" / "clock.py"
POLLING = ROOT / "tests" / "polling.py"

MAX_LINES = 400
MAX_MODULES = 15
# A store has a module for each part of its port.
MAX_MODULES_OF_A_STORE = 16
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
REAL_SLEEP = "duetime.clock.SystemClock.sleep"

# Sentences that begin like this have to be read twice.
AWKWARD = re.compile(r"\b(Who|What|Of|So many|Those)\b")
SENTENCE_END = re.compile(r"(?<=[.!?:])\s+|\n\s*\n")

# Paragraphs, list items, table cells and sentences begin here; headings are no sentences.
MARKDOWN_START = re.compile(
    r"(?:\A|\n\s*\n|^\s*(?:[-*>]|\d+\.)\s+|\|\s*|[.!?:][*_\")]*\s+)[*_]*", re.MULTILINE
)
MARKDOWN_FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)


def python_files(*directories: str) -> list[Path]:
    return [
        path
        for directory in directories
        for path in sorted((ROOT / directory).rglob("*.py"))
        if not any(part.startswith((".", "__pycache__")) for part in path.relative_to(ROOT).parts)
    ]


def imported_names(tree: ast.AST) -> dict[str, str]:
    """The full name of each imported name, e.g. {"dt": "datetime", "nap": "asyncio.sleep"}."""
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
        # An attribute of a new object counts like one of its class.
        value = node.value.func if isinstance(node.value, ast.Call) else node.value
        owner = dotted_name(value, names)
        return owner and f"{owner}.{node.attr}"
    return None


def clock_uses(source: str) -> Iterator[tuple[int, str]]:
    """Line and full name of every mention of a clock or a sleep, whether called or passed on."""
    tree = ast.parse(source)
    names = imported_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            name = dotted_name(node, names)
            if name in CLOCK_CALLS or name == REAL_SLEEP:
                yield node.lineno, name


@cache
def clock_uses_in(path: Path) -> list[tuple[int, str]]:
    return list(clock_uses(path.read_text(encoding="utf-8")))


def test_files_stay_short() -> None:
    too_long = {
        str(path.relative_to(ROOT)): lines
        for path in python_files("src", "tests", "bench")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > MAX_LINES
    }
    assert not too_long, f"split these by concept, they exceed {MAX_LINES} lines: {too_long}"


def test_packages_stay_small() -> None:
    modules = Counter(
        path.parent.relative_to(ROOT)
        for path in python_files("src", "tests", "bench")
        if not path.name.startswith("__")
    )
    too_many = {
        str(package): count
        for package, count in modules.items()
        if count > (MAX_MODULES_OF_A_STORE if "stores" in package.parts else MAX_MODULES)
    }
    assert not too_many, f"give these folders, they exceed {MAX_MODULES} modules: {too_many}"


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
        for line, name in clock_uses_in(path)
        if name != REAL_SLEEP
    ]
    assert not uses, "take a clock as an argument, or wait for an event:\n" + "\n".join(uses)


def test_tests_wait_for_events_and_do_not_sleep() -> None:
    sleeps = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in python_files("tests")
        if path != POLLING
        for line, name in clock_uses_in(path)
        if name == REAL_SLEEP
    ]
    assert not sleeps, f"wait for an event, or use `poll`: {sleeps}"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import time\ntime.time()", ["time.time"]),
        ("import time as t\nf(default=t.monotonic)", ["time.monotonic"]),
        ("from asyncio import sleep as nap\nnap(1)", ["asyncio.sleep"]),
        ("from datetime import datetime\ndatetime.now(UTC)", ["datetime.datetime.now"]),
        ("import datetime as dt\ndt.datetime.now()", ["datetime.datetime.now"]),
        ("import asyncio.subprocess\nasyncio.sleep(0)", ["asyncio.sleep"]),
        (
            "from duetime.clock import SystemClock\nSystemClock().sleep(1)\nSystemClock().now()",
            [REAL_SLEEP],
        ),
        ('"""Never call time.time() here."""\nimport time  # time.sleep(1)', []),
        ("clock.sleep(1)\nself.time.time()\nimport time\ntime.perf_counter()", []),
    ],
)
def test_clock_uses_are_found_through_aliases_but_not_in_prose(
    source: str, expected: list[str]
) -> None:
    assert [name for _, name in clock_uses(source)] == expected


def prose(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of every docstring and every block of comments."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text
    block: list[str] = []
    first = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if block and token.start[0] != first + len(block):
                yield first, "\n".join(block)
                block = []
            first = first if block else token.start[0]
            block.append(token.string.lstrip("# "))
    if block:
        yield first, "\n".join(block)


def awkward_sentences(source: str) -> list[tuple[int, str]]:
    if not AWKWARD.search(source):
        return []
    return [
        (line, " ".join(sentence.split()))
        for line, text in prose(source)
        for sentence in SENTENCE_END.split(text.strip())
        if AWKWARD.match(sentence)
    ]


def awkward_markdown(text: str) -> list[tuple[int, str]]:
    """Line of every awkward sentence outside blocks of code, and the sentence to the line's end."""
    text = MARKDOWN_FENCE.sub(lambda fence: "\n" * fence[0].count("\n"), text)
    return [
        (text.count("\n", 0, start.end()) + 1, text[start.end() :].partition("\n")[0])
        for start in MARKDOWN_START.finditer(text)
        if AWKWARD.match(text, start.end())
    ]


def test_sentences_name_their_subject_first() -> None:
    awkward = [
        f"{path.relative_to(ROOT)}:{line} {sentence}"
        for path in python_files("src", "tests", "bench")
        for line, sentence in awkward_sentences(path.read_text(encoding="utf-8"))
    ]
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "bench" / "README.md"]
    awkward += [
        f"{path.relative_to(ROOT)}:{line} {sentence}"
        for path in sorted(pages)
        for line, sentence in awkward_markdown(path.read_text(encoding="utf-8"))
    ]
    assert not awkward, "begin these with their subject:\n" + "\n".join(awkward)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('"""What is kept."""', [(1, "What is kept.")]),
        ('"""Kept. Those that\nare not."""', [(1, "Those that are not.")]),
        ("x = 1  # Kept.\n\n# Of two, one\n# Who knows.", [(3, "Of two, one Who knows.")]),
        (
            '"""Whatever is kept. Often. What\'s in a name, and of what?"""',
            [(1, "What's in a name, and of what?")],
        ),
        ('x = "What is this?"\n"""Of"""', [(2, "Of")]),
        ("# Somebody knows\n# What that is.", []),
    ],
)
def test_awkward_sentences_are_found_in_docstrings_and_comments(
    source: str, expected: list[tuple[int, str]]
) -> None:
    assert awkward_sentences(source) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What is kept.", [(1, "What is kept.")]),
        ("Kept.\nThose that\nare not.", [(2, "Those that")]),
        ("- Kept.\n- **Of two**, one.\n\n1. Who?", [(2, "Of two**, one."), (4, "Who?")]),
        ("| kept | What is |", [(1, "What is |")]),
        ("*Kept.* So many.", [(1, "So many.")]),
        ("## What is kept\n\nWhatever\nOf it.", []),
        ("Run:\n\n```\nWhat\n```\n\nThose.", [(7, "Those.")]),
    ],
)
def test_awkward_sentences_are_found_in_markdown(
    text: str, expected: list[tuple[int, str]]
) -> None:
    assert awkward_markdown(text) == expected
