"""The addresses by which a process would call itself."""

import resource
import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path

import pytest

from duetime.listener import OwnAddresses

PORT = 8080

IN_NAMESPACE = """
import fcntl, socket, struct
from ipaddress import ip_address
from duetime.listener import OwnAddresses
from tests.real_server.few_ports import bring_loopback_up

def give(label, request, address):
    name = label.encode().ljust(16, bytes(1))
    where = struct.pack("=16sH2s4s8s", name, socket.AF_INET, bytes(2), address.packed, bytes(8))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, request, where)

bring_loopback_up()
given = ("10.1.0.1", "10.1.0.2", "198.51.100.7")
for number, text in enumerate(given):
    give(f"lo:{number}", 0x8916, ip_address(text))
    give(f"lo:{number}", 0x891C, ip_address("255.255.255.255"))
own = OwnAddresses([("0.0.0.0", 8080)])
for text in (*given, "127.0.0.9"):
    assert own.include(ip_address(text), 8080), text
assert not own.include(ip_address("10.1.0.3"), 8080)
print("checked")
"""


def test_every_address_of_an_interface_is_an_own_one(unshare: Path) -> None:
    done = subprocess.run(
        [str(unshare), "--map-root-user", "--net", sys.executable, "-c", IN_NAMESPACE],
        check=False,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert (done.stdout, done.returncode) == ("checked\n", 0), done.stderr


@pytest.mark.parametrize("host", ["127.0.0.1", "::ffff:127.0.0.1"])
def test_a_mapped_address_is_the_same_listener(host: str) -> None:
    own = OwnAddresses([(host, PORT)])
    assert own.include(ip_address("127.0.0.1"), PORT)
    assert not own.include(ip_address("127.0.0.2"), PORT)


def test_addresses_of_others_are_not_own_ones() -> None:
    own = OwnAddresses([("0.0.0.0", PORT)])
    assert not own.include(ip_address("192.0.2.77"), PORT)
    assert not own.include(ip_address("127.0.0.1"), PORT + 1)


def test_without_descriptors_nobody_claims_to_know() -> None:
    own = OwnAddresses([("0.0.0.0", PORT)])
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            own.include(ip_address("192.0.2.77"), PORT)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
