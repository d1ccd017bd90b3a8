"""The handlers of the platform API."""

import re

from msgspec import UNSET
from starlette.types import Receive, Scope

from duetime.api.http.answers import Answer
from duetime.api.http.auditing import given_members
from duetime.api.http.body import read_body
from duetime.api.http.caller import caller_of
from duetime.api.http.secrets_parameter import asks_for_secrets
from duetime.api.http.values import changed_due_of, metadata_of, retry_policy_of
from duetime.api.platform.answers import changed_timer_of, detail_of, listed_timer_of, summary_of
from duetime.api.platform.envelope import Code, answer
from duetime.api.platform.query import parse_query
from duetime.api.platform.requests import callback_of, decode_create, decode_update, new_timer_of
from duetime.api.platform.types import CanceledTimer, TimerList, UpdateTimerBody
from duetime.domain.errors import InvalidInput
from duetime.domain.keys import TimerKey
from duetime.ports.store import CreateResult, Existence
from duetime.service.timer_service import TimerService

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_NOTHING = UpdateTimerBody()


def created_answer(result: CreateResult) -> Answer:
    timer = summary_of(result.timer)
    if result.existence is Existence.EXISTING:
        return answer(200, Code.SUCCESS, "timer already exists", timer)
    return answer(201, Code.SUCCESS, "timer created successfully", timer)


class PlatformTimers:
    """Each method answers a request or raises."""

    def __init__(self, service: TimerService, max_body_bytes: int) -> None:
        self._service = service
        self._max_body_bytes = max_body_bytes

    async def create(self, scope: Scope, receive: Receive) -> Answer:
        body = await read_body(scope, receive, self._max_body_bytes)
        new = new_timer_of(decode_create(body), _namespace_of(scope))
        created = await self._service.create(new)
        caller_of(scope).target = created.timer.key.id
        return created_answer(created)

    async def get(self, scope: Scope, receive: Receive) -> Answer:
        with_secrets = asks_for_secrets(scope)
        timer = await self._service.get(_key_of(scope))
        return answer(200, Code.SUCCESS, "success", detail_of(timer, with_secrets=with_secrets))

    async def page(self, scope: Scope, receive: Receive) -> Answer:
        query, with_secrets = parse_query(scope, _namespace_of(scope))
        page = await self._service.page(query)
        timers = [listed_timer_of(timer, with_secrets=with_secrets) for timer in page.timers]
        data = TimerList(
            timers,
            page.total,
            query.limit,
            query.offset,
            total_is_estimated=page.total_is_estimated or UNSET,
        )
        return answer(200, Code.SUCCESS, "success", data)

    async def update(self, scope: Scope, receive: Receive) -> Answer:
        key = _key_of(scope)
        body = decode_update(await read_body(scope, receive, self._max_body_bytes))
        caller_of(scope).note(given_members(body, "execute_at", "execute_in"))
        if body == _NOTHING:
            raise InvalidInput(
                "body",
                "has nothing to update: give execute_at, execute_in, callback, metadata or "
                "retry_policy",
            )
        policy = body.retry_policy
        timer = await self._service.change(
            key,
            execute_at=changed_due_of(body.execute_at, body.execute_in),
            callback=UNSET if body.callback is UNSET else callback_of(body.callback),
            metadata=UNSET if body.metadata is UNSET else metadata_of(body.metadata),
            retry_policy=(policy if policy is UNSET or policy is None else retry_policy_of(policy)),
            may_move_secrets=caller_of(scope).access.is_admin,
        )
        return answer(200, Code.SUCCESS, "timer updated successfully", changed_timer_of(timer))

    async def cancel(self, scope: Scope, receive: Receive) -> Answer:
        timer = await self._service.cancel(_key_of(scope))
        data = CanceledTimer(timer.key.id, timer.status.label)
        return answer(200, Code.SUCCESS, "timer canceled successfully", data)


def _key_of(scope: Scope) -> TimerKey:
    timer_id: str = scope["path_params"]["id"].lower()
    if not _UUID.fullmatch(timer_id):
        raise InvalidInput("id", "must be a UUID")
    caller = caller_of(scope)
    return caller.reach_timer(TimerKey(caller.access.home, timer_id))


def _namespace_of(scope: Scope) -> str:
    caller = caller_of(scope)
    return caller.reach(caller.access.home)
