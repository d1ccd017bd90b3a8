"""The server URL and API key for commands that are given neither."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from duetime.cli.client.dev_server import DEV_KEY_PATH, read_dev_key, running_dev_url
from duetime.domain.defaults import DEFAULT_PORT
from duetime.domain.limits import MAX_PORT
from duetime.dotenv_file import read_dotenv

DEFAULT_URL = f"http://127.0.0.1:{DEFAULT_PORT}"

_KEY_VARIABLES = ("DUETIME_API_KEY", "API_KEY")


@dataclass(frozen=True, slots=True)
class FoundKey:
    """An API key, and its source for the message that the server refuses it."""

    text: str = field(repr=False)
    source: str


def client_dotenv() -> dict[str, str]:
    """The assignments of `.env` in the working directory. Only `serve` reports its errors."""
    return read_dotenv(Path(".env"), problems=[])


def find_url(dotenv: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> str:
    """The server that `.env` names, else the `duetime dev` that runs in this directory, else the
    server that `duetime serve` or `dev` starts here on its PORT."""
    url = dotenv.get("DUETIME_URL") or running_dev_url()
    if url:
        return url
    port = environ.get("PORT", dotenv.get("PORT", ""))
    if port.isascii() and port.isdigit() and 0 < int(port) <= MAX_PORT:
        return f"http://127.0.0.1:{int(port)}"
    return DEFAULT_URL


def find_key(
    given: str | None,
    dotenv: Mapping[str, str],
    environ: Mapping[str, str] = os.environ,
    *,
    url: str = DEFAULT_URL,
) -> FoundKey | None:
    """The key that was given, else the one in `.env`, else the one that `duetime dev` made here.

    `given` is the value of the option or of one of its environment variables. The keys in `.env`
    are for other servers than the `duetime dev` that runs here.
    """
    if given:
        variable = next((name for name in _KEY_VARIABLES if environ.get(name) == given), None)
        return FoundKey(given, variable or "--api-key")
    dev_key = read_dev_key()
    found_dev_key = FoundKey(dev_key, str(DEV_KEY_PATH)) if dev_key else None
    if found_dev_key and url.replace("//localhost:", "//127.0.0.1:") == running_dev_url():
        return found_dev_key
    for name in _KEY_VARIABLES:
        if dotenv.get(name):
            return FoundKey(dotenv[name], f"{name} in .env")
    return found_dev_key
