"""The list of endpoints."""

from duetime.ports.endpoints import EndpointState, EndpointStatus
from tests.unit.api.asgi_client import call
from tests.unit.api.v1.v1_bench import V1Bench, error_of


async def test_endpoints_are_shown_with_their_state(bench: V1Bench) -> None:
    bench.endpoints.append(
        EndpointStatus(
            endpoint="https://example.com:443",
            state=EndpointState.HALF_OPEN,
            in_flight=4,
            waiting=7,
            consecutive_failures=20,
            last_error="timed out after 30 s",
            opened_at=bench.clock.now(),
        )
    )
    assert (await bench.request("GET", "/api/v1/endpoints")).json == {
        "node": "node-1",
        "endpoints": [
            {
                "endpoint": "https://example.com:443",
                "state": "halfOpen",
                "inFlight": 4,
                "waiting": 7,
                "consecutiveFailures": 20,
                "lastError": "timed out after 30 s",
                "openedAt": "2030-01-01T00:00:00Z",
            }
        ],
    }


async def test_endpoints_need_the_key(bench: V1Bench) -> None:
    assert error_of(await call(bench.app, "GET", "/api/v1/endpoints"))[0] == 401
