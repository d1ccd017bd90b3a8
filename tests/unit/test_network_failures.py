"""Why no connection was established, as asyncio reports it, and whether we are to blame."""

import socket
import ssl
from errno import EADDRNOTAVAIL, ECONNREFUSED, EMFILE, ENFILE, ENOBUFS, ENOMEM

import pytest

from duetime.network_failures import connect_problem, has_source_address, scarce_resource


def test_a_name_with_several_addresses_that_all_refuse() -> None:
    error = OSError(
        f"Multiple exceptions: [Errno {ECONNREFUSED}] Connect call failed ('::1', 1, 0, 0), "
        f"[Errno {ECONNREFUSED}] Connect call failed ('127.0.0.1', 1)"
    )
    assert connect_problem(error, "localhost", uses_tls=False) == "connection refused"


@pytest.mark.parametrize(
    ("error", "resource"),
    [
        (OSError(EMFILE, ""), "file descriptors"),
        (OSError(ENFILE, ""), "file descriptors"),
        (OSError(EADDRNOTAVAIL, ""), "local ports"),
        (OSError(ENOBUFS, ""), "network buffers"),
        (OSError(ENOMEM, ""), "memory"),
        (MemoryError(), "memory"),
        (socket.gaierror(socket.EAI_MEMORY, ""), "memory"),
        (OSError(ECONNREFUSED, ""), None),
        (TimeoutError(), None),
        (socket.gaierror(socket.EAI_NONAME, ""), None),
        (ssl.SSLCertVerificationError("unknown authority"), None),
        (ValueError(), None),
    ],
    ids=repr,
)
def test_a_shortage_of_this_machine_is_told_from_a_failure(
    error: Exception, resource: str | None
) -> None:
    assert scarce_resource(error) == resource


@pytest.mark.parametrize(
    ("numbers", "resource"),
    [
        ((EMFILE, EMFILE), "file descriptors"),
        # A machine without IPv6 reports this for ::1 even if it has ports.
        ((EADDRNOTAVAIL, ECONNREFUSED), None),
    ],
)
def test_all_addresses_of_a_name_have_to_fail_for_want_of_it(
    numbers: tuple[int, int], resource: str | None
) -> None:
    failures = ", ".join(f"[Errno {number}] Connect call failed" for number in numbers)
    assert scarce_resource(OSError(f"Multiple exceptions: {failures}")) == resource


@pytest.mark.parametrize(
    "error",
    [socket.gaierror(socket.EAI_NONAME, ""), ssl.SSLCertVerificationError("unknown authority")],
    ids=["resolver", "certificate"],
)
def test_a_shortage_that_a_library_hides_is_found(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_more(*_: object) -> None:
        raise OSError(EMFILE, "Too many open files")

    monkeypatch.setattr(socket, "socket", no_more)
    assert scarce_resource(error) == "file descriptors"


def test_a_machine_has_an_address_to_reach_itself_from() -> None:
    assert has_source_address(socket.AF_INET, "127.0.0.1", 9)
