"""The server URL and API key for commands that are given neither."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from duetime.domain.defaults import DEFAULT_PORT
from duetime.domain.limits import MAX_PORT
from duetime.dotenv_file import read_dotenv

DEFAULT_URL = f"http://127.0.0.1:{DEFAULT_PORT}"
DEV_KEY_PATH = Path(".duetime-dev-key")

_KEY_VARIABLES = ("DUETIME_API_KEY", "API_KEY")


@dataclass(frozen=True, slots=True)
class FoundKey:
    """An API key, and its source for the message that the server refuses it."""

    text: str = field(repr=False)
    source: str


def client_dotenv() -> dict[str, str]:
    """The assignments of `.env` in the working directory. Only `serve` reports its errors."""
    return read_dotenv(Path(".env"), problems=[])


def find_url(dotenv: Mapping[str, str]) -> str:
    """The server that `.env` names, else the one that `duetime serve` starts here on its PORT."""
    url = dotenv.get("DUETIME_URL")
    if url:
        return url
    port = dotenv.get("PORT", "")
    if port.isascii() and port.isdigit() and 0 < int(port) <= MAX_PORT:
        return f"http://127.0.0.1:{int(port)}"
    return DEFAULT_URL


def find_key(
    given: str | None, dotenv: Mapping[str, str], environ: Mapping[str, str] = os.environ
) -> FoundKey | None:
    """The key that was given, else the one in `.env`, else the one that `duetime dev` made here.

    `given` is the value of the option or of one of its environment variables.
    """
    if given:
        variable = next((name for name in _KEY_VARIABLES if environ.get(name) == given), None)
        return FoundKey(given, variable or "--api-key")
    for name in _KEY_VARIABLES:
        if dotenv.get(name):
            return FoundKey(dotenv[name], f"{name} in .env")
    try:
        dev_key = DEV_KEY_PATH.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return FoundKey(dev_key, str(DEV_KEY_PATH)) if dev_key else None
