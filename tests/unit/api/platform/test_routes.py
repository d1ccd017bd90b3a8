"""Every operation of the platform API, and every status that it answers with."""

from uuid import UUID

import pytest

from duetime.domain.callback import BusCallback, Callback, NatsCallback
from duetime.domain.outcome import Completed, Failed
from duetime.domain.transitions import settlement_of
from duetime.ports.store import CreateRequest, OnExisting
from duetime.testing import make_timer
from duetime.testing.store_contract.steps import own_shards
from tests.unit.api.asgi_client import IN_TEN_SECONDS, ApiBench

ABSENT = "/timers/01977f3e-7a10-7cc2-9d53-3f1f4c1f8a55"


async def settle_all(api: ApiBench, *, error: str | None) -> None:
    """Claim due timers and settle them 120 ms later."""
    leases = await own_shards(api.store)
    now = api.clock.now()
    batch = await api.store.claim_due(leases, now=now, until_inclusive=now, limit=100)
    api.clock.advance(0.12)
    answered_at = api.clock.now()
    outcome = (
        Completed(sent_at=now, answered_at=answered_at)
        if error is None
        else Failed(sent_at=now, answered_at=answered_at, error=error)
    )
    await api.store.settle(
        [
            settlement_of(claim, outcome, chance=0.0, new_delivery_id=lambda: "next")
            for claim in batch.claims
        ]
    )


class TestCreate:
    async def test_answers_with_the_timer(self, api: ApiBench) -> None:
        reply = await api.create()
        assert reply.status == 201
        assert reply.headers["content-type"] == "application/json"
        data = reply.data
        assert UUID(data["id"]).version == 7
        assert reply.json == {
            "code": 0,
            "message": "timer created successfully",
            "data": {
                "id": data["id"],
                "created_at": "2030-01-01T00:00:00Z",
                "execute_at": IN_TEN_SECONDS,
                "callback_type": "http",
                "status": "pending",
                "executed_at": None,
            },
        }

    @pytest.mark.parametrize(
        ("text", "normalised"),
        [
            ("2030-01-01T01:00:10+01:00", "2030-01-01T00:00:10Z"),
            ("2029-12-31T19:00:10-0500", "2030-01-01T00:00:10Z"),
            ("2030-01-01 00:00:10Z", "2030-01-01T00:00:10Z"),
            ("2030-01-01T00:00:10.125Z", "2030-01-01T00:00:10.125Z"),
            ("2030-01-01T00:00:10.123456Z", "2030-01-01T00:00:10.123456Z"),
            ("2030-01-01T00:01Z", "2030-01-01T00:01:00Z"),
        ],
    )
    async def test_instants_are_read_with_any_offset(
        self, api: ApiBench, text: str, normalised: str
    ) -> None:
        assert (await api.create(execute_at=text)).data["execute_at"] == normalised

    async def test_unknown_members_are_refused(self, api: ApiBench) -> None:
        """If a misspelled `retry_policy` were ignored, its promise would be lost silently."""
        reply = await api.create(retrypolicy={})
        assert reply.error == (
            400,
            2,
            "retrypolicy is not a known field; did you mean 'retry_policy'?",
        )

    async def test_a_repeat_with_the_same_key_is_the_same_timer(self, api: ApiBench) -> None:
        first = await api.create(idempotency_key="k", metadata={"a": 1, "b": 2})
        again = await api.create(idempotency_key="k", metadata={"b": 2, "a": 1})
        assert (first.status, again.status) == (201, 200)
        assert first.data == again.data
        assert again.json["message"] == "timer already exists"
        api.clock.advance(60)
        late = await api.create(idempotency_key="k", metadata={"a": 1, "b": 2})
        assert (late.status, late.data["id"]) == (200, first.data["id"])

    async def test_another_body_with_the_same_key_is_a_conflict(self, api: ApiBench) -> None:
        await api.create(idempotency_key="k")
        reply = await api.create(idempotency_key="k", metadata=1)
        assert reply.error == (409, 2, "idempotency_key was used for a different timer")

    async def test_null_means_absent(self, api: ApiBench) -> None:
        reply = await api.create(
            metadata=None,
            retry_policy=None,
            idempotency_key=None,
            callback={"type": "http", "url": "https://example.com", "headers": None},
        )
        assert reply.status == 201
        detail = (await api.request("GET", f"/timers/{reply.data['id']}")).data
        assert (detail["metadata"], detail["retry_policy"]) == (None, None)
        assert detail["callback_config"] == {"type": "http", "url": "https://example.com"}


