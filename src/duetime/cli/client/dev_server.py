"""The files by which commands find the `duetime dev` that runs in their directory."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

DEV_KEY_PATH = Path(".duetime-dev-key")
DEV_URL_PATH = Path(".duetime-dev-url")
DEV_DB_PATH = Path("duetime-dev.db")


class DevAnnouncement:
    """The URL of a server, in a file that stays locked while the server runs.

    The operating system releases the lock when the process dies, however it dies, so a file that
    is left behind misleads nobody. If two servers run in one directory, the later one is
    found. Raises `OSError` if the directory cannot be written to.
    """

    def __init__(self, url: str, directory: Path) -> None:
        self._path = directory / DEV_URL_PATH
        new = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        self._descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        os.write(self._descriptor, f"{url}\n".encode())
        # Locked before it is found, so that no command takes it for a file left behind.
        new.replace(self._path)

    def withdraw(self) -> None:
        with suppress(OSError):
            if os.path.samestat(self._path.stat(), os.fstat(self._descriptor)):
                self._path.unlink()
        os.close(self._descriptor)


def running_dev_url() -> str | None:
    """The URL of the `duetime dev` that was started in the working directory and still runs."""
    with suppress(OSError, UnicodeDecodeError), DEV_URL_PATH.open(encoding="ascii") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return stream.read().strip() or None
    return None


def read_dev_key() -> str | None:
    """The key that `duetime dev` keeps in the working directory."""
    with suppress(OSError, UnicodeDecodeError):
        return DEV_KEY_PATH.read_text(encoding="ascii").strip() or None
    return None
