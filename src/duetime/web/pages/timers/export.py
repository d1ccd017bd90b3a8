"""Exports of everything that matches, as CSV, JSON or NDJSON, made while they are sent. One that
cannot go on breaks the connection off, so that the download fails."""

from collections.abc import AsyncGenerator, Callable
from functools import partial

from msgspec import UNSET, Struct, json
from msgspec.structs import replace

from duetime.api.http.answers import StreamedAnswer
from duetime.api.http.caller import Caller
from duetime.api.v1.answers import timer_answer
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Instant, format_instant
from duetime.domain.security.redaction import shown_callback
from duetime.service.searching.search import ListedTimer, Search, Unshown
from duetime.service.searching.searching import Searching
from duetime.service.turns import Turns
from duetime.web.downloads import RunningExports, csv_row, file_headers
from duetime.web.pages.timers.columns import target_of

CSV_COLUMNS = (
    "namespace", "id", "status", "execute_at", "next_attempt_at", "callback", "attempts",
    "last_error", "metadata", "payload", "created_at", "updated_at", "executed_at", "not_shown",
)  # fmt: skip

_encode = json.Encoder().encode
_Encode = Callable[[ListedTimer], bytes]


class Format(Struct, frozen=True):
    """`encode` makes the text of one timer. `separator` is between two. `end`, if there is one, has
    a place for their number."""

    media_type: str
    suffix: str
    encode: _Encode
    start: bytes = b""
    separator: bytes = b""
    end: bytes = b""


class _NotShown(Struct, rename="camel"):
    """A timer whose contents cannot be shown."""

    namespace: str
    id: str
    status: str
    execute_at: str
    not_shown: str


class Exports:
    def __init__(self, searching: Searching, turns: Turns, callback_timeout_ms: int) -> None:
        self._searching = searching
        self._turns = turns
        self._running = RunningExports()
        as_json = partial(_json_text, default_timeout_ms=callback_timeout_ms)
        self._formats = {
            "csv": Format(
                "text/csv; charset=utf-8",
                "csv",
                _csv_text,
                start=csv_row(CSV_COLUMNS),
            ),
            "json": Format(
                "application/json",
                "json",
                as_json,
                start=b'{"timers":[\n',
                separator=b",\n",
                end=b'\n],"count":%d,"complete":true}\n',
            ),
            "ndjson": Format(
                "application/x-ndjson",
                "ndjson",
                lambda listed: as_json(listed) + b"\n",
            ),
        }

    def answer(
        self, name: str | None, search: Search, caller: Caller, now: Instant
    ) -> StreamedAnswer:
        """Raises `InvalidInput` and `Unavailable`."""
        form = self._formats.get(name or "")
        if form is None:
            raise InvalidInput("format", f"must be one of {', '.join(self._formats)}")
        self._running.check_room(caller.access)
        headers = file_headers("timers", form.suffix, form.media_type, now)
        return StreamedAnswer(200, self._chunks(form, search, caller), headers)

    async def _chunks(
        self, form: Format, search: Search, caller: Caller
    ) -> AsyncGenerator[bytes, None]:
        self._running.begin(caller.access)
        try:
            yield form.start
            count = 0
            async for part in self._searching.walk(replace(search, cursor=None)):
                # An export may take longer than the caller's key is valid.
                caller.check_still_valid()
                texts = await self._turns.map(form.encode, part)
                joined = form.separator.join(texts)
                yield form.separator + joined if count and texts else joined
                count += len(texts)
            if form.end:
                yield form.end % count
        finally:
            self._running.end(caller.access)


def _json_text(listed: ListedTimer, default_timeout_ms: int) -> bytes:
    """As the v1 API answers the timer, without secrets."""
    timer = listed.timer
    if listed.unshown is Unshown.UNREADABLE:
        return _encode(
            _NotShown(
                timer.key.namespace,
                timer.key.id,
                timer.status.label,
                format_instant(timer.execute_at),
                listed.unshown.value,
            )
        )
    answer = _encode(timer_answer(timer, default_timeout_ms))
    if listed.unshown is None:
        return answer
    return b'%s,"notShown":%s}' % (answer[:-1], _encode(listed.unshown.value))


def _csv_text(listed: ListedTimer) -> bytes:
    timer = listed.timer
    is_lost = listed.unshown is Unshown.UNREADABLE
    payload = shown_callback(timer.callback).payload
    return csv_row(
        (
            timer.key.namespace,
            timer.key.id,
            timer.status.label,
            format_instant(timer.execute_at),
            "" if timer.status.is_finished else format_instant(timer.due_at),
            "" if is_lost else target_of(timer.callback),
            str(timer.attempt),
            timer.last_error or "",
            "" if timer.metadata is None else bytes(timer.metadata).decode(errors="replace"),
            "" if payload is UNSET else bytes(payload).decode(errors="replace"),
            format_instant(timer.created_at),
            format_instant(timer.updated_at),
            "" if timer.executed_at is None else format_instant(timer.executed_at),
            "" if listed.unshown is None else listed.unshown.value,
        )
    )
