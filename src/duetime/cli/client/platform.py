"""Talking to a server over its HTTP API, for the commands that do."""

import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlsplit

from duetime.cli.client.server_lookup import DEFAULT_URL, client_dotenv, find_key, find_url
from duetime.cli.output.terminal import ExitCode, fail, printable

if TYPE_CHECKING:
    import httpx

TIMEOUT_SECONDS = 30.0

_LOOPBACK = {"127.0.0.1", "localhost", "::1"}
_NO_KEY = (
    "no API key found: use --api-key, or set DUETIME_API_KEY or API_KEY (in .env, too); "
    "`duetime dev` keeps its key in the directory it was started in"
)


class TimerClient:
    """One server. A request that does not succeed ends the command with one clear line."""

    def __init__(self, url: str | None, api_key: str | None) -> None:
        dotenv = client_dotenv()
        self.url = (url or find_url(dotenv)).rstrip("/")
        self._api_key = find_key(api_key, dotenv)
        host = _host_of(self.url)
        if not host:
            fail(f"{self.url!r} is not the URL of a server, such as {DEFAULT_URL}", ExitCode.USAGE)
        # A proxy named in the environment is not meant for this machine.
        self._use_proxy = host not in _LOOPBACK
        self._open_client: httpx.Client | None = None

    def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Mapping[str, str | int] | None = None,
    ) -> object:
        """The `data` of a successful answer."""
        return self._data(*self.exchange(method, path, body=body, query=query))

    def create(self, body: object) -> tuple[str, object]:
        """Create a timer: whether it was `created` or is an `existing` one, and its data."""
        answer, envelope = self.exchange("POST", "/timers", body=body)
        data = self._data(answer, envelope)
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
        import msgspec

        from duetime.cli.client.documents import read_document

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
        """The answer, whatever it says. Content that comes in pieces is sent as it comes; the
        timeout is for each piece, and for the answer."""
        import httpx

        headers = {"Accept": "application/json", "Content-Type": content_type}
        if self._api_key:
            headers["X-API-Key"] = self._api_key.text
        try:
            with self._http_client() as client:
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
            fail(f"{self.url} did not answer within {waited:g} s", ExitCode.UNREACHABLE)
        except httpx.ConnectError as error:
            self._fail_unreachable(error)
        except httpx.HTTPError as error:
            fail(f"{self.url} cannot be talked to: {error}", ExitCode.UNREACHABLE)
        except (UnicodeEncodeError, httpx.InvalidURL):
            fail("the API key or the URL has characters that cannot be sent", ExitCode.USAGE)

    def _data(self, answer: "httpx.Response", envelope: Mapping[str, object]) -> object:
        if answer.status_code == 401:
            self.fail_unauthorized()
        if not answer.is_success:
            fail(printable(str(envelope["message"])), ExitCode.FAILED)
        return envelope["data"]

    @contextmanager
    def kept_open(self) -> Iterator[None]:
        """The requests that are made meanwhile share a connection."""
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
        fail(
            f"{self.url} answered HTTP {answer.status_code}, but not as Duetime does",
            ExitCode.FAILED,
        )

    def _fail_unreachable(self, error: Exception) -> NoReturn:
        fail(f"no server at {self.url}: {_why_unreachable(error)}", ExitCode.UNREACHABLE)


def _host_of(url: str) -> str | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return parts.hostname if parts.scheme in ("http", "https") else None


def _why_unreachable(error: Exception) -> str:
    """The cause in the words of its reader, and what to do about it."""
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
    """What led to the error, nearest first; the libraries between wrap it several times."""
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__ or current.__context__
