"""A record of the addresses that a server connects to: a small library before libc notes them.

Without a C compiler, tests that need it are skipped; where the variable CI is set, they fail.
"""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.brokers.broker_process import find_program, skip_without

_SOURCE = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int connect(int descriptor, const struct sockaddr *address, socklen_t length) {
    char text[INET6_ADDRSTRLEN] = "", line[128];
    if (address->sa_family == AF_INET)
        inet_ntop(AF_INET, &((struct sockaddr_in *) address)->sin_addr, text, sizeof text);
    if (address->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((struct sockaddr_in6 *) address)->sin6_addr, text, sizeof text);
    const char *path = getenv("CONNECT_RECORD");
    int file = *text && path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (file >= 0) {
        ssize_t ignored = write(file, line, snprintf(line, sizeof line, "%s\n", text));
        (void) ignored;
        close(file);
    }
    return ((__typeof__(&connect)) dlsym(RTLD_NEXT, "connect"))(descriptor, address, length);
}
"""


class ConnectRecord:
    """The IP addresses to which the processes that run with `environ` connected any socket."""

    def __init__(self, directory: Path, library: Path) -> None:
        self._file = directory / "connects"
        self.environ: Mapping[str, str] = {
            "LD_PRELOAD": str(library),
            "CONNECT_RECORD": str(self._file),
        }

    @property
    def addresses(self) -> set[str]:
        return set(self._file.read_text().split()) if self._file.exists() else set()


@pytest.fixture
def connect_record(tmp_path: Path) -> ConnectRecord:
    compiler = skip_without(find_program("cc"), "no C compiler (cc): install gcc")
    source, library = tmp_path / "connect_record.c", tmp_path / "connect_record.so"
    source.write_text(_SOURCE)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True
    )
    return ConnectRecord(tmp_path, library)
