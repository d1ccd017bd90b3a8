"""A message in the words of the NATS protocol."""

import re

from duetime.nats.failure import NatsFailure

Headers = dict[str, str]

_UNSAFE_SUBJECT = re.compile(r"[\s\x00]")


def word_headers(headers: Headers) -> bytes:
    """Whoever lets others choose headers has checked them; here only harm is kept out."""
    lines = "".join([f"{name}: {value.strip()}\r\n" for name, value in headers.items()])
    if lines.count("\n") != len(headers) or lines.count("\r") != len(headers):
        raise NatsFailure("a header must not contain line breaks", blames_server=False)
    return f"NATS/1.0\r\n{lines}\r\n".encode()


def word_message(subject: str, reply: str, head: bytes, data: bytes) -> bytes:
    """`head` are the worded headers, or nothing."""
    if not subject or _UNSAFE_SUBJECT.search(subject):
        raise NatsFailure("the subject must not contain white space", blames_server=False)
    if not head:
        return b"PUB %b %b %d\r\n%b\r\n" % (subject.encode(), reply.encode(), len(data), data)
    return b"HPUB %b %b %d %d\r\n%b%b\r\n" % (
        subject.encode(),
        reply.encode(),
        len(head),
        len(head) + len(data),
        head,
        data,
    )
