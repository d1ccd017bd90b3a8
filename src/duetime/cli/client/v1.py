"""Talking to a server over the Timer API v1, for the commands that do."""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeVar, cast

import msgspec

from duetime.api.v1.types import EXISTENCE_HEADER
from duetime.cli.client.documents import read_document
from duetime.cli.client.platform import TIMEOUT_SECONDS, TimerClient
from duetime.cli.output.terminal import ExitCode, fail, printable

if TYPE_CHECKING:
    import httpx

V1_BASE = "/api/v1"

Query = Mapping[str, str | int]
Document = TypeVar("Document")


class V1Client:
    """One server. A request that does not succeed ends the command with one clear line.

    Paths are below `/api/v1`, and percent-encoded by whoever makes them.
    """

    def __init__(self, url: str | None, api_key: str | None) -> None:
        self._server = TimerClient(url, api_key)

    @property
    def url(self) -> str:
        return self._server.url

    def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Query | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> object:
        """The document of a successful answer; None for one without a body."""
        answer, document = self.exchange(
            method, path, body=body, query=query, timeout_seconds=timeout_seconds
        )
        return self._succeeded(answer, document)

    def create(self, body: object) -> tuple[str, object]:
        """Create a timer: whether it was `created` or is an `existing` one, and the timer. The
        first is empty if something on the way has dropped the header."""
        answer, document = self.exchange("POST", "/timers", body=body)
        timer = self._succeeded(answer, document)
        return answer.headers.get(EXISTENCE_HEADER, ""), timer

    def exchange(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Query | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> tuple["httpx.Response", object]:
        """The answer and its document, whether it succeeded or not."""
        content = None if body is None else msgspec.json.encode(body)
        answer = self._server.send(
            method,
            V1_BASE + path,
            content=content,
            query=query,
            timeout_seconds=timeout_seconds,
        )
        return answer, self._document(answer)

    def fetch(self, path: str, *, query: Query | None = None) -> bytes:
        """The document of a successful answer to a GET, to the letter."""
        answer = self._server.send("GET", V1_BASE + path, query=query)
        if not answer.is_success:
            self._succeeded(answer, self._document(answer))
        return answer.content

    def upload(
        self,
        path: str,
        lines: Iterable[bytes],
        *,
        query: Query | None = None,
        stall_seconds: float = TIMEOUT_SECONDS,
    ) -> object:
        """Post NDJSON as it comes, and read the answer. It may take as long as it takes; only
        that nothing moves for so long is a failure."""
        answer = self._server.send(
            "POST",
            V1_BASE + path,
            content=lines,
            content_type="application/x-ndjson",
            query=query,
            timeout_seconds=stall_seconds,
        )
        return self._succeeded(answer, self._document(answer))

    def read_as(self, kind: type[Document], document: object) -> Document:
        """The document of a successful answer as what it should be. Bytes are JSON."""
        try:
            if isinstance(document, bytes):
                return msgspec.json.decode(document, type=kind)
            return msgspec.convert(document, kind)
        except msgspec.DecodeError:
            fail(f"{self.url} answered, but not as Duetime does", ExitCode.FAILED)

    def kept_open(self) -> AbstractContextManager[None]:
        """The requests that are made meanwhile share a connection."""
        return self._server.kept_open()

    def _document(self, answer: "httpx.Response") -> object:
        if answer.status_code == 401:
            self._server.fail_unauthorized()
        try:
            document = read_document(answer.content) if answer.content else None
        except ValueError:
            self._server.fail_unlike_duetime(answer)
        # What stands in front of a server, and older releases, have other errors.
        if not answer.is_success and not (
            isinstance(document, dict) and {"error", "message"} <= document.keys()
        ):
            self._server.fail_unlike_duetime(answer)
        return document

    def _succeeded(self, answer: "httpx.Response", document: object) -> object:
        if not answer.is_success:
            fail(refusal(document), ExitCode.FAILED)
        return document


def refusal(document: object) -> str:
    """Why the server refused, from the document of its answer."""
    return printable(str(cast(Mapping[str, object], document)["message"]))
