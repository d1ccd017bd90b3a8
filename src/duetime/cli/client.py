"""Talking to a server over its HTTP API, for the commands that do."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlsplit

from duetime.cli.terminal import ExitCode, fail, printable
from duetime.settings.sources import read_dotenv

if TYPE_CHECKING:
    import httpx

DEFAULT_URL = "http://127.0.0.1:8080"
DEV_KEY_PATH = Path(".duetime-dev-key")
TIMEOUT_SECONDS = 30.0

_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


class TimerClient:
    """One server. A request that does not succeed ends the command with one clear line."""

    def __init__(self, url: str | None, api_key: str | None) -> None:
        dotenv = read_dotenv(Path(".env"), problems=[])
        self.url = (url or dotenv.get("DUETIME_URL") or DEFAULT_URL).rstrip("/")
        self._api_key = api_key or _stored_api_key(dotenv)
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            fail(f"{self.url!r} is not the URL of a server, such as {DEFAULT_URL}", ExitCode.USAGE)
        # A proxy named in the environment is not meant for this machine.
        self._use_proxy = parts.hostname not in _LOOPBACK

    def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Mapping[str, str | int] | None = None,
    ) -> object:
        """The `data` of a successful answer."""
        answer, envelope = self.exchange(method, path, body=body, query=query)
        if not answer.is_success:
            message = printable(str(envelope["message"]))
            if answer.status_code == 401:
                message += " (set DUETIME_API_KEY or use --api-key)"
            fail(message, ExitCode.FAILED)
        return envelope["data"]

    def exchange(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Mapping[str, str | int] | None = None,
    ) -> tuple["httpx.Response", dict[str, object]]:
        """The answer and its envelope `{code, message, data}`, whether it succeeded or not."""
        import httpx
        import msgspec

        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self._api_key:
            headers["X-API-Key"] = self._api_key
        try:
            with httpx.Client(timeout=TIMEOUT_SECONDS, trust_env=self._use_proxy) as client:
                answer = client.request(
                    method,
                    self.url + path,
                    content=None if body is None else msgspec.json.encode(body),
                    params=query,
                    headers=headers,
                )
        except httpx.TimeoutException:
            fail(f"{self.url} did not answer within {TIMEOUT_SECONDS:g} s", ExitCode.UNREACHABLE)
        except httpx.ConnectError:
            self._fail_unreachable()
        except httpx.HTTPError as error:
            fail(f"{self.url} cannot be talked to: {error}", ExitCode.UNREACHABLE)
        except (UnicodeEncodeError, httpx.InvalidURL):
            fail("the API key or the URL has characters that cannot be sent", ExitCode.USAGE)
        try:
            envelope = msgspec.json.decode(answer.content, type=dict[str, object])
        except msgspec.DecodeError:
            envelope = {}
        if not {"code", "message", "data"} <= envelope.keys():
            fail(
                f"{self.url} answered HTTP {answer.status_code}, but not as Duetime does",
                ExitCode.FAILED,
            )
        return answer, envelope

    def _fail_unreachable(self) -> NoReturn:
        fail(f"no server at {self.url} (is `duetime serve` running?)", ExitCode.UNREACHABLE)


def _stored_api_key(dotenv: Mapping[str, str]) -> str | None:
    """The key from `.env`, or the one that `duetime dev` made in this directory."""
    try:
        dev_key = DEV_KEY_PATH.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        dev_key = ""
    return dotenv.get("DUETIME_API_KEY") or dotenv.get("API_KEY") or dev_key or None
