"""A server in a network namespace of its own, where only 101 local ports are to be had.

Run as a command, because a process cannot enter a namespace and leave it again:
`unshare --map-root-user --net python -m tests.real_server.few_ports DIRECTORY`.
It prints how many of its 300 timers have each status.
"""

import asyncio
import fcntl
import json
import socket
import struct
import sys
from pathlib import Path

from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import in_ms, wait_until_dry
from tests.real_server.v1_requests import TIMERS, v1_body

TIMERS_AT_ONCE = 300
PORTS = "40000 40100"

_SET_FLAGS = 0x8914
_IS_UP = 0x1


def bring_loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh", b"lo", _IS_UP))


async def fire(directory: Path) -> dict[str, int]:
    """Let timers fire whose endpoint wants a new connection for each callback."""
    async with (
        CallbackReceiver() as receiver,
        ServerProcess(directory) as server,
        server.client() as api,
    ):
        receiver.reaction = Answer(body=b'{"ok": true}', headers={"Connection": "close"})
        due_at = in_ms(500)
        bodies = [
            v1_body(f"t{number}", receiver.url, due_at, retryPolicy={"maxRetries": 0})
            for number in range(TIMERS_AT_ONCE)
        ]
        (await api.post(f"{TIMERS}/batch", json={"timers": bodies})).raise_for_status()
        counts = await wait_until_dry(api)
        sys.stderr.write("\n".join(server.output))
        return counts


if __name__ == "__main__":
    bring_loopback_up()
    Path("/proc/sys/net/ipv4/ip_local_port_range").write_text(PORTS)
    sys.stdout.write(json.dumps(asyncio.run(fire(Path(sys.argv[1])))))
