"""The check of the API key."""

from collections.abc import Iterable
from hmac import compare_digest

from duetime.domain.errors import Unauthorized

API_KEY_HEADER = b"x-api-key"


class ApiKeyGuard:
    """Accepts requests that carry the key in their only `X-API-Key`.

    Without a key the guard accepts every request: a gateway in front of Duetime has checked it.
    The comparison takes the same time wherever the keys differ.
    """

    def __init__(self, api_key: str | None) -> None:
        self._expected = None if api_key is None else api_key.encode()

    def check(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Raises `Unauthorized`. Call it before reading the body."""
        if self._expected is None:
            return
        given: bytes | None = None
        for name, value in headers:
            if name == API_KEY_HEADER:
                if given is not None:
                    # A gateway in front may have checked the other one.
                    raise Unauthorized("X-API-Key is given more than once")
                given = value
        if not self.accepts(given):
            raise Unauthorized("missing or invalid X-API-Key")

    def accepts(self, given: bytes | None) -> bool:
        """Whether this is the key; None if there was none. The caller has refused a second one."""
        if self._expected is None:
            return True
        # Keys are often pasted with white space, which is not part of a header's value.
        return given is not None and compare_digest(given.strip(b" \t"), self._expected)
