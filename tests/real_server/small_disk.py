"""A real file system of a few megabytes, in a mount namespace of the server's own.

Where the kernel does not permit that, tests that need it are skipped; where the variable CI is set,
they fail.
"""

import os
import subprocess
from pathlib import Path

import pytest

from tests.brokers.broker_process import find_program, skip_without
from tests.real_server.server_process import ServerProcess

_MOUNT_AND_RUN = 'mount -t tmpfs -o "size=$1" tmpfs "$2" && shift 2 && exec "$@"'


class SmallDisk:
    """`launcher` starts a program for which `directory` is a file system of `size_bytes`."""

    def __init__(self, unshare: Path, directory: Path, size_bytes: int) -> None:
        self.directory = directory
        # Both programs are of util-linux.
        self._nsenter = unshare.with_name("nsenter")
        directory.mkdir()
        # Only root may mount; others are root in a namespace of users.
        options = ("--mount",) if os.getuid() == 0 else ("--mount", "--user", "--map-root-user")
        script = ("sh", "-c", _MOUNT_AND_RUN, "sh", str(size_bytes), str(directory))
        self.launcher = (str(unshare), *options, *script)

    def launcher_beside(self, server: ServerProcess) -> list[str]:
        """Starts a program that sees the same directory as the running server."""
        namespaces = [f"--mount=/proc/{server.pid}/ns/mnt"]
        if os.getuid() != 0:
            namespaces += [f"--user=/proc/{server.pid}/ns/user", "--preserve-credentials"]
        return [str(self._nsenter), *namespaces]

    def seen_by(self, server: ServerProcess) -> Path:
        """The directory as the running server sees it."""
        return Path(f"/proc/{server.pid}/root{self.directory}")


@pytest.fixture(scope="session")
def unshare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    missing = "no mount namespaces here: needs util-linux, and root or user namespaces"
    program = skip_without(find_program("unshare"), missing)
    disk = SmallDisk(program, tmp_path_factory.mktemp("small-disk") / "tried", 2**20)
    tried = subprocess.run([*disk.launcher, "true"], check=False, capture_output=True)
    return skip_without(program if tried.returncode == 0 else None, missing)