class TestGet:
    async def test_answers_with_everything(self, api: ApiBench) -> None:
        callback = {
            "type": "http",
            "url": "https://example.com/due",
            "headers": {"Authorization": "Bearer token123"},
            "payload": {"event": "timer_triggered"},
        }
        created = await api.create(callback=callback, metadata={"client_ref": "order-456"})
        reply = await api.request("GET", f"/timers/{created.data['id']}?secrets=true")
        assert (reply.status, reply.json["code"], reply.json["message"]) == (200, 0, "success")
        data = reply.data
        assert UUID(data.pop("delivery_id")).version == 7
        assert data == {
            **created.data,
            "updated_at": "2030-01-01T00:00:00Z",
            "callback_config": callback,
            "last_error": None,
            "metadata": {"client_ref": "order-456"},
            "retry_policy": None,
            "due_at": created.data["execute_at"],
            "attempt": 0,
            "attempts": [],
        }

    @pytest.mark.parametrize(
        "payload",
        [b"null", b"0", b'""', b'{ "b":1.50,\n "a":1e2 }', b'"\\u00e9\\ud83d\\ude00"', b"1e999"],
    )
    async def test_payload_and_metadata_come_back_byte_for_byte(
        self, api: ApiBench, payload: bytes
    ) -> None:
        body = (
            b'{"execute_at":"2030-01-01T00:00:10Z","callback":{"type":"http",'
            b'"url":"https://example.com","payload":%b},"metadata":[%b]}' % (payload, payload)
        )
        created = await api.request("POST", "/timers", body)
        reply = await api.request("GET", f"/timers/{created.data['id']}")
        assert b'"payload":%b}' % payload in reply.content
        assert b'"metadata":[%b],' % payload in reply.content

    async def test_shows_the_attempts(self, api: ApiBench) -> None:
        created = await api.create(retry_policy={"max_retries": 1, "initial_interval": "1s"})
        path = f"/timers/{created.data['id']}"
        api.clock.advance(10)
        await settle_all(api, error="HTTP 500")
        waiting = (await api.request("GET", path)).data
        assert (waiting["status"], waiting["last_error"]) == ("pending", "HTTP 500")
        api.clock.advance(1)
        await settle_all(api, error=None)
        data = (await api.request("GET", path)).data
        assert (data["status"], data["last_error"], data["attempt"]) == ("completed", None, 2)
        assert data["executed_at"] == "2030-01-01T00:00:11.240Z"
        assert data["attempts"] == [
            {
                "number": 1,
                "due_at": "2030-01-01T00:00:10Z",
                "claimed_at": "2030-01-01T00:00:10Z",
                "sent_at": "2030-01-01T00:00:10Z",
                "answered_at": "2030-01-01T00:00:10.120Z",
                "outcome": "failed",
                "error": "HTTP 500",
                "answer": None,
            },
            {
                "number": 2,
                "due_at": "2030-01-01T00:00:11.120Z",
                "claimed_at": "2030-01-01T00:00:11.120Z",
                "sent_at": "2030-01-01T00:00:11.120Z",
                "answered_at": "2030-01-01T00:00:11.240Z",
                "outcome": "completed",
                "error": None,
                "answer": None,
            },
        ]

    async def test_timers_of_the_v1_api_and_the_bus_are_shown_too(self, api: ApiBench) -> None:
        ids = [f"01977f3e-7a10-7cc2-9d53-00000000000{number}" for number in range(3)]
        callbacks: list[Callback] = [
            NatsCallback(topic="a.b", key="k"),
            NatsCallback(topic="a", ack=True),
            BusCallback(),
        ]
        await api.store.create(
            [
                CreateRequest(make_timer(timer_id, callback=callback), OnExisting.KEEP)
                for timer_id, callback in zip(ids, callbacks, strict=True)
            ]
        )
        nats, stored, bus = [(await api.request("GET", f"/timers/{each}")).data for each in ids]
        assert nats["callback_config"] == {"type": "nats", "topic": "a.b", "key": "k"}
        assert stored["callback_config"] == {"type": "nats", "topic": "a", "ack": True}
        assert (bus["callback_type"], bus["callback_config"]) == ("bus", {"type": "bus"})


class TestList:
    async def test_pages_sorts_and_filters(self, api: ApiBench) -> None:
        created = []
        for second in (30, 20, 40):
            timer = (await api.create(execute_at=f"2030-01-01T00:00:{second}Z")).data
            shown = {"callback_target": "https://example.com/due", "last_error": None}
            created.append({**timer, **shown, "due_at": timer["execute_at"]})
            api.clock.advance(0.001)
        first, second_, third = created
        reply = await api.request("GET", "/timers")
        assert (reply.status, reply.json["message"]) == (200, "success")
        assert reply.data == {
            "timers": [third, second_, first],
            "total": 3,
            "limit": 50,
            "offset": 0,
        }
        by_due = await api.request("GET", "/timers?sort=execute_at&order=asc&limit=2&offset=1")
        assert by_due.data == {"timers": [first, third], "total": 3, "limit": 2, "offset": 1}
        await api.request("DELETE", f"/timers/{first['id']}")
        canceled = await api.request("GET", "/timers?status=canceled")
        assert [timer["id"] for timer in canceled.data["timers"]] == [first["id"]]
        beyond = await api.request("GET", f"/timers?offset={2**63 - 1}")
        assert (beyond.data["timers"], beyond.data["total"]) == ([], 3)


