"""The service on a file system that is read-only, as in the container and in the pods."""

import os
import subprocess
from pathlib import Path

from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.databases import Database, SqliteDatabase, on_every_database
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import in_ms
from tests.real_server.v1_requests import create_v1, wait_for_v1

# Every mount becomes read-only, but for the directory and what belongs to the kernel.
SCRIPT = """
test -z "$1" || mount --bind "$1" "$1"
while read -r _ _ _ _ target _; do
  case "$target" in
    "$1" | /dev* | /proc* | /sys*) ;;
    *) mount -o remount,bind,ro "$target" ;;
  esac
done < /proc/self/mountinfo
shift
exec "$@"
"""


def launcher(unshare: Path, writable: Path | None) -> list[str]:
    options = ["--mount"] if os.getuid() == 0 else ["--mount", "--user", "--map-root-user"]
    return [str(unshare), *options, "sh", "-c", SCRIPT, "sh", str(writable or "")]


def test_nothing_but_the_directory_can_be_written(unshare: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    start = launcher(unshare, data)
    assert subprocess.run([*start, "touch", data / "file"]).returncode == 0
    for closed in (tmp_path / "file", Path("/tmp/file-of-a-test"), Path("/etc/file-of-a-test")):
        answer = subprocess.run([*start, "touch", closed], capture_output=True, text=True)
        assert "Read-only file system" in answer.stderr


@on_every_database
async def test_timers_fire_on_a_read_only_file_system(
    database: Database, unshare: Path, tmp_path: Path
) -> None:
    # On PostgreSQL not even that directory is needed.
    writable = tmp_path if isinstance(database, SqliteDatabase) else None
    server = ServerProcess(tmp_path, launcher=launcher(unshare, writable), **database.settings)
    async with CallbackReceiver() as receiver, server, server.client() as api:
        receiver.reaction = Answer(body=b'{"ok": true}')
        await create_v1(api, "read-only", receiver.url, in_ms(100))
        await wait_for_v1(api, "read-only", "completed")
        assert await server.stop() == 0
