"""A request for a page or an action, as the handlers see it."""

from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl, unquote_to_bytes, urlencode

from msgspec import Struct
from starlette.types import Scope

from duetime.api.http.caller import Caller
from duetime.api.http.decoding import InvalidRequest
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Instant
from duetime.domain.security.access import UNCHECKED, Access, Role

MAX_FIELDS = 1_000
"""Fields of a form or a query; a page of chosen timers has a few hundred."""


class Fields:
    """The fields of a query or a form, in their order. A name may be given several times."""

    def __init__(self, pairs: Sequence[tuple[str, str]] = ()) -> None:
        self.pairs = tuple(pairs)

    @classmethod
    def read(cls, text: bytes, source: str) -> "Fields":
        """Raises `InvalidRequest`."""
        try:
            pairs = parse_qsl(
                text.decode("ascii"),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=MAX_FIELDS,
            )
        except ValueError:
            raise InvalidRequest(source, "cannot be read") from None
        return cls(pairs)

    def get(self, name: str) -> str | None:
        """The value without space around it; None if it is absent or empty. Raises `InvalidInput`
        if the name is given more than once."""
        values = self.all(name)
        if len(values) > 1:
            raise InvalidInput(name, "is given more than once")
        return values[0].strip() or None if values else None

    def needed(self, name: str) -> str:
        """Raises `InvalidInput`."""
        value = self.get(name)
        if value is None:
            raise InvalidInput(name, "is missing")
        return value

    def text(self, name: str) -> str:
        """The value as it was given, with its space; empty if it is absent."""
        return next(iter(self.all(name)), "")

    def all(self, name: str) -> list[str]:
        return [value for given, value in self.pairs if given == name]

    def has(self, name: str) -> bool:
        """Whether the name is given, such as that of a ticked box."""
        return any(given == name for given, _ in self.pairs)

    def with_changes(self, **changes: str | None) -> str:
        """A query with these values instead of the given ones; None leaves the name out."""
        kept = [pair for pair in self.pairs if pair[0] not in changes]
        added = [(name, value) for name, value in changes.items() if value is not None]
        return urlencode([*kept, *added])


class Preferences(Struct, frozen=True):
    """The choices of a browser, kept in its cookies. `theme` is `light`, `dark` or `auto`; `times`
    is `local` or `utc`."""

    theme: str = "auto"
    times: str = "local"


class Request(Struct, frozen=True, kw_only=True):
    """`target` is the path with its query. `csrf` is the token that the forms of the answer carry.
    `form` is empty for requests without a body. `scope` has the headers; it is empty when a live
    page is rendered again."""

    caller: Caller
    target: str
    path: Mapping[str, bytes]
    query: Fields
    now: Instant
    scope: Scope = {}
    form: Fields = Fields()
    csrf: str = ""
    base_url: str = ""
    preferences: Preferences = Preferences()
    message: str | None = None
    """The outcome of the action before, to be shown once."""
    wants_json: bool = False
    """A script asks, and shows the answer itself."""

    @property
    def access(self) -> Access:
        return self.caller.access

    @property
    def is_signed_in(self) -> bool:
        """False if requests need no key."""
        return self.access != UNCHECKED

    @property
    def may_read(self) -> bool:
        return self.access.may(Role.READ)

    @property
    def may_write(self) -> bool:
        return self.access.may(Role.WRITE)

    @property
    def is_admin(self) -> bool:
        return self.access.is_admin

    @property
    def sees_everything(self) -> bool:
        """Whether the caller may see all namespaces."""
        return self.access.namespaces is None

    def part(self, name: str) -> str:
        """A parameter of the path. Raises `InvalidInput` if it is not UTF-8."""
        try:
            return unquote_to_bytes(self.path[name]).decode()
        except UnicodeDecodeError:
            raise InvalidInput(name, "must be UTF-8") from None
