"""The cookies of the UI."""

import re
import secrets
from hashlib import sha256

from starlette.types import Scope

from duetime.web.request import Preferences

BROWSER = "duetime_browser"
"""A random name for the browser, which the tokens of its forms are made from."""

MESSAGE = "duetime_message"
"""The outcome of an action, for the page after it."""

_CHOICES = {"duetime_theme": ("auto", "light", "dark"), "duetime_times": ("local", "utc")}
_NAME = re.compile(r"[A-Za-z0-9_-]{43}")
_PORT = re.compile(rb":([0-9]{1,5})$")

Cookies = dict[str, str]
SetCookie = tuple[bytes, bytes]


def cookies_of(scope: Scope) -> Cookies:
    """The cookies of the request. If a name is given twice, the first counts."""
    cookies: Cookies = {}
    for name, value in scope["headers"]:
        if name == b"cookie":
            for pair in value.decode("latin-1").split(";"):
                key, _, text = pair.strip().partition("=")
                cookies.setdefault(key, text)
    return cookies


def session_cookie(scope: Scope) -> str:
    """The name of the cookie with the token of the session. Browsers send cookies to all ports of a
    host, and servers on other ports have sessions of their own."""
    host: bytes = dict(scope["headers"]).get(b"host", b"")
    port = _PORT.search(host)
    return "duetime_session" if port is None else f"duetime_session_{port[1].decode()}"


def is_secure(scope: Scope) -> bool:
    """Whether the browser uses TLS, so that its cookies must stay there. A proxy in front may say
    so, and forms do: nobody gains by a lie, which only concerns the cookies of the liar."""
    if scope["scheme"] == "https":
        return True
    headers = dict(scope["headers"])
    forwarded: bytes = headers.get(b"x-forwarded-proto", b"").partition(b",")[0].strip().lower()
    return forwarded == b"https" or headers.get(b"origin", b"").startswith(b"https://")


def set_cookie(
    scope: Scope, name: str, value: str, *, seconds: int | None = None, path: str = "/ui"
) -> SetCookie:
    """The header that sets a cookie that no script can read and no other site can send. With
    `seconds` of 0 it is forgotten, and without it lives as long as the browser."""
    age = "" if seconds is None else f"; Max-Age={seconds}"
    secure = "; Secure" if is_secure(scope) else ""
    text = f"{name}={value}; Path={path}; HttpOnly; SameSite=Strict{age}{secure}"
    return b"set-cookie", text.encode("latin-1")


def browser_of(cookies: Cookies) -> str | None:
    """The name of the browser; None if it has none that we gave."""
    given = cookies.get(BROWSER, "")
    return given if _NAME.fullmatch(given) else None


def new_browser() -> str:
    return secrets.token_urlsafe(32)


def csrf_token(browser: str) -> str:
    """The token of the forms of a browser. It does not tell the cookie, which is the secret."""
    return sha256(b"duetime forms " + browser.encode()).hexdigest()[:32]


def preferences_of(cookies: Cookies) -> Preferences:
    theme, times = (
        given if (given := cookies.get(name)) in choices else choices[0]
        for name, choices in _CHOICES.items()
    )
    return Preferences(str(theme), str(times))
