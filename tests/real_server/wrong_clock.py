"""A wall clock that is wrong: a small library before libc shifts what a server reads.

Without a C compiler, tests that need it are skipped; where the variable CI is set, they fail.
"""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.brokers.broker_process import find_program, skip_without

_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *)) dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    const char *seconds = getenv("CLOCK_AHEAD_SECONDS");
    if (clock == CLOCK_REALTIME && seconds) now->tv_sec += atol(seconds);
    return result;
}
"""

ClockAhead = Callable[[int], dict[str, str]]


@pytest.fixture
def clock_ahead(tmp_path: Path) -> ClockAhead:
    """The environment of a process whose wall clock is that many seconds ahead."""
    compiler = skip_without(find_program("cc"), "no C compiler (cc): install gcc")
    source, library = tmp_path / "wrong_clock.c", tmp_path / "wrong_clock.so"
    source.write_text(_SOURCE)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True
    )
    return lambda seconds: {"LD_PRELOAD": str(library), "CLOCK_AHEAD_SECONDS": str(seconds)}
