"""The image and the services of compose.yaml, built and run where a container engine answers. No
engine comes from a package, so these tests are skipped without one, also in CI."""

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.brokers.broker_process import free_port
from tests.deploy.dockerfile import ROOT
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.server_process import API_KEY, ServerProcess
from tests.real_server.timer_requests import in_ms
from tests.real_server.v1_requests import create_v1, wait_for_v1

IMAGE = "duetime:test"
INFO_SECONDS = 20
SETTINGS = ("API_KEY", "CALLBACK_NETWORKS", "HOST", "LOG_FORMAT", "PORT", "TIMER_DB_PATH")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def docker(*arguments: str, **environ: str) -> str:
    answer = subprocess.run(
        ["docker", *arguments], capture_output=True, text=True, env=os.environ | environ
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


@pytest.fixture(scope="module")
def engine() -> None:
    if shutil.which("docker") is None:
        pytest.skip("no container engine: docker is not installed")
    try:
        answer = subprocess.run(["docker", "info"], capture_output=True, timeout=INFO_SECONDS)
    except subprocess.TimeoutExpired:
        pytest.skip("no container engine: docker info does not answer")
    if answer.returncode:
        pytest.skip("no container engine: docker info finds no server")


@pytest.fixture(scope="module")
def image(engine: None) -> str:
    docker("build", "--tag", IMAGE, str(ROOT))
    return IMAGE


@pytest.fixture
def volume(image: str) -> Iterator[str]:
    name = docker("volume", "create").strip()
    yield name
    docker("volume", "rm", "--force", name)


def launcher(image: str, volume: str) -> list[str]:
    """A command that runs the image in the place of `duetime`, with nothing to write to but the
    volume and /tmp. On the network of the host it reaches the receiver of the test."""
    options = ["--rm", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--network", "host"]
    options += ["--security-opt", "no-new-privileges:true", "--volume", f"{volume}:/data"]
    options += [f"--env={name}" for name in SETTINGS]
    command = shlex.join([str(shutil.which("docker")), "run", *options, image])
    return ["sh", "-c", f'shift; exec {command} "$@"', "sh"]


async def test_a_read_only_container_fires_timers_and_keeps_them(
    image: str, volume: str, tmp_path: Path
) -> None:
    server = ServerProcess(
        tmp_path, launcher=launcher(image, volume), TIMER_DB_PATH="/data/duetime.db"
    )
    async with CallbackReceiver() as receiver:
        receiver.reaction = Answer(body=b'{"ok": true}')
        await server.start()
        async with server.client() as api:
            await create_v1(api, "in-a-container", receiver.url, in_ms(1_000))
            await receiver.wait_for(1)
            await wait_for_v1(api, "in-a-container", "completed")
        assert await server.stop() == 0
        await server.start()
        async with server.client() as api:
            await wait_for_v1(api, "in-a-container", "completed")
        assert await server.stop() == 0


def test_the_image_has_no_pip_and_no_root(image: str) -> None:
    run = ("run", "--rm", "--read-only", "--entrypoint", "python", image)
    assert docker(*run, "-c", "import os; print(os.getuid())").strip() == "10001"
    script = "import importlib.util as u; print(u.find_spec('pip'), u.find_spec('hatchling'))"
    assert docker(*run, "-c", script).strip() == "None None"


@pytest.fixture
def compose(engine: None) -> Iterator[Callable[..., str]]:
    if subprocess.run(["docker", "compose", "version"], capture_output=True).returncode:
        pytest.skip("docker has no compose")
    port = free_port()

    def run(*arguments: str) -> str:
        project = (
            "compose",
            "--file",
            str(ROOT / "compose.yaml"),
            "--project-name",
            f"test-{port}",
        )
        return docker(*project, *arguments, API_KEY=API_KEY, PORT=str(port))

    yield run
    run("--profile", "cluster", "down", "--volumes", "--timeout", "5")


def test_compose_runs_one_node(compose: Callable[..., str]) -> None:
    compose("up", "--detach", "--wait", "--wait-timeout", "600")
    assert compose("ps", "--services").split() == ["duetime"]
    published = compose("port", "duetime", "8080").strip()
    assert httpx.get(f"http://{published}/readyz", trust_env=False).status_code == 200


def test_compose_runs_a_cluster(compose: Callable[..., str]) -> None:
    up = ("up", "--detach", "--wait", "--wait-timeout", "600", "--scale", "duetime=0")
    compose("--profile", "cluster", *up)
    cluster = json.loads(
        compose("--profile", "cluster", "exec", "-T", "node-1", "duetime", "cluster", "--json")
    )
    assert len(cluster["members"]) == 2
