"""The API key of `duetime dev`: given, or made once and kept."""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from duetime.cli.client.server_lookup import DEV_KEY_PATH
from duetime.settings.given_values import read_dotenv


def dev_api_key(environ: Mapping[str, str], directory: Path) -> str:
    """API_KEY from the environment or `.env`, else the kept key, else a new one that is kept.

    The file is readable by its owner only. The client commands look in the same places.
    """
    given = environ.get("API_KEY") or read_dotenv(directory / ".env", problems=[]).get("API_KEY")
    if given:
        return given
    path = directory / DEV_KEY_PATH
    try:
        kept = path.read_text(encoding="ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        kept = ""
    if kept:
        return kept
    key = "dev-" + secrets.token_hex(16)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.write(key + "\n")
    return key
