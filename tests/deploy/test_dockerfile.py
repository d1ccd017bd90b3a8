"""The Dockerfile, as far as it can be judged without a container engine."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from duetime.settings.definitions import SETTINGS
from tests.brokers.broker_process import find_program, skip_without
from tests.deploy.dockerfile import (
    DOCKERFILE,
    ROOT,
    arguments_of,
    environment,
    health_command,
    stages,
)
from tests.polling import PATIENCE_SECONDS
from tests.real_server.server_process import ServerProcess
from tests.refusing_port import refusing_port

PYTHON_VARIABLES = {"PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}


def test_hadolint_finds_nothing() -> None:
    hadolint = skip_without(find_program("hadolint"), "hadolint is missing: make install brings it")
    subprocess.run([hadolint, DOCKERFILE], check=True)


def test_the_base_image_can_be_pinned_by_its_digest() -> None:
    preamble, *built = stages()
    assert "PYTHON_DIGEST=" in arguments_of("ARG", preamble)
    assert any("@" in each and "PYTHON_DIGEST" in each for each in arguments_of("ARG", preamble))
    assert [stage[0].arguments.split()[0] for stage in built] == ["${PYTHON_IMAGE}"] * 2


def test_everything_installed_is_checked_by_hash() -> None:
    _, builder, _ = stages()
    fetching, *_ = arguments_of("RUN", builder)
    assert "--require-hashes" in fetching
    position = builder.index(next(each for each in builder if "PIP_NO_INDEX=1" in each.arguments))
    installing = [each for each in builder[position:] if each.name == "RUN"]
    assert len(installing) == len(arguments_of("RUN", builder)) - 1, "pip may reach the index"


def test_the_image_runs_as_a_user_without_a_name_and_without_build_tools() -> None:
    *_, runtime = stages()
    (user,) = arguments_of("USER", runtime)
    assert all(part.isdigit() and int(part) >= 10_000 for part in user.split(":"))
    assert json.loads(arguments_of("ENTRYPOINT", runtime)[0]) == ["duetime"]
    assert json.loads(arguments_of("CMD", runtime)[0]) == ["serve"]
    assert arguments_of("STOPSIGNAL", runtime) == ["SIGTERM"]
    assert "pip uninstall" in arguments_of("RUN", runtime)[0]
    assert not any("install " in each and "pip install" in each for each in runtime)
    assert arguments_of("COPY", runtime) == ["--from=builder /opt/duetime /opt/duetime"]


def test_the_image_writes_to_its_volume_only() -> None:
    *_, runtime = stages()
    assert json.loads(arguments_of("VOLUME", runtime)[0]) == ["/data"]
    assert arguments_of("WORKDIR", runtime) == ["/data"]
    variables = environment(runtime)
    assert Path(variables["TIMER_DB_PATH"]).parent == Path("/data")
    assert variables.keys() - PYTHON_VARIABLES <= SETTINGS.keys()


@pytest.mark.parametrize("label", ["title", "licenses", "source", "version", "revision"])
def test_the_image_says_where_it_comes_from(label: str) -> None:
    *_, runtime = stages()
    assert f"org.opencontainers.image.{label}=" in arguments_of("LABEL", runtime)[0]


def copied_into_the_builder() -> list[str]:
    _, builder, _ = stages()
    return [word for each in arguments_of("COPY", builder) for word in each.split()[:-1]]


def test_the_build_context_holds_what_is_copied_and_nothing_else() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert "*" in ignored
    kept = [line[1:] for line in ignored if line.startswith("!")]
    assert sorted(copied_into_the_builder()) == sorted(kept)


def test_the_wheel_can_be_built_from_what_is_copied(tmp_path: Path) -> None:
    for each in copied_into_the_builder():
        (tmp_path / each).parent.mkdir(exist_ok=True)
        copy = shutil.copytree if (ROOT / each).is_dir() else shutil.copy
        copy(ROOT / each, tmp_path / each)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", str(tmp_path)]
    answer = subprocess.run(build, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as built:
        assert "duetime/cli/main.py" in built.namelist()


def test_the_lock_holds_all_that_builds_the_wheel() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lock = (ROOT / "requirements" / "runtime.txt").read_text(encoding="utf-8")
    locked = re.findall(r"^([\w-]+)==", lock, re.MULTILINE)
    assert set(pyproject["build-system"]["requires"]) <= set(locked)


def test_the_release_passes_arguments_that_there_are() -> None:
    path = ROOT / ".github" / "workflows" / "release.yaml"
    steps = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]["image"]["steps"]
    (push,) = (step["with"] for step in steps if step.get("id") == "push")
    passed = {line.partition("=")[0] for line in push["build-args"].splitlines()}
    declared = {each.partition("=")[0] for stage in stages() for each in arguments_of("ARG", stage)}
    assert passed == declared - {"PYTHON_IMAGE", "EXTRAS"}


def test_the_image_holds_every_extra_of_the_service() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = sorted(project["optional-dependencies"].keys() - {"dev"})
    _, builder, _ = stages()
    expected = f"[{','.join(extras)}]" if extras else ""
    assert f"EXTRAS={expected}" in arguments_of("ARG", builder)


async def test_the_health_check_tells_a_running_server_from_none(tmp_path: Path) -> None:
    *_, runtime = stages()
    python, *arguments = health_command(runtime)
    assert python == "python"

    def status(port: int) -> int:
        # A proxy in the environment must not answer in the server's place.
        environ = {"PORT": str(port), "http_proxy": "http://127.0.0.1:9"}
        return subprocess.run(
            [sys.executable, *arguments],
            env=environ,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE_SECONDS,
        ).returncode

    async with ServerProcess(tmp_path) as server:
        assert status(int(server.url.rpartition(":")[2])) == 0
    with refusing_port() as port:
        assert status(port) != 0
