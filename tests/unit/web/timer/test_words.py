"""Words about a timer, and commands for callbacks of other kinds than HTTP."""

import shlex

import pytest
from msgspec import Raw
from msgspec.structs import replace

from duetime.domain.callback import BusCallback, HttpCallback, NatsCallback
from duetime.domain.retry import UNTIL_DELIVERED, RetryPolicy
from duetime.domain.timer import Timer, TimerStatus
from duetime.testing import make_timer
from duetime.testing.virtual_clock import START_AT
from duetime.web.pages.timer.facts import policy_words
from duetime.web.pages.timer.recipes import MAX_CONTENT_BYTES, Recipes, recipes_for

WITHIN = "None is later than 1 d after the first attempt."


def recipes(timer: Timer) -> Recipes:
    return recipes_for(timer, "http://127.0.0.1:8080", START_AT)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (None, "No retries."),
        (RetryPolicy(max_retries=0), "No retries."),
        (UNTIL_DELIVERED, "Retried until the bus has the event."),
        (RetryPolicy(max_retries=1), f"Up to 1 retry, after 30 s. {WITHIN}"),
        (RetryPolicy(backoff_multiplier=1), f"Up to 3 retries, 30 s apart. {WITHIN}"),
        (
            RetryPolicy(max_retries=9, backoff_multiplier=1.5),
            "Up to 9 retries: after 30 s, then 1.5 times as long each time, up to 10 min."
            f" {WITHIN}",
        ),
    ],
)
def test_retry_policies_are_told_in_a_sentence(policy: RetryPolicy | None, words: str) -> None:
    assert policy_words(policy) == words


def test_a_message_over_nats_is_created_through_the_platform_api() -> None:
    callback = NatsCallback(
        topic="events.due", key="user 7", ack=True, headers={"X-Token": "s"}, payload=Raw(b"1.0")
    )
    timer = replace(make_timer(), callback=callback, retry_policy=RetryPolicy(max_retries=2))
    found = {recipe.title: recipe.text for recipe in recipes(timer).recipes}
    assert "http://127.0.0.1:8080/timers " in found["curl"]
    assert '"payload":1.0' in found["curl"]
    words = shlex.split(found["Command line"].replace("\\\n", ""))
    assert words[:2] == ["duetime", "create"]
    assert {"--nats-topic=events.due", "--nats-key=user 7", "--ack", "--payload=1.0"} < set(words)
    assert "--header=X-Token=[redacted]" in words
    assert not any(word.startswith(("--id", "--namespace")) for word in words)
    assert any("[redacted]" in note for note in recipes(timer).notes)


def test_an_event_of_the_bus_and_a_long_payload_have_no_commands() -> None:
    event = replace(make_timer(), callback=BusCallback())
    assert recipes(event).recipes == ()
    assert "ScheduleTimer" in recipes(event).notes[0]
    long = HttpCallback(url="https://example.com", payload=Raw(b"1" * (MAX_CONTENT_BYTES + 1)))
    timer = replace(make_timer(), callback=long)
    assert recipes(timer).recipes == ()
    assert recipes(timer).notes[1].startswith("duetime get --namespace=")


def test_the_id_of_a_copy_is_never_too_long() -> None:
    timer = replace(make_timer(), status=TimerStatus.CANCELED)
    timer = replace(timer, key=timer.key._replace(id="x" * 255))
    assert f'"id": "{"x" * 249}-again"' in recipes(timer).recipes[0].text
