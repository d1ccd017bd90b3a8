"""The results of handlers: a page to render, or another place to go to."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from duetime.api.http.answers import AnyAnswer, Headers
from duetime.domain.errors import DuetimeError


class View(Struct, frozen=True, kw_only=True):
    """A page: a template with its values.

    `live` names the blocks of the template that are rendered again while the page is open. Each is
    the whole content of an element with the attribute `data-live` of the same name.

    A page that shows why an action was refused has the error as its `refusal`: the audit log and
    the status of the answer are those of the error.
    """

    template: str
    title: str
    values: Mapping[str, object] = {}
    live: Sequence[str] = ()
    status: int = 200
    refusal: DuetimeError | None = None


class Redirect(Struct, frozen=True):
    """The browser goes to a path of the UI. The message is shown there, once. `cookies` are headers
    that set them."""

    location: str
    message: str | None = None
    cookies: Headers = ()


Result = View | Redirect | AnyAnswer
