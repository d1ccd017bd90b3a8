"""The server that the examples talk to, and its key.

DUETIME_URL and API_KEY name them. Without these, it is the `duetime dev` that runs in this
directory, else the `duetime serve` with the `.env` of this directory. Your own programs take both
from their settings.
"""

import fcntl
import os
from pathlib import Path


def _content(path: str) -> str:
    return Path(path).read_text().strip() if Path(path).exists() else ""


def _dotenv() -> dict[str, str]:
    lines = (line.removeprefix("export ") for line in _content(".env").splitlines())
    return {name: value.strip("'\"") for name, _, value in (line.partition("=") for line in lines)}


def _dev_url() -> str:
    """The file is locked while the server runs."""
    try:
        with open(".duetime-dev-url") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _content(".duetime-dev-url")
    except FileNotFoundError:
        pass
    return ""


def _server_and_key() -> tuple[str, str]:
    settings = _dotenv() | os.environ
    dev_url, dev_key = _dev_url(), _content(".duetime-dev-key")
    served_url = f"http://127.0.0.1:{settings.get('PORT') or 8080}"
    url = settings.get("DUETIME_URL") or dev_url or served_url
    if url == dev_url:
        return url, os.environ.get("API_KEY") or dev_key
    return url, settings.get("API_KEY") or dev_key


DUETIME_URL, API_KEY = _server_and_key()
