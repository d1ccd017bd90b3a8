"""Why no connection was established, as asyncio reports it."""

from errno import ECONNREFUSED

from duetime.network_failures import connect_problem


def test_a_name_with_several_addresses_that_all_refuse() -> None:
    error = OSError(
        f"Multiple exceptions: [Errno {ECONNREFUSED}] Connect call failed ('::1', 1, 0, 0), "
        f"[Errno {ECONNREFUSED}] Connect call failed ('127.0.0.1', 1)"
    )
    assert connect_problem(error, "localhost", uses_tls=False) == "connection refused"
