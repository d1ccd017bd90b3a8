"""The handlers of the v1 API for bulk operations."""

from msgspec import UNSET, UnsetType, json
from msgspec.structs import replace
from starlette.types import Receive, Scope

from duetime.api.http.answers import JSON_TYPE, Answer, Headers
from duetime.api.http.auditing import given_members
from duetime.api.http.body import read_body
from duetime.api.http.caller import caller_of
from duetime.api.http.decoding import BodyDecoder
from duetime.api.http.operation import number_parameter
from duetime.api.http.query import number, parameters
from duetime.api.http.values import instant_or_none, parse_instant
from duetime.api.v1.answers import ok
from duetime.api.v1.bulk_types import (
    CountAnswer,
    FilterBody,
    MetadataBody,
    OperationAnswer,
    OperationBody,
    OperationListAnswer,
)
from duetime.api.v1.requests import namespace_of, path_text
from duetime.domain.bulk import BulkAction, BulkOperation, TimerFilter, status_to_change
from duetime.domain.errors import InvalidInput, OperationNotFound
from duetime.domain.instants import Instant, format_duration, format_instant, parse_duration_ms
from duetime.domain.limits import DEFAULT_PAGE_TIMERS, MAX_V1_PAGE_TIMERS
from duetime.service.bulk.operations import BulkOperations, NewOperation

LIST_LIMIT = number_parameter(
    "limit", "Operations to answer.", 1, MAX_V1_PAGE_TIMERS, DEFAULT_PAGE_TIMERS
)

_decode = BodyDecoder(
    OperationBody,
    {
        "action": "'cancel', 'redrive', 'reschedule' or 'run-now'",
        "filter.status": "'pending' or 'failed'",
    },
).decode
_NO_FILTER = FilterBody()
_FILTER_NAMES = FilterBody.__struct_encode_fields__


class OperationsV1:
    """Each method answers a request or raises."""

    def __init__(self, operations: BulkOperations, *, max_body_bytes: int) -> None:
        self._operations = operations
        self._max_body_bytes = max_body_bytes

    async def start(self, scope: Scope, receive: Receive) -> Answer:
        body = _decode(await read_body(scope, receive, self._max_body_bytes))
        caller = caller_of(scope)
        caller.note(_details(body))
        new = _new_operation(body, caller.access.name)
        caller.reach(new.namespace)
        if body.dry_run:
            matched = await self._operations.count(new)
            return ok(CountAnswer(matched=matched.timers, matched_is_minimum=matched.is_minimum))
        operation = await self._operations.start(new)
        caller.target = operation.id
        caller.note({"matched": operation.matched})
        return accepted(operation)

    async def page(self, scope: Scope, receive: Receive) -> Answer:
        given = parameters(scope["query_string"], frozenset({LIST_LIMIT.name}))
        limit = number("limit", given.get("limit"), DEFAULT_PAGE_TIMERS, 1, MAX_V1_PAGE_TIMERS)
        newest = await self._operations.newest(limit, caller_of(scope).access.namespaces)
        return ok(OperationListAnswer([operation_answer(each) for each in newest]))

    async def get(self, scope: Scope, receive: Receive) -> Answer:
        return ok(operation_answer(await self._visible(scope)))

    async def abort(self, scope: Scope, receive: Receive) -> Answer:
        operation = await self._visible(scope)
        aborted = await self._operations.abort(operation.id)
        caller_of(scope).note({"action": aborted.action.value, "changed": aborted.changed})
        return ok(operation_answer(aborted))

    async def _visible(self, scope: Scope) -> BulkOperation:
        """The operation of the path. Raises `OperationNotFound`, also if its namespace is out of
        the caller's sight."""
        operation = await self._operations.get(_id_in_path(scope))
        caller = caller_of(scope)
        if not caller.access.sees(operation.namespace):
            # Before `reach`: the audit log has the same entry as for an id that does not exist.
            raise OperationNotFound
        caller.reach(operation.namespace, operation.id)
        return operation


def accepted(operation: BulkOperation) -> Answer:
    """The answer for an operation that has begun."""
    location: Headers = ((b"location", f"/api/v1/operations/{operation.id}".encode()),)
    return Answer(202, json.encode(operation_answer(operation)), JSON_TYPE + location)


