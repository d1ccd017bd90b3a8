"""The examples, run as a reader would run them, against a real server."""

import asyncio
import re
import sys
from pathlib import Path

import pytest

from tests.brokers.running_broker import RunningBroker
from tests.polling import PATIENCE_SECONDS
from tests.real_server.command import Finished
from tests.real_server.server_process import API_KEY, ServerProcess

pytestmark = pytest.mark.e2e

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def server(shared_server: ServerProcess) -> ServerProcess:
    return shared_server


async def run_example(name: str, *arguments: str, directory: Path, **environ: str) -> Finished:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(EXAMPLES / name),
        *arguments,
        cwd=directory,
        env={"PATH": "/usr/bin:/bin", **environ},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return Finished(process.returncode, output.decode(), errors.decode())


async def test_remind_me_receives_its_callback(server: ServerProcess, tmp_path: Path) -> None:
    status, output, errors = await run_example(
        "remind_me.py",
        "Tea is ready",
        "--seconds=1",
        directory=tmp_path,
        DUETIME_URL=server.url,
        API_KEY=API_KEY,
    )
    assert (status, errors) == (0, "")
    assert re.search(r"^Timer reminder-[0-9a-f-]{36} is due in 1 s\.$", output, re.MULTILINE)
    assert re.search(r"^Tea is ready  \(\d+\.\d ms late\)$", output, re.MULTILINE)


async def test_remind_me_finds_the_key_of_dev(server: ServerProcess, tmp_path: Path) -> None:
    (tmp_path / ".duetime-dev-key").write_text(API_KEY + "\n")
    finished = await run_example(
        "remind_me.py", "--seconds=0.5", directory=tmp_path, DUETIME_URL=server.url
    )
    assert finished.status == 0, finished.errors


async def test_remind_me_reports_a_refusal(server: ServerProcess, tmp_path: Path) -> None:
    finished = await run_example(
        "remind_me.py", directory=tmp_path, DUETIME_URL=server.url, API_KEY="wrong"
    )
    assert finished == (
        1,
        "",
        "refused: missing or invalid key: send X-API-Key, or Authorization: Bearer\n",
    )


async def test_the_verified_receiver_accepts_signed_callbacks_only(
    server: ServerProcess, tmp_path: Path
) -> None:
    status, output, errors = await run_example(
        "verified_receiver.py",
        "--seconds=0.5",
        directory=tmp_path,
        DUETIME_URL=server.url,
        API_KEY=API_KEY,
    )
    assert (status, errors) == (0, "")
    assert output.splitlines() == [
        "Accepted: The order has expired",
        "Refused a callback that is not signed by our secret.",
        "The forged callback was answered with 401.",
    ]


async def test_a_paid_order_never_expires_and_a_late_payment_is_refused(
    server: ServerProcess, tmp_path: Path
) -> None:
    status, output, errors = await run_example(
        "cancel_on_payment.py",
        "--seconds=1",
        directory=tmp_path,
        DUETIME_URL=server.url,
        API_KEY=API_KEY,
    )
    assert (status, errors) == (0, "")
    lines = [line.partition(": ")[2] for line in output.splitlines()]
    assert lines[:5] == [
        "placed, expires in 1 s",
        "placed, expires in 1 s",
        "placed, expires in 1 s",
        "paid, and will never expire",
        "expired",
    ]
    assert re.fullmatch(
        r"payment comes too late \(cannot cancel timer with status '(executing|completed)'\)",
        lines[5],
    )


async def test_a_job_is_checked_until_it_is_done(server: ServerProcess, tmp_path: Path) -> None:
    status, output, errors = await run_example(
        "check_until_done.py",
        "--every=0.3",
        "--looks=3",
        directory=tmp_path,
        DUETIME_URL=server.url,
        API_KEY=API_KEY,
    )
    assert (status, errors) == (0, "")
    first, *looks = output.splitlines()
    assert re.fullmatch(r"Timer check job/[0-9a-f-]{36} is pending, first look at [\d:]+\.", first)
    assert [look.split(": ")[1].split(",")[0] for look in looks] == ["not done", "not done", "done"]


async def test_calls_go_over_the_bus_and_back(broker: RunningBroker, tmp_path: Path) -> None:
    async with ServerProcess(tmp_path, **broker.settings), broker.client() as bus:
        for _ in range(2):
            # The second run finds the consumer of the first, and resumes where that ended.
            status, output, errors = await run_example(
                "bus_round_trip.py",
                "--calls=3",
                "--seconds=0.5",
                directory=tmp_path,
                **broker.settings,
            )
            assert (status, errors) == (0, "")
            first, *calls = output.splitlines()
            assert first == "3 calls are scheduled, the first in 0.5 s."
            assert len(calls) == 3
            for call in calls:
                assert re.fullmatch(r"call-[0-9a-f]{8}-\d: due  \(\d+\.\d ms late\)", call)
        await bus.book.wait_for_total(6)
        assert set(bus.book.times_by_call().values()) == {1}


async def test_a_broker_without_streams_is_reported(broker: RunningBroker, tmp_path: Path) -> None:
    status, output, errors = await run_example("bus_round_trip.py", broker.url, directory=tmp_path)
    assert (status, output) == (1, "")
    assert errors.startswith("the broker has no streams for timers: start NATS with JetStream")


async def test_a_broker_of_another_kind_is_reported(tmp_path: Path) -> None:
    finished = await run_example("bus_round_trip.py", "redis://127.0.0.1", directory=tmp_path)
    assert finished.status == 1
    assert finished.errors.startswith("this example needs the address of a NATS server")
