"""A name server on loopback that may answer differently each time, and a client for it."""

import socket
import struct
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from threading import Thread
from types import TracebackType
from typing import Self

from duetime.delivery.http_client import Address

_A, _AAAA, _IN = 1, 28, 1
_HEADER = struct.Struct("!HHHHHH")
_QUESTION = struct.Struct("!HH")
_RECORD = struct.Struct("!HHIH")
_POINTER_TO_QUESTION = b"\xc0\x0c"
_ANSWER, _RECURSION, _NO_SUCH_NAME = 0x8000, 0x0100, 3

Answers = Callable[[int], Sequence[str]]
"""The addresses for the lookup with that number, from 0 on."""


class DnsServer:
    """Knows the names that are given to `name`. A lookup asks for A and AAAA, and counts once."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._names: dict[str, Answers] = {}
        self.lookups: dict[str, int] = {}
        self._thread = Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._socket.sendto(b"", self._socket.getsockname())
        self._thread.join()
        self._socket.close()

    def name(self, host: str, *addresses: str) -> None:
        self._names[host] = lambda number: addresses

    def rebind(self, host: str, answers: Answers) -> None:
        self._names[host] = answers

    def look_up(self, host: str) -> Sequence[Address]:
        """Implements `LookUp`, over the wire."""
        number = self.lookups.get(host, -1) + 1
        self.lookups[host] = number
        found: list[Address] = []
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(60)
            for kind, family in ((_A, socket.AF_INET), (_AAAA, socket.AF_INET6)):
                labels = [label.encode() for label in host.rstrip(".").split(".")]
                name = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
                header = _HEADER.pack(number & 0xFFFF, _RECURSION, 1, 0, 0, 0)
                client.sendto(header + name + _QUESTION.pack(kind, _IN), self._socket.getsockname())
                found += [(family, text) for text in _addresses_in(client.recv(65_535))]
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return found

    def _serve(self) -> None:
        while True:
            query, client = self._socket.recvfrom(65_535)
            if not query:
                return
            self._socket.sendto(self._answer(query), client)

    def _answer(self, query: bytes) -> bytes:
        number = _HEADER.unpack_from(query)[0]
        labels, end = [], _HEADER.size
        while query[end]:
            labels.append(query[end + 1 : end + 1 + query[end]].decode())
            end += 1 + query[end]
        kind, _ = _QUESTION.unpack_from(query, end + 1)
        question = query[_HEADER.size : end + 1 + _QUESTION.size]
        host = ".".join(labels)
        answers = self._names.get(host)
        if answers is None:
            flags = _ANSWER | _RECURSION | _NO_SUCH_NAME
            return _HEADER.pack(number, flags, 1, 0, 0, 0) + question
        # The number of the lookup travels as the id of its messages.
        addresses = [ip_address(text) for text in answers(number)]
        records = [
            _POINTER_TO_QUESTION + _RECORD.pack(kind, _IN, 0, len(each.packed)) + each.packed
            for each in addresses
            if kind == (_A if each.version == 4 else _AAAA)
        ]
        header = _HEADER.pack(number, _ANSWER | _RECURSION, 1, len(records), 0, 0)
        return header + question + b"".join(records)


def _addresses_in(answer: bytes) -> list[str]:
    records: int = _HEADER.unpack_from(answer)[3]
    position = answer.index(b"\0", _HEADER.size) + 1 + _QUESTION.size
    addresses = []
    for _ in range(records):
        position += len(_POINTER_TO_QUESTION) + _RECORD.size
        length = _RECORD.unpack_from(answer, position - _RECORD.size)[3]
        addresses.append(str(ip_address(answer[position : position + length])))
        position += length
    return addresses
