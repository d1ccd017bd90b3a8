"""The client of the Timer API v1."""

import re
import shlex
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeVar, cast
from urllib.parse import quote

import msgspec

from duetime.cli.client.option_names import in_option_names
from duetime.cli.client.platform import (
    TIMEOUT_SECONDS,
    NoAnswer,
    PlatformClient,
    read_document,
    with_request_id,
)
from duetime.cli.terminal import ExitCode, fail, printable, refuse
from duetime.domain.limits import MAX_KEY_CHARACTERS
from duetime.domain.namespace import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    import httpx

V1_BASE = "/api/v1"
EXISTENCE_HEADER = "Timer-Existence"

_AWAY = frozenset({429, 502, 503, 504})

_MISSING_NAMESPACE = re.compile(r"namespace '(.+)' does not exist")

Query = Mapping[str, str | int]
Document = TypeVar("Document")


class V1Client:
    """One server. A request that does not succeed ends the command with one clear line.

    Paths are relative to `/api/v1`; `path_segment` encodes names and ids for them.
    """

    def __init__(self, url: str | None, api_key: str | None) -> None:
        self._server = PlatformClient(url, api_key)

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def has_issued_key(self) -> bool:
        return self._server.has_issued_key

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
        return self.data_of(answer, document)

    def create(self, body: object) -> tuple[str, object]:
        """Create a timer. Returns `created` or `existing`, and the timer. The first is empty if a
        proxy has dropped the header."""
        answer, document = self.exchange("POST", "/timers", body=body)
        timer = self.data_of(answer, document)
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

    def poll(self, path: str, query: Query) -> object:
        """The document of a successful answer to a GET. Raises `NoAnswer` if another try may get
        one: the server, or a proxy in front of it, does not work now."""
        answer = self._server.try_to_send("GET", V1_BASE + path, query=query)
        if answer.status_code in _AWAY:
            raise NoAnswer(f"{self.url} answered HTTP {answer.status_code}")
        return self.data_of(answer, self._document(answer))

    def fetch(self, path: str, *, query: Query | None = None) -> bytes:
        """The document of a successful answer to a GET, undecoded."""
        answer = self._server.send("GET", V1_BASE + path, query=query)
        if not answer.is_success:
            self.data_of(answer, self._document(answer))
        return answer.content

    def upload(
        self,
        path: str,
        lines: Iterable[bytes],
        *,
        query: Query | None = None,
        stall_seconds: float = TIMEOUT_SECONDS,
    ) -> object:
        """Post NDJSON as the lines come, and return the document of the answer. The upload may
        take any time, but fails if no byte moves for `stall_seconds`."""
        answer = self._server.send(
            "POST",
            V1_BASE + path,
            content=lines,
            content_type="application/x-ndjson",
            query=query,
            timeout_seconds=stall_seconds,
        )
        return self.data_of(answer, self._document(answer))

    def read_as(self, kind: type[Document], document: object) -> Document:
        """The document of a successful answer, converted to the given type. Bytes are JSON."""
        try:
            if isinstance(document, bytes):
                return msgspec.json.decode(document, type=kind)
            return msgspec.convert(document, kind)
        except msgspec.DecodeError:
            fail(f"{self.url} answered, but not as Duetime does", ExitCode.FAILED)

    def kept_open(self) -> AbstractContextManager[None]:
        """Let the requests made inside share a connection."""
        return self._server.kept_open()

    def _document(self, answer: "httpx.Response") -> object:
        if answer.status_code == 401:
            self._server.fail_unauthorized()
        try:
            document = read_document(answer.content) if answer.content else None
        except ValueError:
            self._server.fail_unlike_duetime(answer)
        # Proxies, and older releases, answer errors in other formats.
        if not answer.is_success and not (
            isinstance(document, dict) and {"error", "message"} <= document.keys()
        ):
            self._server.fail_unlike_duetime(answer)
        return document

    def data_of(self, answer: "httpx.Response", document: object) -> object:
        """The document of an answer; one that is not a success ends the command."""
        if not answer.is_success:
            of_operation = answer.request.url.path.endswith("/operations")
            problem = refusal(
                document, of_operation=of_operation, has_issued_key=self.has_issued_key
            )
            fail(with_request_id(problem, answer), ExitCode.FAILED)
        return document


def refusal(document: object, *, of_operation: bool = False, has_issued_key: bool = False) -> str:
    """The server's reason for refusing, from the document of its answer, and a way out. It names
    options instead of fields."""
    answer = cast(Mapping[str, object], document)
    message = in_option_names(printable(str(answer["message"])), of_operation=of_operation)
    if answer.get("error") == "NAMESPACE_NOT_EMPTY":
        return message.replace("force=true", "--force")
    missing = _MISSING_NAMESPACE.fullmatch(message)
    if missing is None or answer["error"] != "NAMESPACE_NOT_FOUND":
        return message
    if has_issued_key:
        # The namespace may exist for others.
        named = "; --namespace names one" if missing[1] == DEFAULT_NAMESPACE else ""
        return f"{message} for this key: `duetime namespaces` lists those that do{named}"
    creates = f"`duetime namespaces set {shlex.quote(missing[1])}` creates it"
    return f"{message}: `duetime namespaces` lists those that do, {creates}"


def path_segment(option: str, text: str) -> str:
    """A name or an id as a segment of a path, with all special characters encoded."""
    if not 1 <= len(text) <= MAX_KEY_CHARACTERS:
        refuse(option, f"must have 1 to {MAX_KEY_CHARACTERS} characters")
    try:
        # A dot means itself, not a directory.
        return quote(text, safe="").replace(".", "%2E")
    except UnicodeEncodeError:
        refuse(option, "is not valid text")
