"""The client of the platform API, and the requests that both APIs share."""

import re
import signal
import socket
import ssl
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, NoReturn, cast
from urllib.parse import urlsplit

import msgspec

from duetime.cli.client.option_names import in_option_names
from duetime.cli.client.server_lookup import DEFAULT_URL, client_dotenv, find_key, find_url
from duetime.cli.terminal import ExitCode, fail, printable
from duetime.domain.security.credentials import KEY_PREFIX

if TYPE_CHECKING:
    import httpx

TIMEOUT_SECONDS = 30.0

NUDGE_SECONDS = 0.25
"""Longest time that Ctrl-C goes unnoticed in a blocking call."""

_KEPT_AS_WRITTEN = {"payload", "metadata"}
"""Members of a timer that are JSON of its user."""

_LOOPBACK = {"127.0.0.1", "localhost", "::1"}
_API_PATH = re.compile(r"(?<!/)/api/v1(/.*)?$")
"""The path of our own, which the commands add themselves. A proxy may need another one before."""

_NO_PATH = "; give the URL of the server without a path, unless a proxy needs it"
_NO_KEY = (
    "no API key found: use --api-key, or set DUETIME_API_KEY or API_KEY (.env works too); "
    "`duetime dev` keeps its key in the directory it was started in"
)


class NoAnswer(Exception):
    """The server cannot be reached, or does not answer; the text says why."""


