"""The browser of the person at this machine."""

import os
import sys
import webbrowser
from collections.abc import Mapping


def open_in_browser(url: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a browser shows the page. A browser in text mode, which would take over the terminal,
    does not count, unless `BROWSER` names it."""
    has_screen = sys.platform in ("darwin", "win32") or any(
        environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    )
    try:
        return has_screen and webbrowser.open(url)
    except (OSError, webbrowser.Error):
        return False
