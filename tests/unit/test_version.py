"""The version has one place, src/duetime/__init__.py, and is the same everywhere else."""

import json
import re
import tomllib
from pathlib import Path

import yaml
from typer.testing import CliRunner

from duetime import __version__
from duetime.api.openapi.document import openapi_document
from duetime.cli.main import command_line

ROOT = Path(__file__).resolve().parents[2]


def text_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def test_the_package_takes_its_version_from_the_code() -> None:
    pyproject = tomllib.loads(text_of("pyproject.toml"))
    assert "version" not in pyproject["project"]
    assert "version" in pyproject["project"]["dynamic"]
    assert pyproject["tool"]["hatch"]["version"] == {"path": "src/duetime/__init__.py"}
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", __version__)


def test_the_command_line_and_the_documents_name_it() -> None:
    printed = CliRunner().invoke(command_line(), ["--version"])
    assert printed.output == f"duetime {__version__}\n"
    document = json.loads(json.dumps(openapi_document()))
    assert document["info"]["version"] == __version__
    assert json.loads(text_of("docs/reference/asyncapi.json"))["info"]["version"] == __version__
    assert f"User-Agent: duetime/{__version__} " in text_of("docs/reference/callbacks.md")


def test_the_changelog_names_it_first() -> None:
    """Either its section is the newest, or "Unreleased" says which release it will be."""
    unreleased, _, released = (
        text_of("CHANGELOG.md").partition("\n## [Unreleased]")[2].partition("\n## [")
    )
    newest = released.partition("]")[0]
    assert __version__ == newest or __version__ in unreleased


def test_the_image_gets_it_from_the_tag_of_the_release() -> None:
    """The release compares tag and code first: .github/release_notes.py."""
    steps = yaml.safe_load(text_of(".github/workflows/release.yaml"))["jobs"]["image"]["steps"]
    (push,) = (step for step in steps if step.get("id") == "push")
    assert "VERSION=${{ steps.names.outputs.version }}" in push["with"]["build-args"]
    (names,) = (step for step in steps if step.get("id") == "names")
    assert "version=${GITHUB_REF_NAME#v}" in names["run"]