class PlatformClient:
    """One server. A request that does not succeed ends the command with one clear line."""

    def __init__(self, url: str | None, api_key: str | None) -> None:
        dotenv = client_dotenv()
        self.url = (url or find_url(dotenv)).rstrip("/")
        self._api_key = find_key(api_key, dotenv, url=self.url)
        host = _host_of(self.url)
        if not host:
            fail(f"{self.url!r} is not the URL of a server, such as {DEFAULT_URL}", ExitCode.USAGE)
        self._refuse_api_path()
        # Proxies from the environment do not apply to this machine.
        self._use_proxy = host not in _LOOPBACK
        self._open_client: httpx.Client | None = None

    @property
    def has_issued_key(self) -> bool:
        """Whether the key is one of `duetime keys`: its own namespace may be another one than
        `default`."""
        return self._api_key is not None and self._api_key.text.startswith(f"{KEY_PREFIX}_")

    def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Mapping[str, str | int] | None = None,
    ) -> object:
        """The `data` of a successful answer."""
        return self.data_of(*self.exchange(method, path, body=body, query=query))

    def create(self, body: object) -> tuple[str, object]:
        """Create a timer. Returns `created` or `existing`, and the timer's data."""
        answer, envelope = self.exchange("POST", "/timers", body=body)
        data = self.data_of(answer, envelope)
        return "created" if answer.status_code == 201 else "existing", data

    def exchange(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Mapping[str, str | int] | None = None,
    ) -> tuple["httpx.Response", dict[str, object]]:
        """The answer and its envelope `{code, message, data}`, whether it succeeded or not."""
        content = None if body is None else msgspec.json.encode(body)
        answer = self.send(method, path, content=content, query=query)
        try:
            envelope = read_document(answer.content)
        except ValueError:
            self.fail_unlike_duetime(answer)
        if not isinstance(envelope, dict) or not {"code", "message", "data"} <= envelope.keys():
            self.fail_unlike_duetime(answer)
        return answer, envelope

    def send(
        self,
        method: str,
        path: str,
        *,
        content: bytes | Iterable[bytes] | None = None,
        content_type: str = "application/json",
        query: Mapping[str, str | int] | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> "httpx.Response":
        """The answer, whatever its status. Content in pieces is sent as the pieces come; the
        timeout applies to each piece, and to the answer."""
        try:
            return self.try_to_send(
                method,
                path,
                content=content,
                content_type=content_type,
                query=query,
                timeout_seconds=timeout_seconds,
            )
        except NoAnswer as error:
            fail(str(error), ExitCode.UNREACHABLE)

    def try_to_send(
        self,
        method: str,
        path: str,
        *,
        content: bytes | Iterable[bytes] | None = None,
        content_type: str = "application/json",
        query: Mapping[str, str | int] | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> "httpx.Response":
        """As `send`, for a command that goes on without an answer. Raises `NoAnswer`."""
        import httpx

        headers = {"Accept": "application/json", "Content-Type": content_type}
        if self._api_key:
            headers["X-API-Key"] = self._api_key.text
        try:
            with self._http_client() as client, interruptible():
                return client.request(
                    method,
                    self.url + path,
                    content=content,
                    params=query,
                    headers=headers,
                    timeout=httpx.Timeout(timeout_seconds, connect=TIMEOUT_SECONDS),
                )
        except httpx.TimeoutException as error:
            waited = TIMEOUT_SECONDS if isinstance(error, httpx.ConnectTimeout) else timeout_seconds
            raise NoAnswer(f"{self.url} did not answer within {waited:g} s") from None
        except httpx.ConnectError as error:
            raise NoAnswer(f"no server at {self.url}: {_why_unreachable(error)}") from None
        except httpx.HTTPError as error:
            raise NoAnswer(f"the exchange with {self.url} failed: {error}") from None
        except (UnicodeEncodeError, httpx.InvalidURL):
            fail("the API key or the URL has characters that cannot be sent", ExitCode.USAGE)

    def data_of(self, answer: "httpx.Response", envelope: object) -> object:
        """The `data` of an envelope; one that is not of a success ends the command."""
        members = cast(Mapping[str, object], envelope)
        if answer.status_code == 401:
            self.fail_unauthorized()
        if not answer.is_success:
            problem = in_option_names(printable(str(members["message"])))
            fail(with_request_id(problem, answer), ExitCode.FAILED)
        return members["data"]

    @contextmanager
    def kept_open(self) -> Iterator[None]:
        """Let the requests made inside share a connection."""
        with self._http_client() as client:
            self._open_client = client
            try:
                yield
            finally:
                self._open_client = None

    def _http_client(self) -> AbstractContextManager["httpx.Client"]:
        import httpx

        if self._open_client is not None:
            return nullcontext(self._open_client)
        return httpx.Client(trust_env=self._use_proxy)

    def fail_unauthorized(self) -> NoReturn:
        key = self._api_key
        fail(
            f"the API key from {key.source} was not accepted by {self.url}" if key else _NO_KEY,
            ExitCode.FAILED,
        )

    def fail_unlike_duetime(self, answer: "httpx.Response") -> NoReturn:
        problem = (
            f"{self.url} answered HTTP {answer.status_code}, but not as Duetime does"
            f"{_NO_PATH if urlsplit(self.url).path else ''}"
        )
        fail(with_request_id(problem, answer), ExitCode.FAILED)

    def _refuse_api_path(self) -> None:
        server = _API_PATH.sub("", self.url)
        if server != self.url:
            fail(
                f"{self.url}: give the URL of the server without the path, {server}", ExitCode.USAGE
            )


class NotCreated(Exception):
    """The reason why a timer was not created."""


async def create_from_event_loop(url: str, api_key: str, body: object) -> None:
    """Create a timer at a server on this machine, while the event loop goes on. Raises
    `NotCreated`."""
    import httpx

    try:
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.post(url + "/timers", json=body, headers={"X-API-Key": api_key})
        answer.raise_for_status()
    except httpx.HTTPError as error:
        raise NotCreated(str(error)) from error


def _host_of(url: str) -> str | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return parts.hostname if parts.scheme in ("http", "https") else None


def _why_unreachable(error: Exception) -> str:
    """The cause in plain words, and what to do about it."""
    for cause in _causes(error):
        match cause:
            case ssl.SSLCertVerificationError():
                return f"its TLS certificate is not accepted ({printable(cause.verify_message)})"
            case ssl.SSLError():
                return "the TLS handshake failed (does it speak http instead of https?)"
            case socket.gaierror():
                return "host name not found (check --server or DUETIME_URL)"
            case ConnectionRefusedError():
                return (
                    "connection refused (`make run` or `duetime dev` starts one; "
                    "--server names another)"
                )
            case OSError(strerror=str(reason)):
                return printable(reason.lower())
    return printable(str(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and the errors that led to it, nearest first; the HTTP libraries wrap several."""
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__ or current.__context__


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end a blocking call, whenever it is pressed.

    Python notes a signal and raises KeyboardInterrupt between two bytecodes. If the signal arrives
    after the last of them but before the system call blocks, the call is not interrupted, and
    Ctrl-C is lost until it returns. So another signal, which does nothing itself, interrupts the
    call again and again.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGALRM, lambda number, frame: None)
    timer = signal.setitimer(signal.ITIMER_REAL, NUDGE_SECONDS, NUDGE_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)


def read_document(content: bytes) -> object:
    """The decoded JSON, in which payloads and metadata stay as they are written: Python would
    change some of their numbers, and cannot read others. Raises `ValueError`."""
    content.decode()
    try:
        return _decoded(content)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _decoded(text: bytes) -> object:
    if text.lstrip().startswith(b"{"):
        members = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        return {name: _member(name, value) for name, value in members.items()}
    if text.lstrip().startswith(b"["):
        return [_decoded(bytes(item)) for item in msgspec.json.decode(text, type=list[msgspec.Raw])]
    return msgspec.json.decode(text)


def _member(name: str, value: msgspec.Raw) -> object:
    is_kept = name in _KEPT_AS_WRITTEN and bytes(value) != b"null"
    return value if is_kept else _decoded(bytes(value))


def with_request_id(problem: str, answer: "httpx.Response") -> str:
    """The problem, with the id by which the service's log knows the request if the service is to
    blame."""
    request_id = answer.headers.get("X-Request-Id")
    if answer.status_code < 500 or not request_id:
        return problem
    return f"{problem} (request id {printable(request_id)})"
