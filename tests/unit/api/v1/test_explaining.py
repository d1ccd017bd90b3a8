"""The explanation of a timer over HTTP."""

from msgspec.structs import replace

from duetime.domain.lateness.waits import WaitCause
from duetime.domain.timer import Wait
from duetime.ports.endpoints import EndpointState, EndpointStatus
from duetime.testing.store_contract.steps import claim, failure, own_shards
from tests.unit.api.v1.v1_bench import V1Bench, error_of

PATH = "/api/v1/explain/default"


async def test_a_timer_in_the_future_is_not_due_yet(bench: V1Bench) -> None:
    await bench.create_v1("t")
    answer = (await bench.request("GET", f"{PATH}/t")).json
    assert (answer["namespace"], answer["id"], answer["status"]) == ("default", "t", "pending")
    assert answer["verdict"].startswith("Not due yet: it fires in ")
    assert (answer["latenessMs"], answer["periods"], answer["attempts"]) == (None, [], [])
    assert (answer["node"], answer["live"], answer["owner"]) == ("node-1", True, "node-1")


async def test_an_attempt_that_failed_is_shown_with_the_wait_for_its_retry(bench: V1Bench) -> None:
    await bench.create_v1("t")
    (claimed,) = await claim(bench.store, await own_shards(bench.store))
    await bench.store.settle([failure(claimed)])
    answer = (await bench.request("GET", f"{PATH}/t")).json
    (attempt,) = answer["attempts"]
    assert (attempt["number"], attempt["outcome"], attempt["error"]) == (1, "failed", "HTTP 500")
    assert sum(period["ms"] for period in answer["periods"]) >= 0


async def test_ids_may_have_slashes_and_odd_characters(bench: V1Bench) -> None:
    for id, path in (("a/b", "a/b"), ("c/d", "c%2Fd"), ("x cancel", "x%20cancel"), ("é", "%C3%A9")):
        await bench.create_v1(id)
        assert (await bench.request("GET", f"{PATH}/{path}")).json["id"] == id


async def test_an_unknown_timer_or_namespace_or_parameter_is_refused(bench: V1Bench) -> None:
    await bench.create_v1("t")
    assert error_of(await bench.request("GET", f"{PATH}/other"))[:2] == (404, "TIMER_NOT_FOUND")
    unknown = await bench.request("GET", "/api/v1/explain/nowhere/t")
    assert error_of(unknown)[:2] == (400, "NAMESPACE_NOT_FOUND")
    assert error_of(await bench.request("GET", f"{PATH}/t?secrets=true"))[0] == 400
    assert error_of(await bench.request("POST", f"{PATH}/t"))[0] == 405


async def test_the_state_of_an_endpoint_is_not_for_keys_of_some_namespaces(bench: V1Bench) -> None:
    """Another team may call it too, and its last error may have words of that team's answers."""
    await bench.create_v1("t")
    bench.clock.advance(3_600 * 24)
    bench.report = replace(
        bench.report,
        waits=(Wait("breaker", 1_000),),
        waits_for=WaitCause.BREAKER,
        endpoint=EndpointStatus(
            endpoint="https://example.com:443",
            state=EndpointState.OPEN,
            in_flight=4,
            waiting=7,
            consecutive_failures=20,
            last_error="HTTP 503: words of another team",
            opened_at=bench.clock.now(),
        ),
    )
    assert "another team" in (await bench.request("GET", f"{PATH}/t")).json["verdict"]
    key = await bench.issue_key("read", namespaces=["default"])
    answer = await bench.request("GET", f"{PATH}/t", key=key)
    assert answer.status == 200
    assert b"another team" not in answer.content
    assert "breaker" in answer.json["verdict"]
