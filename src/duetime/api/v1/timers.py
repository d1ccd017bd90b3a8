"""The handlers of the v1 API for timers, named in the path or in the body."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from functools import partial
from itertools import repeat

from msgspec import UNSET, UnsetType
from msgspec.structs import astuple, replace
from starlette.types import Receive, Scope

from duetime.api.http.answers import JSON_TYPE, Answer, Headers
from duetime.api.http.auditing import given_members
from duetime.api.http.body import ClientGone, read_body
from duetime.api.http.body_budget import share_of
from duetime.api.http.caller import caller_of
from duetime.api.http.secrets_parameter import asks_for_secrets
from duetime.api.http.values import changed_due_of, parse_instant
from duetime.api.v1.answer_types import (
    EXISTENCE_HEADER,
    BatchAnswer,
    BatchResult,
    ImportAnswer,
    RedriveAnswer,
    TimerPage,
)
from duetime.api.v1.answers import NO_CONTENT, ok, timer_answer
from duetime.api.v1.batches import BatchCreation, batch_result, decode_batch
from duetime.api.v1.full.restoration import FullRestoration
from duetime.api.v1.full.types import FullTimerPage
from duetime.api.v1.full.writing import full_timer
from duetime.api.v1.imports import Import
from duetime.api.v1.listing import cursor_of, parse_import, parse_listing
from duetime.api.v1.request_types import ChangeMembers, RedriveBody
from duetime.api.v1.requests import (
    changed_callback,
    changed_policy,
    check_something_changes,
    decode_create,
    decode_redrive,
    decode_selected_update,
    decode_selection,
    decode_update,
    key_in_path,
    key_of,
    namespace_of,
    new_timer_of,
    retry_policy_in,
)
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey
from duetime.domain.limits import BATCH_BODY_FACTOR
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Timer
from duetime.ports.store import Existence, OnExisting, Position, ScanQuery
from duetime.service.namespaces import Namespaces
from duetime.service.redriving import RedriveFilter, Redriving
from duetime.service.restoring import Restoring
from duetime.service.timer_service import TimerService

_CREATE_HEADERS: dict[Existence, Headers] = {
    existence: (*JSON_TYPE, (EXISTENCE_HEADER.lower().encode(), existence.value.encode()))
    for existence in Existence
}


_SHOWN_CHANGES = ("executeAt", "executeIn")


class TimersV1:
    """Each method answers a request or raises."""

    def __init__(
        self,
        service: TimerService,
        imports: TimerService,
        restoring: Restoring,
        redriving: Redriving,
        namespaces: Namespaces,
        *,
        max_body_bytes: int,
        default_timeout_ms: int,
    ) -> None:
        self._service = service
        self._imports = imports
        self._restoring = restoring
        self._redriving = redriving
        self._namespaces = namespaces
        self._max_body_bytes = max_body_bytes
        self._default_timeout_ms = default_timeout_ms
        self._batches = BatchCreation(service, namespaces)

    async def create(self, scope: Scope, receive: Receive) -> Answer:
        return await self._create(scope, receive, OnExisting.KEEP)

    async def upsert(self, scope: Scope, receive: Receive) -> Answer:
        return await self._create(scope, receive, OnExisting.REPLACE)

    async def get(self, scope: Scope, receive: Receive) -> Answer:
        with_secrets = asks_for_secrets(scope)
        timer = await self._service.get(key_in_path(scope))
        return self._answer(timer, with_secrets=with_secrets)

    async def get_selected(self, scope: Scope, receive: Receive) -> Answer:
        with_secrets = asks_for_secrets(scope)
        body = decode_selection(await self._body(scope, receive))
        timer = await self._service.get(key_of(scope, body))
        return self._answer(timer, with_secrets=with_secrets)

    async def update(self, scope: Scope, receive: Receive) -> Answer:
        body = decode_update(await self._body(scope, receive))
        caller_of(scope).note(given_members(body, *_SHOWN_CHANGES))
        return await self._change(scope, key_in_path(scope), body)

    async def update_selected(self, scope: Scope, receive: Receive) -> Answer:
        body = decode_selected_update(await self._body(scope, receive))
        caller_of(scope).note(given_members(body, *_SHOWN_CHANGES))
        return await self._change(scope, key_of(scope, body), body)

    async def cancel(self, scope: Scope, receive: Receive) -> Answer:
        return self._answer(await self._service.cancel(key_in_path(scope)))

    async def cancel_selected(self, scope: Scope, receive: Receive) -> Answer:
        body = decode_selection(await self._body(scope, receive))
        return self._answer(await self._service.cancel(key_of(scope, body)))

    async def delete(self, scope: Scope, receive: Receive) -> Answer:
        await self._service.remove(key_in_path(scope))
        return NO_CONTENT

    async def delete_selected(self, scope: Scope, receive: Receive) -> Answer:
        body = decode_selection(await self._body(scope, receive))
        await self._service.remove(key_of(scope, body))
        return NO_CONTENT

    async def page(self, scope: Scope, receive: Receive) -> Answer:
        timers, next_cursor, unreadable, with_secrets = await self._page(scope)
        answers = await self._service.turns.map(
            timer_answer, timers, repeat(self._default_timeout_ms), repeat(with_secrets)
        )
        return ok(TimerPage(answers, next_cursor, unreadable))

    async def page_full(self, scope: Scope, receive: Receive) -> Answer:
        timers, next_cursor, unreadable, with_secrets = await self._page(scope)
        fulls = await self._service.turns.map(full_timer, timers, repeat(with_secrets))
        return ok(FullTimerPage(fulls, next_cursor, unreadable))

    async def create_batch(self, scope: Scope, receive: Receive) -> Answer:
        turns = self._service.turns
        entries = await decode_batch(await self._body(scope, receive, BATCH_BODY_FACTOR), turns)
        caller = caller_of(scope)
        caller.note({"timers": len(entries)})
        outcomes = await self._batches.create(entries, caller.access)
        results = await turns.map(batch_result, entries, outcomes)
        caller.note(Counter(each.status for each in results))
        caller.namespace = _only_namespace(results)
        return ok(BatchAnswer(results))

    async def create_stream(self, scope: Scope, receive: Receive) -> Answer:
        namespace = parse_import(scope["query_string"])
        caller = caller_of(scope)
        if namespace is not None:
            await self._namespaces.named(caller.reach(namespace))
        imported = Import(
            BatchCreation(self._imports, self._namespaces),
            FullRestoration(self._restoring, self._namespaces, caller.access),
            caller,
            namespace,
            self._max_body_bytes,
            give_back=share_of(scope).give_back,
        )
        caller.has_begun = True
        try:
            return ok(await imported.run(_chunks(receive)))
        except ExceptionGroup as several:
            # Any one of the errors explains the failure.
            raise several.exceptions[0] from None
        finally:
            caller.note(_counts_of(imported.answer()))

    async def redrive(self, scope: Scope, receive: Receive) -> Answer:
        body = decode_redrive(await self._body(scope, receive))
        namespace = DEFAULT_NAMESPACE if body.namespace is UNSET else body.namespace
        target = None if body.timer_id is UNSET else body.timer_id
        caller = caller_of(scope)
        caller.note(given_members(body, "dueAfter", "dueBefore", "errorContains"))
        caller.reach(namespace, target)
        if body.timer_id is not UNSET:
            return await self._redrive_one(TimerKey(namespace, body.timer_id), body)
        matching = _filter_of(namespace, body)
        if body.dry_run:
            return ok(RedriveAnswer(await self._redriving.count(matching), 0))
        redriven = await self._redriving.redrive_all(matching)
        caller.note({"redriven": redriven})
        return ok(RedriveAnswer(redriven, redriven))

    async def _page(self, scope: Scope) -> tuple[list[Timer], str | None, int, bool]:
        """The timers of a page, the cursor of the next one, the number of timers that belong on the
        page but cannot be read, and whether the page shows secrets."""
        query, with_secrets = parse_listing(scope)
        # The timer after the page shows whether there is another page.
        entries = await self._service.scan_entries(replace(query, limit=query.limit + 1))
        listed = entries[: query.limit]
        timers = [entry for entry in listed if isinstance(entry, Timer)]
        cursor = None
        if len(entries) > len(listed):
            last = listed[-1]
            cursor = cursor_of(Position(last.execute_at, last.timer_uuid), query)
        return timers, cursor, len(listed) - len(timers), with_secrets

    async def _redrive_one(self, key: TimerKey, body: RedriveBody) -> Answer:
        filters = (body.due_after, body.due_before, body.error_contains)
        if body.all or any(each is not UNSET for each in filters):
            problem = "cannot be given together with due_after, due_before, error_contains or all"
            raise InvalidInput("timer_id", problem)
        if body.dry_run:
            await self._redriving.check(key)
            return ok(RedriveAnswer(1, 0))
        await self._redriving.redrive(key)
        return ok(RedriveAnswer(1, 1))

    async def _create(self, scope: Scope, receive: Receive, on_existing: OnExisting) -> Answer:
        body = decode_create(await self._body(scope, receive))
        # Members absent from the policy are the namespace's, which may be new to this node.
        caller = caller_of(scope)
        namespace = caller.reach(namespace_of(body.namespace, body.group_id), body.id)
        await self._namespaces.named(namespace)
        new = new_timer_of(body, self._policy_of, on_existing)
        result = await self._service.create(new, may_move_secrets=caller.access.is_admin)
        if result.existence is not Existence.CREATED:
            caller.note({result.existence.value: True})
            caller.replaced = result.existence is Existence.REPLACED
        return self._answer(result.timer, _CREATE_HEADERS[result.existence])

    async def _change(self, scope: Scope, key: TimerKey, body: ChangeMembers) -> Answer:
        check_something_changes(body)
        await self._namespaces.named(key.namespace)
        timer = await self._service.change_parts(
            key,
            partial(changed_callback, body),
            execute_at=changed_due_of(body.execute_at, body.execute_in),
            retry_policy=changed_policy(body, key.namespace, self._policy_of),
            may_move_secrets=caller_of(scope).access.is_admin,
        )
        return self._answer(timer)

    async def _body(self, scope: Scope, receive: Receive, factor: int = 1) -> bytes:
        return await read_body(scope, receive, factor * self._max_body_bytes)

    def _policy_of(self, namespace: str) -> RetryPolicy:
        return retry_policy_in(self._namespaces, namespace)

    def _answer(
        self, timer: Timer, headers: Headers = JSON_TYPE, *, with_secrets: bool = False
    ) -> Answer:
        return ok(timer_answer(timer, self._default_timeout_ms, with_secrets), headers)


def _only_namespace(results: Sequence[BatchResult]) -> str | None:
    first = results[0].namespace
    if first is UNSET or any(each.namespace != first for each in results):
        return None
    return first


def _counts_of(answer: ImportAnswer) -> dict[str, object]:
    """The counts of an import, as details in the audit log."""
    given = given_members(answer)
    del given["errors"]
    if answer.restored is not UNSET:
        given["restored"] = sum(astuple(answer.restored.timers))
    return given


def _filter_of(namespace: str, body: RedriveBody) -> RedriveFilter:
    filters = (body.due_after, body.due_before, body.error_contains)
    if not body.all and all(each is UNSET for each in filters):
        conditions = "one of due_after, due_before and error_contains"
        raise InvalidInput("body", f"must have a timer_id, {conditions}, or all: true")
    text = body.error_contains
    if text == "":
        raise InvalidInput("error_contains", "must not be empty: leave it out, or say all: true")
    return RedriveFilter(
        scan=ScanQuery(
            namespace=namespace,
            execute_from_inclusive=_instant_or_none("due_after", body.due_after),
            execute_until_exclusive=_instant_or_none("due_before", body.due_before),
        ),
        error_contains=None if text is UNSET else text,
    )


def _instant_or_none(field: str, text: str | UnsetType) -> Instant | None:
    return None if text is UNSET else parse_instant(field, text)


async def _chunks(receive: Receive) -> AsyncIterator[bytes]:
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        yield message.get("body", b"")
        more = message.get("more_body", False)
