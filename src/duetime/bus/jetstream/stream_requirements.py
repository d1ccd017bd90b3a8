"""Requirements for streams and consumers that Duetime did not create itself."""

from collections.abc import Sequence

from msgspec import Struct

from duetime.domain.errors import BusUnavailable
from duetime.ports.bus import Channel


class StreamSettings(Struct, frozen=True):
    """The settings that Duetime depends on."""

    name: str
    subjects: tuple[str, ...] = ()
    no_ack: bool = False


class ConsumerSettings(Struct, frozen=True):
    """Durations are in nanoseconds; 0 means no limit."""

    deliver_subject: str = ""
    ack_policy: str = ""
    ack_wait: int = 0
    filter_subject: str = ""
    filter_subjects: tuple[str, ...] = ()
    headers_only: bool = False
    max_deliver: int = -1
    max_batch: int = 0
    max_expires: int = 0
    max_waiting: int = 0

    @property
    def filters(self) -> tuple[str, ...]:
        return self.filter_subjects or ((self.filter_subject,) if self.filter_subject else ())


def require_usable_stream(server: str, stream: StreamSettings, channel: Channel) -> None:
    """Raises `BusUnavailable` for a stream that does not confirm what it stores."""
    if stream.no_ack:
        raise BusUnavailable(
            f"{server}: the stream {stream.name} of {channel} acknowledges nothing (no_ack is "
            "true), so Duetime cannot know what it has stored: set no_ack to false"
        )


def require_usable_consumer(
    server: str, name: str, consumer: ConsumerSettings, stream: StreamSettings
) -> None:
    """Raises `BusUnavailable` for a consumer that would lose commands, withhold them, or deliver
    other messages as commands."""
    problems = _problems(consumer, stream.subjects)
    if problems:
        raise BusUnavailable(
            f"{server}: the consumer {name} of the stream {stream.name} cannot be used: "
            f"{', and '.join(problems)}. Change it, or delete it and Duetime creates it again"
        )


def _problems(consumer: ConsumerSettings, stream_subjects: Sequence[str]) -> list[str]:
    problems = []
    if consumer.deliver_subject:
        problems.append(
            f"it pushes to {consumer.deliver_subject} (deliver_subject), but has to be a pull "
            "consumer"
        )
    if consumer.ack_policy != "explicit":
        problems.append(f"its ack_policy is {consumer.ack_policy}, not explicit")
    if consumer.max_deliver > 0:
        problems.append(
            f"it gives up a command after {consumer.max_deliver} deliveries (max_deliver), "
            "but has to go on (-1)"
        )
    if consumer.headers_only:
        problems.append("it hands over headers without content (headers_only)")
    if not _hands_over_commands_only(consumer.filters, stream_subjects):
        filtered = ", ".join(consumer.filters) or "missing"
        problems.append(f"its filter_subject is {filtered}, not {Channel.COMMANDS}")
    return problems


def _hands_over_commands_only(filters: Sequence[str], stream_subjects: Sequence[str]) -> bool:
    if tuple(filters) == (Channel.COMMANDS,):
        return True
    return tuple(stream_subjects) == (Channel.COMMANDS,) and (
        not filters or any(_matches(Channel.COMMANDS, each) for each in filters)
    )


def _matches(subject: str, pattern: str) -> bool:
    parts, pattern_parts = subject.split("."), pattern.split(".")
    if pattern_parts[-1] == ">":
        pattern_parts = pattern_parts[:-1]
        if len(parts) <= len(pattern_parts):
            return False
        parts = parts[: len(pattern_parts)]
    return len(parts) == len(pattern_parts) and all(
        expected in ("*", part) for part, expected in zip(parts, pattern_parts, strict=True)
    )
