"""The wheel and the source distribution, as a user gets them from the package index."""

import asyncio
import hashlib
import os
import re
import signal
import subprocess
import sys
import tarfile
import venv
from pathlib import Path
from urllib.request import urlopen
from zipfile import ZipFile

import pytest
from packaging.metadata import Metadata

from duetime import __version__
from tests.polling import PATIENCE_SECONDS
from tests.real_server.command import Command, run_command

ROOT = Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 300.0
"""Time for one run of pip. It fetches about thirty packages unless its cache has them."""

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]


def run(*command: str | Path) -> None:
    """Run to the end. Installing needs the package index: without it the test is skipped, and
    fails where the variable CI is set."""
    done = subprocess.run(
        [str(each) for each in command],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_SECONDS,
    )
    said = done.stdout + done.stderr
    if done.returncode and "Could not find a version" in said and not os.environ.get("CI"):
        pytest.skip("the package index cannot be reached, and pip has not kept the packages")
    assert done.returncode == 0, said


def build(source: Path, into: Path, *options: str) -> None:
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", into, *options, source)


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory with both. A release names the directory of those that it publishes."""
    if given := os.environ.get("DUETIME_TEST_DIST"):
        return ROOT / given
    built = tmp_path_factory.mktemp("dist")
    build(ROOT, built)
    return built


@pytest.fixture(scope="module")
def wheel(distributions: Path) -> Path:
    (wheel,) = distributions.glob("*.whl")
    assert wheel.name == f"duetime-{__version__}-py3-none-any.whl"
    return wheel


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `duetime` of an environment that has the wheel, its pinned dependencies and no more."""
    directory = tmp_path_factory.mktemp("clean") / "venv"
    venv.create(directory, with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", str(directory / "bin" / "python")]
    pip += ["install", "--quiet", "--no-input", "--disable-pip-version-check"]
    run(*pip, "--require-hashes", "-r", ROOT / "requirements" / "runtime.txt")
    run(*pip, "--no-index", wheel)
    return directory / "bin" / "duetime"


async def test_an_installed_wheel_shows_a_timer_fire(installed: Path, tmp_path: Path) -> None:
    version = await run_command("--version", directory=tmp_path, program=str(installed))
    assert version.output == f"duetime {__version__}\n"
    async with Command("dev", directory=tmp_path, program=str(installed)) as dev:
        arrival = await dev.line(containing="demo timer arrived")
        assert "ms after its instant" in arrival
        url = re.search(r"http://127\.0\.0\.1:\d+/docs", "\n".join(dev.lines))
        assert url
        page = await asyncio.to_thread(urlopen, url[0], timeout=PATIENCE_SECONDS)
        with page:
            assert b"Duetime" in page.read()
        assert await dev.end(signal.SIGINT) == 0


def test_the_wheel_holds_what_the_service_needs_and_no_tests(wheel: Path) -> None:
    names = set(ZipFile(wheel).namelist())
    assert {name.partition("/")[0] for name in names} == {
        "duetime",
        f"duetime-{__version__}.dist-info",
    }
    source = ROOT / "src"
    expected = {
        str(path.relative_to(source))
        for path in (source / "duetime").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names if name.startswith("duetime/")} == expected
    assert "duetime/py.typed" in names
    assert f"duetime-{__version__}.dist-info/licenses/LICENSE" in names
    for suffix in (".sql", ".css", ".js", ".svg"):
        assert any(name.endswith(suffix) for name in names), suffix


def test_the_metadata_is_valid_and_its_text_leads_nowhere_wrong(wheel: Path) -> None:
    text = ZipFile(wheel).read(f"duetime-{__version__}.dist-info/METADATA")
    metadata = Metadata.from_email(text, validate=True)
    assert str(metadata.version) == __version__
    assert metadata.license_expression == "Apache-2.0"
    assert metadata.description_content_type == "text/markdown"
    assert metadata.description is not None
    assert metadata.description.startswith("# Duetime\n")
    # The index shows the text away from the files that relative links name.
    links = re.findall(r"\]\(([^)]*)\)", metadata.description)
    assert [link for link in links if not link.startswith("https://")] == []


def test_the_source_distribution_builds_the_same_wheel(
    distributions: Path, wheel: Path, tmp_path: Path
) -> None:
    (archive,) = distributions.glob("*.tar.gz")
    with tarfile.open(archive) as source:
        source.extractall(tmp_path, filter="data")
    build(tmp_path / archive.name.removesuffix(".tar.gz"), tmp_path / "again", "--wheel")
    assert digest(tmp_path / "again" / wheel.name) == digest(wheel)


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
