"""A disk that fails: a small library before libc lets chosen system calls of a server fail.

Without a C compiler, tests that need it are skipped; where the variable CI is set, they fail.
"""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.brokers.broker_process import find_program, skip_without

_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* The file named by FAILING_DISK holds "<call> <name of a file>" while that call fails. */
static int fails(const char *call, int descriptor) {
    char failing[512], link[64], target[4096];
    const char *path = getenv("FAILING_DISK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return 0;
    ssize_t length = read(file, failing, sizeof failing - 1);
    close(file);
    if (length <= 0) return 0;
    failing[length] = 0;
    char *name = strchr(failing, ' ');
    if (!name) return 0;
    *name++ = 0;
    if (strcmp(failing, call)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    length = readlink(link, target, sizeof target - 1);
    if (length <= 0) return 0;
    target[length] = 0;
    char *base = strrchr(target, '/');
    if (!base || strcmp(base + 1, name)) return 0;
    errno = EIO;
    return 1;
}

#define REAL(name) ((__typeof__(&name)) dlsym(RTLD_NEXT, #name))

int fsync(int descriptor) {
    return fails("sync", descriptor) ? -1 : REAL(fsync)(descriptor);
}

int fdatasync(int descriptor) {
    return fails("sync", descriptor) ? -1 : REAL(fdatasync)(descriptor);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
    return fails("write", descriptor) ? -1 : REAL(pwrite)(descriptor, bytes, count, offset);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t offset) {
    return fails("write", descriptor) ? -1 : REAL(pwrite64)(descriptor, bytes, count, offset);
}
"""


class FailingDisk:
    """Lets calls of the processes that run with `environ` fail with EIO."""

    def __init__(self, directory: Path, library: Path) -> None:
        self._switch = directory / "failing-disk"
        self.environ: Mapping[str, str] = {
            "LD_PRELOAD": str(library),
            "FAILING_DISK": str(self._switch),
        }

    def fail(self, call: str, file_name: str) -> None:
        """From now on `call` ("sync" or "write") fails on the file of that name."""
        self._switch.write_text(f"{call} {file_name}")

    def heal(self) -> None:
        self._switch.unlink()


@pytest.fixture(scope="session")
def failing_disk_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = skip_without(find_program("cc"), "no C compiler (cc): install gcc")
    directory = tmp_path_factory.mktemp("failing-disk")
    source, library = directory / "failing_disk.c", directory / "failing_disk.so"
    source.write_text(_SOURCE)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True
    )
    return library


@pytest.fixture
def failing_disk(tmp_path: Path, failing_disk_library: Path) -> FailingDisk:
    return FailingDisk(tmp_path, failing_disk_library)
