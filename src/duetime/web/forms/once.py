"""Forms that make something new are sent once: loading their answer again makes nothing twice."""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from duetime.web.request import Request

FIELD = "once"
REMEMBERED_FORMS = 200
"""Forms that a process remembers, with what they made."""


class SentForm(Struct):
    """`made` is the id of what the form made; empty while it is being made."""

    is_repeat: bool
    made: str = ""


class SentForms:
    """Each process remembers its own forms. One without the field is always taken for new."""

    def __init__(self) -> None:
        self._sent: OrderedDict[tuple[str, str], SentForm] = OrderedDict()

    @contextmanager
    def sent(self, request: Request) -> Iterator[SentForm]:
        """The form of the request. If nothing is made, it may be sent again."""
        once = request.form.get(FIELD)
        name = request.access.name, once or ""
        earlier = self._sent.get(name)
        if earlier is not None:
            yield SentForm(is_repeat=True, made=earlier.made)
            return
        form = SentForm(is_repeat=False)
        if once is not None:
            self._sent[name] = form
        try:
            yield form
        finally:
            if not form.made:
                self._sent.pop(name, None)
            while len(self._sent) > REMEMBERED_FORMS:
                self._sent.popitem(last=False)
