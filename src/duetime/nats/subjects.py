"""What a client may publish on, and with which headers."""

import re

from duetime.delivery.header_rules import FIELD, check_safe
from duetime.domain.callback import NatsCallback
from duetime.domain.errors import InvalidInput
from duetime.ports.bus import Channel

MAX_SUBJECT_LENGTH = 255

_UNSAFE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]")
_RESERVED_PREFIX = "nats-"
_CHANNELS = frozenset(Channel)


def check_subject(field: str, text: str) -> None:
    """Refuse what is no subject of one message, or belongs to the server."""
    _check_parts(field, text)
    if text.startswith("$"):
        raise InvalidInput(field, "must not start with $: those are the server's own")


def check_callback(callback: NatsCallback) -> None:
    check_subject("callback.topic", callback.topic)
    if callback.subject in _CHANNELS:
        raise InvalidInput(
            "callback.topic", f"must not make {callback.subject}: that is a channel of the bus"
        )
    if callback.key is not None:
        _check_parts("callback.key", callback.key)
        if len(callback.subject) > MAX_SUBJECT_LENGTH:
            raise InvalidInput(
                "callback.key",
                f"must not make the subject longer than {MAX_SUBJECT_LENGTH} characters",
            )
    if callback.headers:
        check_headers(callback.headers)


def check_headers(headers: dict[str, str]) -> None:
    check_safe(headers, "utf-8", "Unicode")
    for name in headers:
        if name.lower().startswith(_RESERVED_PREFIX):
            raise InvalidInput(
                f"{FIELD}.{name}", "must not start with Nats-: those are the server's own"
            )


def _check_parts(field: str, text: str) -> None:
    if not text:
        raise InvalidInput(field, "must not be empty")
    if len(text) > MAX_SUBJECT_LENGTH:
        raise InvalidInput(field, f"must not be longer than {MAX_SUBJECT_LENGTH} characters")
    if _UNSAFE.search(text):
        raise InvalidInput(field, "must not contain white space or control characters")
    if "*" in text or ">" in text:
        raise InvalidInput(field, "must not contain wildcards (* or >)")
    if "" in text.split("."):
        raise InvalidInput(field, "must not have an empty part between, before or after dots")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(field, "must be valid Unicode text") from None
