"""The page of the audit log, and its exports."""

from collections.abc import AsyncGenerator, Mapping
from urllib.parse import quote

from msgspec import Struct, json
from msgspec.structs import asdict, replace

from duetime.api.app import Services
from duetime.api.http.answers import StreamedAnswer
from duetime.api.http.caller import Caller
from duetime.api.http.query import choice
from duetime.api.v1.security.audit_log import (
    AuditEntryAnswer,
    audit_entry_answer,
    audit_query,
    read_page,
)
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Instant, format_instant
from duetime.domain.keys import TimerKey
from duetime.domain.security.access import Role
from duetime.domain.security.audit import AuditEntry
from duetime.ports.security import AuditQuery
from duetime.web.downloads import RunningExports, csv_row, file_headers
from duetime.web.endpoint import WebEndpoint, page
from duetime.web.forms.due import read_instant
from duetime.web.pages.admin.namespace_words import path_of as namespace_path
from duetime.web.pages.admin.secrets import path_of as secrets_path
from duetime.web.pages.timer_paths import timer_path
from duetime.web.rendering.view import View
from duetime.web.request import Fields, Request

PATH = "/ui/audit"

MAX_EXPORTED = 100_000
"""Entries of an export: the newest ones that match."""

EXPORTED_AT_ONCE = 500

_FILTERS = ("actor", "action", "target", "namespace")
_INSTANTS = ("from", "until")
_FORMATS = {"csv": "text/csv; charset=utf-8", "ndjson": "application/x-ndjson"}
_COLUMNS = AuditEntryAnswer.__struct_fields__

_encode = json.Encoder().encode


class ShownEntry(Struct, frozen=True):
    """`href` is the page of the thing that was acted on, if there is one."""

    entry: AuditEntry
    href: str | None

    @property
    def is_ok(self) -> bool:
        return self.entry.result == "ok"


class AuditPage:
    def __init__(self, services: Services) -> None:
        self._log = services.audit_log
        self._turns = services.v1.turns
        self._running = RunningExports()

    def endpoints(self) -> tuple[WebEndpoint, ...]:
        return (
            page("uiAudit", PATH, self.show, role=Role.ADMIN, may_be_live=True),
            page("uiExportAudit", f"{PATH}/export", self.export, role=Role.ADMIN),
        )

    async def show(self, request: Request) -> View:
        given = {name: request.query.text(name) for name in (*_FILTERS, *_INSTANTS)}
        values: dict[str, object] = {"given": given, "error": None, "entries": (), "older": None}
        status = 200
        live = False
        try:
            parameters = _parameters(request.query, request.now)
            query = audit_query(parameters, request.access)
            found = await read_page(self._log, query)
        except InvalidInput as error:
            values["error"] = error
            status = 400
        else:
            live = "cursor" not in parameters and _is_cheap(query)
            # A span of time before now must not move from page to page.
            fixed = {name: parameters[name] for name in _INSTANTS if name in parameters}
            values |= {
                "entries": [ShownEntry(each, _href(each)) for each in found.entries],
                "older": found.cursor and request.query.with_changes(**fixed, cursor=found.cursor),
            }
        return View(
            template="pages/admin/audit.html",
            title="Audit log",
            values={
                **values,
                "is_filtered": any(given.values()),
                "is_first": not request.query.has("cursor"),
                "exported": request.query.with_changes(cursor=None),
                "most": MAX_EXPORTED,
            },
            live=("entries",) if live else (),
            status=status,
        )

    async def export(self, request: Request) -> StreamedAnswer:
        suffix = request.query.get("format") or ""
        media_type = choice("format", suffix, _FORMATS)
        parameters = _parameters(request.query, request.now)
        query = audit_query({**parameters, "limit": str(EXPORTED_AT_ONCE)}, request.access)
        self._running.check_room(request.access)
        headers = file_headers("audit-log", suffix, media_type, request.now)
        chunks = self._chunks(query, request.caller, as_csv=suffix == "csv")
        return StreamedAnswer(200, chunks, headers)

    async def _chunks(
        self, query: AuditQuery, caller: Caller, *, as_csv: bool
    ) -> AsyncGenerator[bytes, None]:
        encode = _csv_text if as_csv else _json_text
        self._running.begin(caller.access)
        try:
            if as_csv:
                yield csv_row(_COLUMNS)
            exported = 0
            while exported < MAX_EXPORTED:
                entries = await self._log.entries(query)
                # An export may take longer than the caller's key is valid.
                caller.check_still_valid()
                yield b"".join(await self._turns.map(encode, entries))
                exported += len(entries)
                if len(entries) < query.limit:
                    break
                last = entries[-1]
                query = replace(query, before_exclusive=(last.at, last.id))
        finally:
            self._running.end(caller.access)


def _parameters(query: Fields, now: Instant) -> Mapping[str, str]:
    """As the API takes them. Raises `InvalidInput`."""
    given = {name: query.get(name) for name in (*_FILTERS, "cursor")}
    for name in _INSTANTS:
        text = query.get(name)
        if text is not None:
            at = read_instant(name, text, now, query.get("zone"), is_past=True)
            given[name] = format_instant(at)
    return {name: value for name, value in given.items() if value is not None}


def _is_cheap(query: AuditQuery) -> bool:
    """Whether the store reads only what the page shows."""
    conditions = (query.actor, query.action, query.target, query.namespaces)
    is_one_namespace = query.namespaces is None or len(query.namespaces) <= 1
    return is_one_namespace and sum(each is not None for each in conditions) <= 1


def _href(entry: AuditEntry) -> str | None:
    subject = entry.action.partition(".")[0]
    namespace, target = entry.namespace, entry.target
    match subject:
        case "timer" if namespace is not None and target is not None:
            return timer_path(TimerKey(namespace, target))
        case "operation" if target is not None:
            return f"/ui/operations/{quote(target, safe='')}"
        case "key" if target is not None:
            return f"/ui/keys/{quote(target, safe='')}"
        case "namespace" if namespace is not None:
            return namespace_path(namespace)
        case "secret" if namespace is not None:
            return secrets_path(namespace)
    return None


def _json_text(entry: AuditEntry) -> bytes:
    return _encode(audit_entry_answer(entry)) + b"\n"


def _csv_text(entry: AuditEntry) -> bytes:
    return csv_row(
        ["" if each is None else each for each in asdict(audit_entry_answer(entry)).values()]
    )
