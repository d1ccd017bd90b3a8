"""The built-in receiver: what it keeps, what it answers, and its limits."""

import asyncio

import pytest
from msgspec import Raw

from duetime.delivery.http import HttpDestination
from duetime.delivery.http_client import HttpClient
from duetime.delivery.signing import make_signer
from duetime.domain.callback import CallbackProtocol, HttpCallback, ReceiverAddress, ReceiverAnswer
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Instant
from duetime.domain.outcome import Completed, Failed, Outcome
from duetime.domain.security.access import EVERYTHING, Access
from duetime.domain.security.credentials import SecretKind, WebhookSecret
from duetime.domain.security.secret_text import format_secret
from duetime.service.security.known_signers import KnownSigners
from duetime.service.trying import inbox as limits
from duetime.service.trying.inbox import Inbox, Received
from duetime.testing import VirtualClock
from tests.unit.delivery.claims import always, claim_of

MINE, OTHER = "mine-token", "other-token"


class ReceiverBench:
    """A destination that can reach the built-in receiver, and nothing else."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.signers = KnownSigners(self.clock, make_signer)
        self.inbox = Inbox(self.clock, self.signers)
        self.destination = HttpDestination(
            HttpClient(), self.clock, 30_000, inbox=self.inbox, signers=self.signers
        )

    async def deliver(
        self,
        token: str = MINE,
        answer: ReceiverAnswer = ReceiverAnswer.OK,
        *,
        id: str = "t",
        attempt: int = 1,
        namespace: str = "orders",
        payload: bytes = b'{"n":1}',
        headers: dict[str, str] | None = None,
        protocol: CallbackProtocol = CallbackProtocol.STATUS,
        timeout_ms: int | None = None,
    ) -> Outcome:
        callback = HttpCallback(
            url=ReceiverAddress(token, answer).url,
            payload=Raw(payload),
            headers=headers,
            protocol=protocol,
            timeout_ms=timeout_ms,
        )
        claim = claim_of(callback, namespace=namespace, id=id, attempt=attempt)
        return await self.destination.deliver(claim, always)

    def arrived(self, token: str = MINE) -> list[Received]:
        return self.inbox.watch(token, EVERYTHING)


@pytest.fixture
def bench() -> ReceiverBench:
    return ReceiverBench()


async def test_a_callback_arrives_as_it_would_anywhere(bench: ReceiverBench) -> None:
    bench.clock.advance(0.0012)
    outcome = await bench.deliver(payload=b'{"exact":12345678901234567890.0}')
    assert isinstance(outcome, Completed)
    (arrived,) = bench.arrived()
    assert arrived.body == b'{"exact":12345678901234567890.0}'
    assert dict(arrived.headers)["Timer-Attempt"] == "1"
    assert dict(arrived.headers)["webhook-id"] == "01980000-0000-7000-8000-00000000abcd"
    assert (arrived.key.namespace, arrived.key.id) == ("orders", "t")
    assert arrived.lateness_ms == pytest.approx(1.2)
    assert not arrived.is_signed
    assert bench.arrived(OTHER) == []


async def test_answers_of_both_protocols_complete_a_timer(bench: ReceiverBench) -> None:
    assert isinstance(await bench.deliver(protocol=CallbackProtocol.ANSWER), Completed)
    assert b'"executeAt"' in bench.arrived()[0].body


@pytest.mark.parametrize(
    ("answer", "attempt", "error"),
    [
        (ReceiverAnswer.FAIL, 1, "HTTP 500"),
        (ReceiverAnswer.GONE, 1, "HTTP 410"),
        (ReceiverAnswer.FAIL_TWICE, 2, "HTTP 500"),
        (ReceiverAnswer.FAIL_TWICE, 3, None),
    ],
)
async def test_the_answer_is_the_one_in_the_url(
    bench: ReceiverBench, answer: ReceiverAnswer, attempt: int, error: str | None
) -> None:
    outcome = await bench.deliver(answer=answer, attempt=attempt)
    assert (outcome.error if isinstance(outcome, Failed) else None) == error
    assert bench.arrived()[0].attempt == attempt


async def test_the_slow_answer_comes_after_a_while(bench: ReceiverBench) -> None:
    under_way = asyncio.ensure_future(bench.deliver(answer=ReceiverAnswer.SLOW))
    await bench.clock.wait_for_sleepers(1)
    assert len(bench.arrived()) == 1
    assert not under_way.done()
    bench.clock.advance(limits.SLOW_SECONDS)
    assert isinstance(await under_way, Completed)


async def test_an_answer_that_is_too_slow_is_a_timeout(bench: ReceiverBench) -> None:
    outcome = await bench.deliver(answer=ReceiverAnswer.SLOW, timeout_ms=1)
    assert isinstance(outcome, Failed)
    assert "timed out" in outcome.error


async def test_signatures_are_verified_and_secrets_are_not_shown(bench: ReceiverBench) -> None:
    secret = format_secret(SecretKind.HMAC, b"s" * 32)
    known = WebhookSecret(id="1", namespace="orders", secret=secret, created_at=Instant(0))
    bench.signers.see([known])
    await bench.deliver(headers={"Authorization": "Bearer hidden", "X-Tag": "seen"})
    (arrived,) = bench.arrived()
    headers = dict(arrived.headers)
    assert arrived.is_signed
    assert arrived.is_verified
    assert headers["webhook-signature"].startswith("v1,")
    assert headers["Authorization"] == "[redacted]"
    assert headers["X-Tag"] == "seen"


async def test_a_key_of_one_team_does_not_see_callbacks_of_another(bench: ReceiverBench) -> None:
    await bench.deliver(namespace="orders")
    await bench.deliver(namespace="invoices")
    seen = bench.inbox.watch(MINE, Access(name="a", namespaces=frozenset({"invoices"})))
    assert [each.key.namespace for each in seen] == ["invoices"]


async def test_a_receiver_keeps_the_last_callbacks(bench: ReceiverBench) -> None:
    for number in range(limits.MAX_CALLBACKS + 3):
        await bench.deliver(id=str(number))
    ids = [each.key.id for each in bench.arrived()]
    assert len(ids) == limits.MAX_CALLBACKS
    assert ids[0] == "52"
    assert ids[-1] == "3"


async def test_callbacks_are_forgotten_after_an_hour(bench: ReceiverBench) -> None:
    await bench.deliver(id="old")
    bench.clock.advance(1_800)
    await bench.deliver(id="new")
    bench.clock.advance(1_801)
    assert [each.key.id for each in bench.arrived()] == ["new"]


async def test_large_bodies_are_cut_and_the_receiver_with_most_gives_way(
    bench: ReceiverBench,
) -> None:
    await bench.deliver(OTHER, id="small")
    large = b'"%s"' % (b"x" * 2 * limits.MAX_BODY_BYTES)
    tokens = [f"receiver-{number}" for number in range(2)]
    for token in tokens * limits.MAX_CALLBACKS:
        await bench.deliver(token, payload=large)
    kept = [each for token in tokens for each in bench.arrived(token)]
    assert all(each.is_cut and each.body_bytes == len(large) for each in kept)
    assert limits.MAX_BYTES * 0.95 < sum(each.size for each in kept) <= limits.MAX_BYTES
    assert [each.key.id for each in bench.arrived(OTHER)] == ["small"]


async def test_the_receiver_that_nobody_looks_at_goes_first(bench: ReceiverBench) -> None:
    bench.arrived(MINE)
    await bench.deliver(MINE)
    for number in range(2 * limits.MAX_RECEIVERS):
        bench.clock.advance(1)
        await bench.deliver(f"flood-{number:04d}")
    assert len(bench.arrived(MINE)) == 1
    assert bench.arrived("flood-0000") == []


async def test_looking_at_receivers_empties_no_other_one(bench: ReceiverBench) -> None:
    tokens = [f"full-{number:05d}" for number in range(limits.MAX_RECEIVERS)]
    await bench.deliver(tokens[0])
    for number in range(2 * limits.MAX_RECEIVERS):
        bench.clock.advance(1)
        assert bench.arrived(f"made-up-{number:04d}") == []
    assert len(bench.arrived(tokens[0])) == 1
    # Empty receivers give way to callbacks, and then nothing is left that may give way.
    for token in tokens[1:]:
        await bench.deliver(token)
    assert bench.arrived("made-up-again") == []
    assert all(len(bench.arrived(token)) == 1 for token in tokens)


@pytest.mark.parametrize("path", ["", "/", "/short", "/mine-token/nonsense", "/mine-token/200/x"])
def test_other_paths_are_refused(bench: ReceiverBench, path: str) -> None:
    callback = HttpCallback(url=f"https://receiver.duetime.invalid{path}")
    with pytest.raises(InvalidInput, match=r"callback.url must be https://receiver"):
        bench.destination.check(callback)


async def test_each_receiver_is_an_endpoint_of_its_own(bench: ReceiverBench) -> None:
    endpoints = {
        bench.destination.endpoint_of(claim_of(HttpCallback(url=ReceiverAddress(token).url)))
        for token in (MINE, OTHER)
    }
    assert len(endpoints) == 2
