"""Who may use the API."""

from collections.abc import Iterable
from hmac import compare_digest

from duetime.domain.errors import Unauthorized

API_KEY_HEADER = b"x-api-key"


class ApiKeyGuard:
    """Lets requests through that carry the key in `X-API-Key`.

    Without a key it lets everyone through: that is for services behind a gateway which has
    checked already. The comparison takes the same time wherever the keys differ.
    """

    def __init__(self, api_key: str | None) -> None:
        self._expected = None if api_key is None else api_key.encode()

    def check(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Raises `Unauthorized`. Call it before the body is read."""
        if self._expected is None:
            return
        for name, value in headers:
            if name == API_KEY_HEADER:
                # White space around a value is not part of it, and copied along easily.
                if compare_digest(value.strip(b" \t"), self._expected):
                    return
                break
        raise Unauthorized("missing or invalid X-API-Key")
