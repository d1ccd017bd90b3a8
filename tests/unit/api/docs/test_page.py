"""The docs page and the OpenAPI document, read for the first time."""

from typing import Any

from duetime.api.docs.page import render
from duetime.api.openapi.document import openapi_document
from duetime.domain.instants import Instant

NOON = Instant(1_893_499_200_000_000)
PAGE = render("http://timers.example", NOON)


def test_nothing_is_said_to_be_missing() -> None:
    assert "callback of type nats</dt><dd>A message published on a NATS subject." in PAGE
    assert "callback_config of type bus</dt><dd>An event on the message bus" in PAGE
    assert "Not available" not in PAGE


def test_the_command_can_be_pasted_for_an_hour() -> None:
    assert "&quot;execute_at&quot;: &quot;2030-01-01T13:00:00Z&quot;" in PAGE


def test_a_repeat_is_shown_as_it_is_answered() -> None:
    document: Any = openapi_document()
    repeat = document["paths"]["/timers"]["post"]["responses"]["200"]
    example = repeat["content"]["application/json"]["examples"]["Success"]["value"]
    assert example["message"] == "timer already exists"
    assert "timer already exists" in PAGE


def test_the_fields_of_answers_are_explained() -> None:
    for field in (
        "data.status",
        "data.timers[].id",
        "data.attempts[].sent_at",
        "data.engine.running",
    ):
        assert f"<code>{field}</code>" in PAGE
    document: Any = openapi_document()
    for name in ("TimerDetail", "V1TimerAnswer", "V1NamespaceAnswer", "V1EndpointAnswer"):
        properties = document["components"]["schemas"][name]["properties"]
        assert all("description" in member for member in properties.values()), name


def section_of(name: str) -> str:
    return PAGE.partition(f'<section id="{name}">')[2].partition("</section>")[0]


def test_the_headers_of_answers_are_explained() -> None:
    for name in ("createTimerV1", "upsertTimerV1"):
        assert "<h4>Headers of the answer</h4>" in section_of(name)
        assert "<code>Timer-Existence</code>" in section_of(name)
    assert PAGE.count("<h4>Headers of the answer</h4>") == 2


def test_the_headers_of_callbacks_are_explained() -> None:
    for name in ("callback-platform-timers", "callback-timers-v1"):
        section = section_of(name)
        for header in ("webhook-id", "webhook-timestamp", "Timer-Attempt"):
            assert f"<code>{header}</code>" in section
