"""A process is known to be gone only when that is certain."""

import os
import subprocess
import sys

import pytest

from duetime.local_process import is_gone, process_name

pytestmark = pytest.mark.skipif(not process_name(), reason="this system has no /proc")


def test_a_living_process_is_not_gone() -> None:
    assert not is_gone(process_name())
    assert not is_gone(process_name(os.getppid()))


def test_a_process_that_ended_is_gone_even_before_anyone_collected_it() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        name = process_name(process.pid)
        assert not is_gone(name)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert is_gone(name)
    assert is_gone(name)


def test_a_pid_that_was_used_again_is_not_the_same_process() -> None:
    machine, pid, start = process_name().rsplit("/", 2)
    assert is_gone(f"{machine}/{pid}/{int(start) - 1}")


@pytest.mark.parametrize("name", ["", "x", "a/b/c", "other-boot/pid:[1]/1/1", "//1/1"])
def test_a_process_that_may_live_elsewhere_is_not_gone(name: str) -> None:
    assert not is_gone(name)
