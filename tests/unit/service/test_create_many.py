"""Timers that are created together."""

import pytest
from msgspec import Raw
from msgspec.structs import replace

from duetime.domain.callback import HttpCallback
from duetime.domain.errors import (
    InvalidInput,
    NamespaceNotFound,
    TimerDiffers,
    TimerUnreadable,
    TooLarge,
)
from duetime.domain.instants import plus_ms
from duetime.domain.keys import TimerKey, shard_of, timer_uuid_of
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.retry import RetryPolicy
from duetime.ports.store import CreateResult, Existence
from duetime.service.create_requests import NewTimer
from duetime.testing.virtual_clock import START_AT
from tests.unit.service.service_bench import DamagedStore, ServiceBench, timer_rules

CALLBACK = HttpCallback(url="https://example.com/due", payload=Raw('{"a":1}'))
PATIENT = RetryPolicy(max_retries=9)


def new_timer(id: str, namespace: str = "default", delay_ms: float = 10_000) -> NewTimer:
    return NewTimer(
        execute_at=plus_ms(START_AT, delay_ms), callback=CALLBACK, namespace=namespace, id=id
    )


async def test_every_timer_has_its_answer_in_its_place(bench: ServiceBench) -> None:
    await bench.service.create(new_timer("there"))
    unread = InvalidInput("id", "was not read")
    answers = await bench.service.create_many(
        [
            new_timer("first"),
            unread,
            new_timer("there"),
            new_timer("lost", "nowhere"),
            new_timer("there", delay_ms=20_000),
            new_timer("late", delay_ms=-1),
            new_timer(""),
            new_timer("last"),
        ]
    )
    first, second, repeat, lost, conflict, late, nameless, last = answers
    assert isinstance(first, CreateResult)
    assert (first.existence, first.timer.key.id) == (Existence.CREATED, "first")
    assert second is unread
    assert isinstance(repeat, CreateResult)
    assert repeat.existence is Existence.EXISTING
    assert isinstance(lost, NamespaceNotFound)
    assert isinstance(conflict, TimerDiffers)
    assert conflict.fields == ["execute_at"]
    assert [str(error) for error in (late, nameless)] == [
        "execute_at must be in the future",
        "id must have 1 to 255 characters",
    ]
    assert isinstance(last, CreateResult)
    assert (last.existence, last.timer.key.id) == (Existence.CREATED, "last")


async def test_a_repeat_is_recognised_when_its_instant_has_passed(bench: ServiceBench) -> None:
    news = [new_timer("a"), new_timer("b")]
    first = await bench.service.create_many(news)
    bench.clock.advance(60)
    again = await bench.service.create_many([*news, new_timer("c")])
    assert [answer.timer for answer in again[:2] if isinstance(answer, CreateResult)] == [
        answer.timer for answer in first if isinstance(answer, CreateResult)
    ]
    assert isinstance(again[2], InvalidInput)


async def test_namespaces_may_alternate_and_be_new_to_this_node(bench: ServiceBench) -> None:
    service = bench.service_with(timer_rules(default_retries=True))
    options = NamespaceOptions(retry_policy=PATIENT)
    await bench.store.add_namespace(Namespace("patient", 64, options))
    answers = await service.create_many(
        [new_timer("a"), new_timer("a", "patient"), new_timer("b"), new_timer("b", "patient")]
    )
    timers = [answer.timer for answer in answers if isinstance(answer, CreateResult)]
    assert [timer.key for timer in timers] == [
        TimerKey("default", "a"),
        TimerKey("patient", "a"),
        TimerKey("default", "b"),
        TimerKey("patient", "b"),
    ]
    assert [timer.retry_policy for timer in timers] == [RetryPolicy(), PATIENT] * 2
    for timer, num_shards in zip(timers, [16, 64] * 2, strict=True):
        assert timer.shard == shard_of(timer.key.id, num_shards)
        assert timer.timer_uuid == timer_uuid_of(timer.key)


async def test_changed_options_hold_for_the_next_timer(bench: ServiceBench) -> None:
    service = bench.service_with(timer_rules(default_retries=True))
    before = (await service.create(new_timer("before"))).timer
    assert before.retry_policy == RetryPolicy()

    def change(options: NamespaceOptions) -> NamespaceOptions:
        return replace(options, retry_policy=PATIENT, max_payload_bytes=8)

    await bench.namespaces.put("default", None, change)
    large = replace(CALLBACK, payload=Raw('"' + "x" * 7 + '"'))
    fitting, refused = await service.create_many(
        [new_timer("fitting"), replace(new_timer("large"), callback=large)]
    )
    assert isinstance(fitting, CreateResult)
    assert fitting.timer.retry_policy == PATIENT
    assert isinstance(refused, TooLarge)


async def test_an_existing_timer_that_cannot_be_read_fails_alone() -> None:
    store = DamagedStore()
    bench = await ServiceBench(store).open()
    store.damaged.add("damaged")
    answers = await bench.service.create_many(
        [
            new_timer("first"),
            new_timer("damaged"),
            new_timer("damaged", delay_ms=-1),
            new_timer("last"),
        ]
    )
    assert [
        each.existence if isinstance(each, CreateResult) else type(each) for each in answers
    ] == [Existence.CREATED, TimerUnreadable, TimerUnreadable, Existence.CREATED]
    assert len(bench.wakeups.announced) == 2
    with pytest.raises(TimerUnreadable, match="'damaged' cannot be read"):
        await bench.service.create(new_timer("damaged"))
    assert len(bench.wakeups.announced) == 2
