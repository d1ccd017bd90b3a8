"""A fail-over, as the node that took over explains it."""

from pathlib import Path

import pytest

from tests.cluster.nodes import running_nodes
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.timer_requests import in_ms
from tests.real_server.v1_requests import create_v1, wait_for_v1

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(300)]

LEASE_SECONDS = 10
"""Long enough for a fail-over to be noticed: it takes up to a beat, a tenth of this."""


async def test_timers_of_a_killed_node_show_the_fail_over(
    tmp_path: Path, receiver: CallbackReceiver, postgres_url: str, postgres_schema: str
) -> None:
    receiver.reaction = Answer(body=b'{"ok": true}')
    async with (
        running_nodes(
            2, tmp_path, postgres_url, postgres_schema, LEASE_SECONDS=str(LEASE_SECONDS)
        ) as nodes,
        nodes[1].client() as api,
    ):
        ids = [f"t-{n}" for n in range(40)]
        await nodes[0].kill()
        for id in ids:
            await create_v1(api, id, receiver.url, in_ms(20))
        for id in ids:
            await wait_for_v1(api, id, "completed")
        shares = []
        for id in ids:
            explanation = (await api.get(f"/api/v1/explain/default/{id}")).json()
            sums = {each["cause"]: each["ms"] for each in explanation["periods"]}
            if "failover" in sums:
                shares.append(sums["failover"] / explanation["latenessMs"])
        assert shares, "some timers are of shards that the killed node had"
        assert max(shares) > 0.8
