"""The handler of the v1 API for the audit log."""

from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple
from uuid import UUID

from msgspec import Meta, Struct
from msgspec.structs import replace
from starlette.types import Receive, Scope

from duetime.api.http.answers import Answer
from duetime.api.http.caller import caller_of
from duetime.api.http.operation import Parameter, number_parameter
from duetime.api.http.query import number, parameters
from duetime.api.http.types import INSTANT, InstantText
from duetime.api.v1.answers import ok
from duetime.api.v1.listing import instant_in_query, pack_cursor, unpack_cursor
from duetime.domain.instants import format_instant
from duetime.domain.limits import DEFAULT_PAGE_TIMERS, MAX_V1_PAGE_TIMERS
from duetime.domain.security.access import Access
from duetime.domain.security.audit import AuditEntry
from duetime.ports.security import AuditQuery
from duetime.service.security.audit_log import AuditLog

AUDIT_LOG_PARAMETERS = (
    Parameter("actor", "Only entries of the key with this name.", {"type": "string"}),
    Parameter("action", "Only this action, such as `timer.cancel`.", {"type": "string"}),
    Parameter("namespace", "Only entries about this namespace.", {"type": "string"}),
    Parameter(
        "target", "Only entries about the timer, operation or key with this id.", {"type": "string"}
    ),
    Parameter("from", "Only entries at or after this instant.", {"type": "string", **INSTANT}),
    Parameter("until", "Only entries before this instant.", {"type": "string", **INSTANT}),
    Parameter("cursor", "The `nextCursor` of the page before.", {"type": "string"}),
    number_parameter("limit", "Entries on a page.", 1, MAX_V1_PAGE_TIMERS, DEFAULT_PAGE_TIMERS),
)
_NAMES = frozenset(parameter.name for parameter in AUDIT_LOG_PARAMETERS)


class AuditEntryAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """One thing that somebody did, or tried to do."""

    id: str
    at: InstantText
    actor: Annotated[
        str,
        Meta(
            description="Name of the key; `API_KEY` for that of the settings, `anonymous` without "
            "authentication, `bus` for commands of the bus."
        ),
    ]
    key_id: Annotated[str | None, Meta(description="Id of the key, which does not change.")]
    address: Annotated[str | None, Meta(description="Address that the request came from.")]
    action: Annotated[str, Meta(examples=["timer.cancel"])]
    namespace: str | None
    target: Annotated[
        str | None, Meta(description="Id of the timer, operation, key or secret, if there is one.")
    ]
    result: Annotated[
        str, Meta(description="`ok`, or the code of the error.", examples=["TIMER_NOT_FOUND"])
    ]
    details: Annotated[str | None, Meta(description="A few words for people.")]


class AuditLogPage(Struct, frozen=True, rename="camel"):
    """Entries of the audit log, newest first."""

    entries: list[AuditEntryAnswer]
    next_cursor: Annotated[
        str | None, Meta(description="Where the next page begins; null on the last one.")
    ]


class AuditLogV1:
    def __init__(self, log: AuditLog) -> None:
        self._log = log

    async def page(self, scope: Scope, receive: Receive) -> Answer:
        given = parameters(scope["query_string"], _NAMES)
        page = await read_page(self._log, audit_query(given, caller_of(scope).access))
        return ok(AuditLogPage([audit_entry_answer(each) for each in page.entries], page.cursor))


class ReadPage(NamedTuple):
    """`cursor` is where the next page begins; None on the last one."""

    entries: Sequence[AuditEntry]
    cursor: str | None


async def read_page(log: AuditLog, query: AuditQuery) -> ReadPage:
    # The entry after the page shows whether there is another page.
    found = await log.entries(replace(query, limit=query.limit + 1))
    shown = found[: query.limit]
    cursor = None
    if len(found) > len(shown):
        last = shown[-1]
        cursor = pack_cursor(_filters(query), last.at, UUID(last.id).bytes)
    return ReadPage(shown, cursor)


def audit_query(given: Mapping[str, str], access: Access) -> AuditQuery:
    """The query of parameters as in `AUDIT_LOG_PARAMETERS`. Raises `InvalidInput` that names the
    parameter."""
    query = AuditQuery(
        actor=given.get("actor"),
        action=given.get("action"),
        target=given.get("target"),
        namespaces=_namespaces(given.get("namespace"), access),
        from_inclusive=instant_in_query("from", given.get("from")),
        until_exclusive=instant_in_query("until", given.get("until")),
        limit=number("limit", given.get("limit"), DEFAULT_PAGE_TIMERS, 1, MAX_V1_PAGE_TIMERS),
    )
    cursor = given.get("cursor")
    if cursor is None:
        return query
    names = "actor, action, namespace, target, from and until"
    at, uuid = unpack_cursor(cursor, _filters(query), names)
    return replace(query, before_exclusive=(at, str(UUID(bytes=uuid))))


def _namespaces(asked_for: str | None, access: Access) -> list[str] | None:
    """The namespaces whose entries are shown. One out of the caller's sight has no entries, like
    one that never existed."""
    if asked_for is None:
        return None if access.namespaces is None else sorted(access.namespaces)
    return [asked_for] if access.sees(asked_for) else []


def _filters(query: AuditQuery) -> object:
    return (
        query.actor,
        query.action,
        query.target,
        query.namespaces,
        query.from_inclusive,
        query.until_exclusive,
    )


def audit_entry_answer(entry: AuditEntry) -> AuditEntryAnswer:
    return AuditEntryAnswer(
        id=entry.id,
        at=format_instant(entry.at),
        actor=entry.actor,
        key_id=entry.key_id,
        address=entry.address,
        action=entry.action,
        namespace=entry.namespace,
        target=entry.target,
        result=entry.result,
        details=entry.details,
    )
