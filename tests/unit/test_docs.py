"""The documentation names only what there is: files, settings, commands and their options."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
from opentelemetry.sdk import environment_variables

from duetime.api.http.auditing import CLIENT_GONE
from duetime.api.v1.errors import STATUS_AND_ERROR
from duetime.cli.main import command_line
from duetime.service.security.audit_log import LEFT_OUT
from duetime.settings.definitions import SETTINGS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "bench" / "README.md",
    ROOT / "deploy" / "helm" / "duetime" / "README.md",
]

# Read by the command line as a client, not by the service.
CLIENT_VARIABLES = {"DUETIME_URL", "DUETIME_API_KEY", "DUETIME_WEBHOOK_SECRET"}
TEST_VARIABLES = {
    "DUETIME_SEED",
    "DUETIME_TEST_EFFORT",
    "DUETIME_TEST_POSTGRES_URL",
}
BUILD_ARGUMENTS = {"PYTHON_DIGEST"}
OTEL_VARIABLES = {name for name in vars(environment_variables) if name.startswith("OTEL_")}
STREAM_NAMES = {"TIMER_COMMANDS", "TIMER_EVENTS", "TIMER_REJECTED"}
ERROR_CODES = {
    *("METHOD_NOT_ALLOWED", "NOT_FOUND", CLIENT_GONE, LEFT_OUT),
    *(code for _, code in STATUS_AND_ERROR.values()),
}

_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_OTHER_FENCE = re.compile(r"^```(?!sh$|ini$).*?^```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")
_COMMAND = re.compile(r"(?<!from )\bduetime +([a-z][a-z-]*)((?:[^\n`\\]|\\\n)*)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture(params=PAGES, ids=name_of)
def page(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def anchors_of(page: Path) -> set[str]:
    """The anchors that headings get: lower case, no punctuation, hyphens for spaces."""
    prose = _FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ +(.*)$", prose, re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


def options_by_command() -> dict[str, set[str]]:
    """The options of a command include those of its sub-commands."""
    return {
        name: {
            "--help",
            *(
                option
                for each in (command, *getattr(command, "commands", {}).values())
                for param in each.params
                for option in param.opts
            ),
        }
        for name, command in typer.main.get_group(command_line()).commands.items()
    }


def commands_named(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each `duetime xyz` in code that is to be typed, with the options that follow it."""
    for code in _CODE.findall(_OTHER_FENCE.sub("", text)):
        for name, rest in _COMMAND.findall(code):
            yield name, _OPTION.findall(rest)


def test_relative_links_lead_somewhere(page: Path) -> None:
    prose = _FENCE.sub("", page.read_text(encoding="utf-8"))
    for link in _LINK.findall(prose):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name_of(page)} links to {link}, which is not there"
        if anchor:
            assert anchor in anchors_of(target), f"{name_of(page)}: no heading for {link}"


def test_variables_are_settings(page: Path) -> None:
    named = set(_VARIABLE.findall(page.read_text(encoding="utf-8")))
    known = SETTINGS.keys() | CLIENT_VARIABLES | TEST_VARIABLES | ERROR_CODES | STREAM_NAMES
    known |= BUILD_ARGUMENTS | OTEL_VARIABLES | {"OTEL_", "OTEL_TRACES_EXPORTER"}
    assert named <= known


def test_the_key_is_set_before_it_is_used(page: Path) -> None:
    text, _, used = page.read_text(encoding="utf-8").partition('"X-API-Key: $API_KEY"')
    if used:
        assert "API_KEY=$(cat .duetime-dev-key)" in text, "no way to set the key of `duetime dev`"
        assert "API_KEY=$(sed -n 's/^API_KEY=//p' .env)" in text, "nor that of `duetime serve`"


def test_commands_and_their_options_exist(page: Path) -> None:
    known = options_by_command()
    for name, options in commands_named(page.read_text(encoding="utf-8")):
        assert name in known, f"there is no command `duetime {name}`"
        assert set(options) <= known[name], f"`duetime {name}` does not take all of {options}"


def test_every_page_of_the_documentation_is_on_a_map() -> None:
    """The maps are docs/index.md and the index.md of a folder. They are the site's navigation."""
    pages = set((ROOT / "docs").rglob("*.md")) - {ROOT / "docs" / "index.md"}
    linked = {
        (index.parent / link).resolve()
        for index in (ROOT / "docs").rglob("index.md")
        for link in _LINK.findall(index.read_text(encoding="utf-8"))
    }
    assert pages <= linked


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`duetime create --in 10s`", [("create", ["--in"])]),
        (
            "```sh\nduetime create \\\n  --url x\nduetime list\n```",
            [("create", ["--url"]), ("list", [])],
        ),
        ("the duetime process, `from duetime import x`, `duetime.db`", []),
    ],
)
def test_commands_are_found_in_code_only(text: str, expected: list[tuple[str, list[str]]]) -> None:
    assert list(commands_named(text)) == expected


def test_every_promise_of_the_threat_model_has_a_test_that_exists() -> None:
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    promises = page.partition("## What holds")[2].partition("## Out of scope")[0]
    rows = [line for line in promises.splitlines() if line.startswith("| ") and "`" in line]
    assert len(rows) > 30
    for row in rows:
        named = re.findall(r"`((?:unit|integration|e2e|contract)/[\w/]+\.py)(?:::(\w+))?`", row)
        assert named or "python -m bench" in row or "requirements/" in row, row
        for path, test in named:
            source = (ROOT / "tests" / path).read_text(encoding="utf-8")
            assert f" {test}" in source, f"{path}::{test}"
