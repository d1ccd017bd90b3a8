"""A secret holds on every node."""

from pathlib import Path

import pytest
from standardwebhooks import Webhook

from tests.cluster.nodes import SHARDS, running_nodes
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.timer_requests import in_ms
from tests.real_server.v1_requests import create_v1

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PROPAGATION_MS = 5_000
"""Time after which every node signs, also on a busy machine; two seconds are promised."""


async def test_every_node_signs_with_a_secret_that_was_created_on_another(
    tmp_path: Path, receiver: CallbackReceiver, postgres_url: str, postgres_schema: str
) -> None:
    receiver.reaction = Answer(body=b'{"ok": true}')
    async with running_nodes(2, tmp_path, postgres_url, postgres_schema) as nodes:
        async with nodes[0].client() as api:
            made = await api.post("/api/v1/namespaces/default/secrets")
            for number in range(2 * SHARDS):
                id, due_at = f"timer-{number}", in_ms(PROPAGATION_MS)
                await create_v1(api, id, receiver.url, due_at, payload={"n": number})
        await receiver.wait_for_total(2 * SHARDS)
        async with nodes[1].client() as api:
            listed = (await api.get("/api/v1/namespaces/default/secrets")).json()["secrets"]
    assert [each["id"] for each in listed] == [made.json()["id"]]
    for request in receiver.requests:
        Webhook(made.json()["secret"]).verify(request.body, request.headers)
