"""Problems over the API: as documented, and for those whom they concern."""

import pytest

from duetime.api.v1.routes import examples
from duetime.domain.instants import parse_instant
from duetime.domain.namespace import Namespace
from duetime.ports.endpoints import EndpointState, EndpointStatus, HeldTimers
from duetime.service.reporting import findings
from tests.unit.api.asgi_client import ApiBench

PATH = "/api/v1/problems"
ENDPOINT = "https://api.example.com:443"
SINCE = parse_instant("2030-01-01T14:02:00Z")


@pytest.fixture
async def api() -> ApiBench:
    bench = ApiBench()
    await bench.open()
    for name in ("billing", "shipping"):
        await bench.store.add_namespace(Namespace(name, 16))
    await bench.namespaces.refresh()
    # Later than the instant since when the problem lasts.
    bench.clock.advance(86_400)
    held = HeldTimers(endpoint=ENDPOINT, namespace="billing", timers=2_310, since=SINCE)
    status = EndpointStatus(
        endpoint=ENDPOINT,
        state=EndpointState.OPEN,
        in_flight=4,
        waiting=0,
        consecutive_failures=30,
        last_error="connection refused",
        opened_at=SINCE,
    )
    bench.findings = list(findings.behind_breakers([held], [status]))
    bench.problems.look()
    return bench


async def test_the_example_is_answered_as_shown(api: ApiBench) -> None:
    assert (await api.request("GET", PATH)).json == examples.PROBLEMS


async def test_a_key_for_some_namespaces_sees_what_concerns_them(api: ApiBench) -> None:
    own = await api.issue_key("read", namespaces=["billing"])
    foreign = await api.issue_key("read", namespaces=["shipping"])
    (problem,) = (await api.request("GET", PATH, key=own)).json["problems"]
    assert problem["sentence"].startswith("2,310 timers")
    assert problem["detail"] == ""
    assert (await api.request("GET", PATH, key=foreign)).json == {"problems": []}


async def test_nothing_wrong_is_an_empty_list(api: ApiBench) -> None:
    api.findings = []
    api.problems.look()
    assert (await api.request("GET", PATH)).json == {"problems": []}
