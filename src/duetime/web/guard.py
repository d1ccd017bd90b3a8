"""Keeps other sites from using the UI: the headers of its pages, and the check of its forms."""

from hmac import compare_digest
from urllib.parse import urlsplit

from starlette.types import Scope

from duetime.api.http.answers import Headers
from duetime.domain.errors import Forbidden
from duetime.web.cookies import csrf_token

CSRF_FIELD = "csrf"
CSRF_HEADER = b"x-csrf-token"

# Scripts put only such markup into a page that came from our own event stream.
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    b"require-trusted-types-for 'script'; trusted-types duetime"
)

PAGE_HEADERS: Headers = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", _POLICY),
    (b"referrer-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)

_REFUSAL = "the form is from another site, or too old: load the page again, and send it once more"


def check_origin(scope: Scope) -> None:
    """Raises `Forbidden` if the browser says that another site sent the request."""
    headers = dict(scope["headers"])
    site = headers.get(b"sec-fetch-site")
    if site is not None:
        if site != b"same-origin":
            raise Forbidden(_REFUSAL)
        return
    origin = headers.get(b"origin")
    if origin is not None and urlsplit(origin.decode("latin-1")).netloc.encode() != headers.get(
        b"host"
    ):
        raise Forbidden(_REFUSAL)


def check_token(browser: str | None, given: str | None) -> None:
    """Raises `Forbidden` unless the form was made for this browser."""
    expected = "" if browser is None else csrf_token(browser)
    if not expected or not compare_digest(expected.encode(), (given or "").encode()):
        raise Forbidden(_REFUSAL)
