"""A disk that is nearly full: nothing new is accepted, and every accepted timer fires."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from duetime.domain.instants import format_instant
from tests.foreign_reader import foreign_reader
from tests.polling import poll
from tests.real_server.callback_receiver import CallbackReceiver
from tests.real_server.server_process import ServerProcess
from tests.real_server.small_disk import SmallDisk
from tests.real_server.timer_requests import (
    count_timers,
    create_timer,
    in_ms,
    timer_body,
    wait_for_status,
)

pytestmark = pytest.mark.e2e

MIB = 2**20
ACCEPTED = 100
NOWHERE = "http://127.0.0.1:9/"
BATCH = "/api/v1/timers/batch"


def v1_body(timer_id: str, **more: object) -> dict[str, object]:
    execute_at = format_instant(in_ms(3_600_000))
    return {"id": timer_id, "executeAt": execute_at, "callbackUrl": NOWHERE, **more}


async def fill_disk(api: httpx.AsyncClient) -> httpx.Response:
    """Create large timers until one batch is refused."""
    for number in range(40):
        bodies = [v1_body(f"{number}-{each}", payload="x" * 250_000) for each in range(12)]
        answer = await api.post(BATCH, json={"timers": bodies})
        if answer.status_code != 200:
            return answer
    raise AssertionError("the disk did not fill")


async def fire_all(api: httpx.AsyncClient, timer_ids: list[str]) -> None:
    """Change the timers so that they are due now."""
    for timer_id in timer_ids:
        body = {"execute_at": format_instant(in_ms(1_000))}
        changed = await api.put(f"/timers/{timer_id}", json=body)
        assert changed.status_code == 200, changed.text


async def health_of(api: httpx.AsyncClient) -> tuple[int, Any]:
    answer = await api.get("/healthz")
    return answer.status_code, answer.json()


async def test_accepted_timers_fire_while_the_disk_is_full(
    tmp_path: Path, receiver: CallbackReceiver, unshare: Path
) -> None:
    disk = SmallDisk(unshare, tmp_path / "disk", 96 * MIB)
    server = ServerProcess(
        tmp_path,
        launcher=disk.launcher,
        TIMER_DB_PATH=str(disk.directory / "timers.db"),
        DISK_RESERVE_BYTES=str(16 * MIB),
    )
    async with server, server.client() as api:
        ballast = disk.seen_by(server) / "ballast"
        ballast.write_bytes(bytes(32 * MIB))
        due = [await create_timer(api, receiver.url, in_ms(3_600_000)) for _ in range(ACCEPTED)]
        canceled = await create_timer(api, NOWHERE, in_ms(3_600_000))
        known = v1_body("known")
        assert (await api.post("/api/v1/timers", json=known)).status_code == 200

        refused = await fill_disk(api)
        assert (refused.status_code, refused.json()["error"]) == (507, "INSUFFICIENT_STORAGE")
        assert int(refused.headers["retry-after"]) > 0
        await server.wait_for_log("disk.short")
        status, health = await health_of(api)
        assert (status, health["data"]["status"]) == (500, "degraded")
        assert "disk" in health["message"]
        assert health["data"]["disk"]["short"]
        assert health["data"]["engine"]["running"]

        # Everything new is refused, in the format of each door.
        platform = await api.post("/timers", json=timer_body(NOWHERE, in_ms(3_600_000)))
        assert (platform.status_code, platform.json()["code"]) == (503, 1)
        assert "disk" in platform.json()["message"]
        assert int(platform.headers["retry-after"]) > 0
        for path, body in (
            ("/api/v1/timers", v1_body("new")),
            ("/api/v1/timers/create", v1_body("known")),
        ):
            assert (await api.post(path, json=body)).status_code == 507
        namespace = await api.put("/api/v1/namespaces/new", json={})
        assert namespace.status_code == 507
        # The timer exists, and nothing has to be written to say so.
        repeated = await api.post("/api/v1/timers", json=known)
        assert (repeated.status_code, repeated.headers["timer-existence"]) == (200, "existing")

        # Everything that was accepted goes on.
        await fire_all(api, due)
        for timer_id in due:
            await wait_for_status(api, timer_id, "completed")
        assert len(receiver.requests) == ACCEPTED
        assert (await api.delete(f"/timers/{canceled}")).status_code == 200
        assert (disk.seen_by(server) / "timers.db-wal").stat().st_size <= 16 * MIB
        refusals = [entry for entry in server.logs if entry["event"] == "api.unavailable"]
        assert not refusals, "a line for each refused request would fill the disk, too"

        ballast.unlink()
        await server.wait_for_log("disk.enough")
        status, _ = await poll(lambda: health_of(api), lambda health: health[0] == 200)
        assert (await api.post("/api/v1/timers", json=v1_body("new"))).status_code == 200
        assert (await count_timers(api))["completed"] == ACCEPTED


async def test_the_reserve_lasts_while_a_reader_holds_the_log_and_when_it_ends(
    tmp_path: Path, receiver: CallbackReceiver, unshare: Path
) -> None:
    """When the reader ends, the held pages are copied: they need their room a second time."""
    disk = SmallDisk(unshare, tmp_path / "disk", 150 * MIB)
    file = disk.directory / "timers.db"
    server = ServerProcess(tmp_path, launcher=disk.launcher, TIMER_DB_PATH=str(file))
    async with server, server.client() as api:
        due = [await create_timer(api, receiver.url, in_ms(3_600_000)) for _ in range(20)]
        with foreign_reader(file, disk.launcher_beside(server)) as reader:
            assert (await fill_disk(api)).status_code == 507
            for event in ("sqlite.log_held", "disk.short"):
                line = await server.wait_for_log(event)
                assert f"(pid {reader})" in str(line["readers"]), event
            await fire_all(api, due[:10])
            for timer_id in due[:10]:
                await wait_for_status(api, timer_id, "completed")
        await server.wait_for_log("disk.enough")
        assert not [entry for entry in server.logs if entry["event"] == "sqlite.checkpoint_failed"]
        log = disk.seen_by(server) / "timers.db-wal"
        assert log.stat().st_size <= 16 * MIB
        await fire_all(api, due[10:])
        for timer_id in due[10:]:
            await wait_for_status(api, timer_id, "completed")
        assert (await api.post("/api/v1/timers", json=v1_body("new"))).status_code == 200


async def test_a_server_that_starts_on_a_full_disk_fires_its_timers(
    tmp_path: Path, receiver: CallbackReceiver
) -> None:
    """The reserve is more than any disk has, and a namespace is new among the settings."""
    async with ServerProcess(tmp_path) as server, server.client() as api:
        due = await create_timer(api, receiver.url, in_ms(1_500))
        await server.stop()
    full = ServerProcess(tmp_path, DISK_RESERVE_BYTES=str(2**50), NAMESPACES="default,orders")
    async with full, full.client() as api:
        await wait_for_status(api, due, "completed")
        refused = await api.post("/timers", json=timer_body(NOWHERE, in_ms(3_600_000)))
        assert refused.status_code == 503
        assert "DISK_RESERVE_BYTES" in refused.json()["message"]
        assert (await api.get("/api/v1/namespaces/orders")).status_code == 200


async def test_a_first_start_on_a_small_disk_says_what_to_do(tmp_path: Path) -> None:
    async with ServerProcess(tmp_path, DISK_RESERVE_BYTES=str(2**50)) as server:
        line = await server.wait_for_log("disk.short")
        assert "DISK_RESERVE_BYTES" in str(line["advice"])
        async with server.client() as api:
            refused = await api.post("/api/v1/timers", json=v1_body("new"))
            assert refused.status_code == 507


async def test_the_disk_is_that_of_the_file_behind_a_link(tmp_path: Path, unshare: Path) -> None:
    disk = SmallDisk(unshare, tmp_path / "disk", 96 * MIB)
    link = tmp_path / "timers.db"
    link.symlink_to(disk.directory / "timers.db")
    server = ServerProcess(tmp_path, launcher=disk.launcher, TIMER_DB_PATH=str(link))
    async with server, server.client() as api:
        _, health = await health_of(api)
        assert 0 < health["data"]["disk"]["free_bytes"] <= 96 * MIB
