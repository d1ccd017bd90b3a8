"""The workflows, forms and other files in .github, checked by tools that need no network."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.polling import PATIENCE_SECONDS
from tests.toolchain import tool

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
INSTALLED = Path(sys.executable).parent
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yaml"))
FORMS = sorted(
    path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml"
)


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )


def workflow(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((GITHUB / "workflows" / name).read_text("utf-8"))
    return loaded


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", WORKFLOWS),
        ("github-issue-forms", FORMS),
        ("github-issue-config", [GITHUB / "ISSUE_TEMPLATE" / "config.yml"]),
        ("dependabot", [GITHUB / "dependabot.yml"]),
    ],
)
def test_files_follow_the_schema_of_github(schema: str, files: list[Path]) -> None:
    assert files
    checked = run(INSTALLED / "check-jsonschema", "--builtin-schema", f"vendor.{schema}", *files)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_auditor_of_workflows_finds_nothing() -> None:
    audited = run(INSTALLED / "zizmor", "--offline", "--no-progress", "--color", "never", GITHUB)
    assert audited.returncode == 0, audited.stdout + audited.stderr


def test_the_linter_of_workflows_finds_nothing() -> None:
    linted = run(tool("actionlint"), "-no-color", *WORKFLOWS)
    assert linted.returncode == 0, linted.stdout + linted.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_jobs_have_limits_and_rights_of_their_own(path: Path) -> None:
    loaded = workflow(path.name)
    assert loaded["permissions"] == {}
    assert loaded["concurrency"]["group"]
    for name, job in loaded["jobs"].items():
        assert job["permissions"], f"{name} has no rights of its own"
        assert "uses" in job or job["timeout-minutes"] <= 90, f"{name} may run for hours"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit_with_their_version_beside_it(path: Path) -> None:
    used = re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))
    assert used
    for each in used:
        assert re.fullmatch(r"\./\S+ # zizmor: .*|[\w/.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each), (
            each
        )


def test_workflows_run_what_the_makefile_and_the_repository_have() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        assert set(re.findall(r"run: make ([a-z-]+)", text)) <= targets, path.name
        for script in re.findall(r"(?<![\w/.])\.(?:ci|github)/[\w/.]+", text):
            assert (ROOT / script).exists(), f"{path.name} runs {script}"


def test_only_tested_distributions_are_published() -> None:
    jobs = workflow("release.yaml")["jobs"]
    for name in ("pypi", "image"):
        assert {"test", "build"} <= set(jobs[name]["needs"]), name
    assert {"pypi", "image"} <= set(jobs["github"]["needs"])
    assert jobs["test"]["uses"] == "./.github/workflows/test.yaml"


def notes_of(
    tag: str, directory: Path, *, version: str, changelog: str
) -> subprocess.CompletedProcess[str]:
    """The run of our script for the tag, in a repository with this version and changelog."""
    (directory / "src/duetime").mkdir(parents=True)
    (directory / "src/duetime/__init__.py").write_text(f'__version__ = "{version}"\n')
    (directory / "CHANGELOG.md").write_text(changelog)
    (directory / ".github").mkdir()
    script = directory / ".github" / "release_notes.py"
    script.write_text((GITHUB / script.name).read_text(encoding="utf-8"))
    return run(sys.executable, script, tag)


def test_notes_are_the_section_of_the_version(tmp_path: Path) -> None:
    changelog = (
        "# Changelog\n\n## [Unreleased]\n\n- Later.\n\n"
        "## [0.2.0] - 2027-01-31\n\n### Added\n\n- Now.\n\n## [0.1.0] - 2026-12-24\n\n- Before.\n"
    )
    notes = notes_of("v0.2.0", tmp_path, version="0.2.0", changelog=changelog)
    assert (notes.returncode, notes.stdout) == (0, "### Added\n\n- Now.\n")


@pytest.mark.parametrize(
    ("tag", "changelog", "complaint"),
    [
        ("v0.3.0", "## [0.2.0] - 2027-01-31\n\n- Now.\n", "the tag v0.3.0 is not v0.2.0"),
        ("0.2.0", "## [0.2.0] - 2027-01-31\n\n- Now.\n", "the tag 0.2.0 is not v0.2.0"),
        ("v0.2.0", "## [Unreleased]\n\n- Now.\n", "no section '## [0.2.0] - YYYY-MM-DD'"),
        ("v0.2.0", "## [0.2.0]\n\n- Now.\n", "no section '## [0.2.0] - YYYY-MM-DD'"),
        ("v0.2.0", "## [0.2.0] - 2027-01-31\n\n## [0.1.0] - 2026-12-24\n\n- A.\n", "with text"),
    ],
)
def test_a_release_that_is_not_ready_is_refused(
    tmp_path: Path, tag: str, changelog: str, complaint: str
) -> None:
    notes = notes_of(tag, tmp_path, version="0.2.0", changelog=changelog)
    assert notes.returncode == 1
    assert notes.stdout == ""
    assert complaint in notes.stderr
