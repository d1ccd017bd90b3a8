"""The one place where requests get into the audit log."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes

from msgspec import UNSET, Struct
from starlette.types import Scope

from duetime.api.http.body import ClientGone
from duetime.api.http.caller import Caller, caller_if_known, caller_of
from duetime.api.http.operation import Route
from duetime.domain.errors import DuetimeError, ErrorKind, TooManyRequests, Unavailable
from duetime.domain.keys import TimerKey
from duetime.domain.security.audit import MAX_TEXT_CHARACTERS, AuditEntry
from duetime.ports.clock import Clock
from duetime.service.security.audit_log import AuditLog, Sampling
from duetime.service.timer_service import new_uuid7

CREATE_TIMER = "timer.create"
"""The action whose rate is so high that only a sample of it is recorded, or nothing."""

REPLACE_TIMER = "timer.replace"
"""The action of a create that replaced a timer. It is always recorded."""

OK = "ok"
CLIENT_GONE = "CLIENT_GONE"
UNFINISHED = "UNFINISHED"

_DETAILS_CHARACTERS = 512
"""Length at which the details of a request are cut."""

_NAMESPACES_IN_PATHS = ("namespace", "name")
_KEYS = frozenset({"namespace", "groupId", "timerId"})

# The answer of the store may be lost, and a timer may turn out to be unreadable after its change.
_MAY_BE_DONE = frozenset({ErrorKind.UNAVAILABLE, ErrorKind.UNREADABLE})

CodeOf = Callable[[Exception], str]
A = TypeVar("A")


class Auditing:
    """Records the outcome of audited operations: the entry is durable before the answer is sent,
    as far as the store allows it (`AuditLog`).

    A request without a valid key is not recorded, and neither is one over a rate limit: anybody
    could fill the log. `code_of` is the code of an error. Without `creates` none is recorded.
    """

    def __init__(
        self, log: AuditLog, creates: Sampling | None, clock: Clock, code_of: CodeOf
    ) -> None:
        self.creates = creates
        self._log = log
        self._clock = clock
        self._code_of = code_of

    def covers(self, operation: Route, scope: Scope) -> bool:
        """Whether this request for the operation is to be recorded, or may have to be: a read with
        parameters may turn out to ask for secrets."""
        if operation.audit == CREATE_TIMER:
            return operation.replaces or self._picks_create()
        return operation.audit is not None or bool(scope["query_string"])

    async def recorded(self, operation: Route, scope: Scope, handling: Coroutine[Any, Any, A]) -> A:
        """The answer of the handling, which is recorded. Raises what the handling raises."""
        if operation.replaces and not self._picks_create():
            answer = await handling
            if caller_of(scope).replaced:
                await self._log.append(self._entries(operation, scope, OK))
            return answer
        try:
            answer = await handling
        except asyncio.CancelledError:
            # The server ends without waiting any longer. Some of the work may be done.
            self._log.submit(self._entries(operation, scope, UNFINISHED))
            raise
        except TooManyRequests:
            raise
        except Exception as error:
            code = CLIENT_GONE if isinstance(error, ClientGone) else self._code_of(error)
            entries = self._entries(operation, scope, code)
            if isinstance(error, Unavailable):
                self._log.append_later(entries)
            elif _changed_nothing(error, scope):
                await self._log.append_refused(entries)
            else:
                await self._log.append(entries)
            raise
        await self._log.append(self._entries(operation, scope, OK))
        return answer

    async def record_each(
        self, caller: Caller, outcomes: Iterable[tuple[str, TimerKey, DuetimeError | None]]
    ) -> None:
        """Record actions on single timers that one request asked for, besides the request itself:
        the word for each, the timer, and the reason why nothing was done to it."""
        await self._log.append(
            [
                self._entry(
                    caller,
                    action,
                    key.namespace,
                    key.id,
                    OK if error is None else self._code_of(error),
                )
                for action, key, error in outcomes
            ]
        )

    def _picks_create(self) -> bool:
        return self.creates is not None and self.creates.picks()

    def _entries(self, operation: Route, scope: Scope, result: str) -> list[AuditEntry]:
        """The entry, or nothing if the caller is not known or has only read what is no secret."""
        caller = caller_if_known(scope)
        if caller is None:
            return []
        action = REPLACE_TIMER if caller.replaced else operation.audit or caller.action
        if action is None:
            return []
        namespace, target = _reached(caller, scope.get("path_params", {}))
        return [self._entry(caller, action, namespace, target, result)]

    def _entry(
        self, caller: Caller, action: str, namespace: str | None, target: str | None, result: str
    ) -> AuditEntry:
        return AuditEntry(
            id=new_uuid7(),
            at=self._clock.now(),
            actor=caller.access.name,
            key_id=caller.access.key_id,
            address=caller.address,
            action=action,
            namespace=_cut(namespace),
            target=_cut(target),
            result=result,
            details=_cut(caller.details, _DETAILS_CHARACTERS),
        )


def _changed_nothing(error: Exception, scope: Scope) -> bool:
    """Whether the request was refused, or went away, before anything was done."""
    caller = caller_if_known(scope)
    if caller is None or caller.has_begun:
        return False
    if isinstance(error, DuetimeError):
        return error.kind not in _MAY_BE_DONE
    return isinstance(error, ClientGone)


def given_members(body: Struct, *shown: str) -> dict[str, object]:
    """The members of a body that were given, as details of an entry. Numbers have their values,
    and so do the members to be shown; others may hold secrets."""
    given: dict[str, object] = {}
    names = zip(body.__struct_fields__, body.__struct_encode_fields__, strict=True)
    for field, name in names:
        value = getattr(body, field)
        if value is UNSET or value is False or name in _KEYS:
            continue
        is_shown = value is None or isinstance(value, int | float) or name in shown
        given[name] = ("null" if value is None else value) if is_shown else True
    return given


def _reached(caller: Caller, in_path: Mapping[str, bytes | str]) -> tuple[str | None, str | None]:
    """The namespace and the target. A request that was refused before it could name them gets
    those of its path, and else the only namespace of its key."""
    namespace, target = caller.namespace, caller.target
    if namespace is None and target is None:
        for name, value in in_path.items():
            if name in _NAMESPACES_IN_PATHS:
                namespace = _text(value)
            else:
                target = _text(value)
    if namespace is None and caller.access.namespaces and len(caller.access.namespaces) == 1:
        namespace = caller.access.home
    return namespace, target


def _text(value: bytes | str) -> str:
    """A part of a path. Starlette has decoded its own already."""
    return unquote_to_bytes(value).decode(errors="replace") if isinstance(value, bytes) else value


def _cut(text: str | None, most: int = MAX_TEXT_CHARACTERS) -> str | None:
    """A text from outside may be as long as a body, and the entry may have to wait in memory."""
    if text is None or len(text) <= most:
        return text
    return text[: most - 1] + "…"