class TestUpdate:
    async def test_only_given_members_change(self, api: ApiBench) -> None:
        created = await api.create(metadata=1, retry_policy={})
        path = f"/timers/{created.data['id']}"
        api.clock.advance(1)
        reply = await api.request("PUT", path, {"execute_at": "2030-01-01T00:01:00Z"})
        assert (reply.status, reply.json["message"]) == (200, "timer updated successfully")
        assert reply.data == {
            **created.data,
            "execute_at": "2030-01-01T00:01:00Z",
            "updated_at": "2030-01-01T00:00:01Z",
        }
        detail = (await api.request("GET", path)).data
        assert detail["metadata"] == 1
        assert detail["retry_policy"] == {
            "max_retries": 3,
            "max_attempts": 4,
            "max_retry_attempts_duration": "24h",
            "max_attempts_duration": "24h",
            "initial_interval": "30s",
            "backoff_multiplier": 2.0,
            "max_interval": "10m",
        }

    async def test_a_policy_can_be_written_back(self, api: ApiBench) -> None:
        created = await api.create(retry_policy={"max_attempts": 6, "max_interval": "7m"})
        path = f"/timers/{created.data['id']}"
        policy = (await api.request("GET", path)).data["retry_policy"]
        assert (await api.request("PUT", path, {"retry_policy": policy})).status == 200
        assert (await api.request("GET", path)).data["retry_policy"] == policy

    async def test_null_clears_metadata_and_policy(self, api: ApiBench) -> None:
        created = await api.create(metadata=1, retry_policy={})
        path = f"/timers/{created.data['id']}"
        assert (await api.request("PUT", path, {"metadata": None})).status == 200
        assert (await api.request("PUT", path, {"retry_policy": None})).status == 200
        detail = (await api.request("GET", path)).data
        assert (detail["metadata"], detail["retry_policy"]) == (None, None)

    async def test_replaces_the_callback_as_a_whole(self, api: ApiBench) -> None:
        old = {"type": "http", "url": "https://example.com", "headers": {"A": "1"}, "payload": 1}
        new = {"type": "http", "url": "https://example.com/2"}
        created = await api.create(callback=old)
        path = f"/timers/{created.data['id']}"
        assert (await api.request("PUT", path, {"callback": new})).status == 200
        assert (await api.request("GET", path)).data["callback_config"] == new

    @pytest.mark.parametrize("error", [None, "HTTP 500"])
    async def test_finished_timers_are_left_alone(self, api: ApiBench, error: str | None) -> None:
        created = await api.create()
        path = f"/timers/{created.data['id']}"
        api.clock.advance(10)
        await settle_all(api, error=error)
        status = "completed" if error is None else "failed"
        update = await api.request("PUT", path, {"metadata": 1})
        assert update.error == (400, 2, f"cannot update timer with status '{status}'")
        cancel = await api.request("DELETE", path)
        assert cancel.error == (400, 2, f"cannot cancel timer with status '{status}'")
        assert (await api.request("GET", path)).data["last_error"] == error


class TestCancel:
    async def test_cancels_once_and_again(self, api: ApiBench) -> None:
        created = await api.create()
        path = f"/timers/{created.data['id']}"
        for _ in range(2):
            reply = await api.request("DELETE", path)
            assert reply.status == 200
            assert reply.json == {
                "code": 0,
                "message": "timer canceled successfully",
                "data": {"id": created.data["id"], "status": "canceled"},
            }
        update = await api.request("PUT", path, {"metadata": 1})
        assert update.error == (400, 2, "cannot update timer with status 'canceled'")

    async def test_an_executing_timer_cannot_be_canceled(self, api: ApiBench) -> None:
        created = await api.create()
        api.clock.advance(10)
        await api.claim_all()
        reply = await api.request("DELETE", f"/timers/{created.data['id']}")
        assert reply.error == (400, 2, "cannot cancel timer with status 'executing'")


class TestIds:
    @pytest.mark.parametrize(
        ("method", "body"), [("GET", b""), ("PUT", b'{"metadata":1}'), ("DELETE", b"")]
    )
    async def test_unknown_and_malformed_ids(self, api: ApiBench, method: str, body: bytes) -> None:
        assert (await api.request(method, ABSENT, body)).error == (404, 3, "timer not found")
        for bad in ("x", "01977f3e7a107cc29d533f1f4c1f8a55", "\0", ABSENT[8:] + "\n", "é" * 36):
            reply = await api.request(method, f"/timers/{bad}", body)
            assert reply.error == (400, 2, "id must be a UUID")

    async def test_upper_case_is_the_same_id(self, api: ApiBench) -> None:
        created = await api.create()
        assert (await api.request("GET", f"/timers/{created.data['id'].upper()}")).status == 200
