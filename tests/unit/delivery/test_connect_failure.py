"""Why no connection came about, as asyncio tells it."""

from errno import ECONNREFUSED

from duetime.delivery.http_client.failures import connect_failure


def test_a_name_with_several_addresses_that_all_refuse() -> None:
    error = OSError(
        f"Multiple exceptions: [Errno {ECONNREFUSED}] Connect call failed ('::1', 1, 0, 0), "
        f"[Errno {ECONNREFUSED}] Connect call failed ('127.0.0.1', 1)"
    )
    assert str(connect_failure(error, "http")) == "connection refused"
