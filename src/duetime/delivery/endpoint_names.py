"""The name of an endpoint, however a person writes it."""

from duetime.delivery.http_client import InvalidUrl, parse_target
from duetime.domain.errors import InvalidInput
from duetime.domain.limits import MAX_FILTER_CHARACTERS

_WEB = ("http", "https")
_FORM = "must be an origin such as https://api.example.com"


def endpoint_named(text: str) -> str:
    """The name under which destinations know the endpoint, such as `https://api.example.com:443`.

    A host without a scheme is one that is called by https. An endpoint of NATS or of the bus has to
    be given as it is shown. Raises `InvalidInput`.
    """
    name = text.strip()
    if not name or len(name) > MAX_FILTER_CHARACTERS or not name.isprintable():
        raise InvalidInput("endpoint", f"{_FORM}, of up to {MAX_FILTER_CHARACTERS:,} characters")
    scheme, separator, _ = name.partition("://")
    if " " in name or (separator and scheme.lower() not in _WEB):
        return name
    url = name if separator else f"https://{name}"
    authority = url.partition("://")[2].removesuffix("/")
    if any(character in authority for character in "/?#@"):
        raise InvalidInput("endpoint", f"{_FORM}: no user, path, query or fragment")
    try:
        return parse_target(url).origin
    except InvalidUrl as error:
        raise InvalidInput("endpoint", f"{error}: it {_FORM}") from None