def operation_answer(operation: BulkOperation) -> OperationAnswer:
    move_by_ms = operation.move_by_ms
    return OperationAnswer(
        id=operation.id,
        action=operation.action.value,
        namespace=operation.namespace,
        started_by=operation.started_by,
        filter=_filter_answer(operation.filter),
        execute_at=UNSET if operation.execute_at is None else format_instant(operation.execute_at),
        move_by=UNSET if move_by_ms is None else format_move(move_by_ms),
        status=operation.status.value,
        matched=operation.matched,
        matched_is_minimum=operation.matched_is_minimum,
        scanned=operation.scanned,
        changed=operation.changed,
        skipped=operation.skipped,
        executing=operation.executing,
        error=operation.error,
        created_at=format_instant(operation.created_at),
        updated_at=format_instant(operation.updated_at),
        finished_at=None if operation.is_running else format_instant(operation.updated_at),
    )


def _details(body: OperationBody) -> dict[str, object]:
    """The action and the filter, for the audit log."""
    matching = given_members(_NO_FILTER if body.filter is UNSET else body.filter, *_FILTER_NAMES)
    if "endpoint" in matching:
        # A password may come before the host.
        matching["endpoint"] = str(matching["endpoint"]).rpartition("@")[2]
    if isinstance(member := matching.get("metadata"), MetadataBody):
        matching["metadata"] = f"{member.key}={member.value}"
    given = given_members(body, "action", "executeAt", "moveBy")
    given.pop("filter", None)
    return given | matching


def _new_operation(body: OperationBody, started_by: str) -> NewOperation:
    action = BulkAction(body.action)
    matching = _NO_FILTER if body.filter is UNSET else body.filter
    status = status_to_change(action).label
    if matching.status not in (UNSET, status):
        raise InvalidInput("filter.status", f"must be {status!r} for the action {body.action!r}")
    if replace(matching, status=UNSET) == _NO_FILTER and not body.all:
        raise InvalidInput("filter", "must have a condition; for all timers say all: true")
    return NewOperation(
        namespace=namespace_of(body.namespace, body.group_id),
        action=action,
        filter=TimerFilter(
            due_from_inclusive=_instant("filter.due_after", matching.due_after),
            due_until_exclusive=_instant("filter.due_before", matching.due_before),
            id_prefix=_text(matching.id_prefix),
            endpoint=_text(matching.endpoint),
            error_contains=_text(matching.error_contains),
            metadata_key=None if matching.metadata is UNSET else matching.metadata.key,
            metadata_value=None if matching.metadata is UNSET else matching.metadata.value,
        ),
        started_by=started_by,
        execute_at=_instant("execute_at", body.execute_at),
        move_by_ms=None if body.move_by is UNSET else parse_move_ms(body.move_by),
    )


def _filter_answer(matching: TimerFilter) -> FilterBody:
    def given(text: str | None) -> str | UnsetType:
        return UNSET if text is None else text

    member: MetadataBody | UnsetType = UNSET
    if matching.metadata_key is not None and matching.metadata_value is not None:
        member = MetadataBody(key=matching.metadata_key, value=matching.metadata_value)
    return FilterBody(
        due_after=given(instant_or_none(matching.due_from_inclusive)),
        due_before=given(instant_or_none(matching.due_until_exclusive)),
        id_prefix=given(matching.id_prefix),
        endpoint=given(matching.endpoint),
        error_contains=given(matching.error_contains),
        metadata=member,
    )


def _instant(field: str, text: str | UnsetType) -> Instant | None:
    return None if text is UNSET else parse_instant(field, text)


def _text(text: str | UnsetType) -> str | None:
    return None if text is UNSET else text


def parse_move_ms(text: str) -> int:
    """A duration that may follow a minus sign. Raises `InvalidInput`."""
    try:
        duration_ms = parse_duration_ms(text.removeprefix("-"))
    except ValueError as error:
        raise InvalidInput("move_by", f"{error}, or one after a minus sign") from None
    return -duration_ms if text.startswith("-") else duration_ms


def format_move(move_by_ms: int) -> str:
    return f"-{format_duration(-move_by_ms)}" if move_by_ms < 0 else format_duration(move_by_ms)


def _id_in_path(scope: Scope) -> str:
    return path_text(scope, "operationId", "operation_id")
