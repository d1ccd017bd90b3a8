"""The results of handlers: a page to render, or another place to go to."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from duetime.api.http.answers import AnyAnswer, Headers


class View(Struct, frozen=True, kw_only=True):
    """A page: a template with its values.

    `live` names the blocks of the template that are rendered again while the page is open. Each is
    the whole content of an element with the attribute `data-live` of the same name.
    """

    template: str
    title: str
    values: Mapping[str, object] = {}
    live: Sequence[str] = ()
    status: int = 200


class Redirect(Struct, frozen=True):
    """The browser goes to a path of the UI. The message is shown there, once. `cookies` are headers
    that set them."""

    location: str
    message: str | None = None
    cookies: Headers = ()


Result = View | Redirect | AnyAnswer
