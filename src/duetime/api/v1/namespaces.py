"""The handlers of the v1 API for namespaces."""

from typing import TypeVar

from msgspec import UNSET, UnsetType
from msgspec.structs import replace
from starlette.types import Receive, Scope

from duetime.api.http.answers import Answer
from duetime.api.http.auditing import given_members
from duetime.api.http.body import read_body
from duetime.api.http.caller import caller_of
from duetime.api.http.decoding import BodyDecoder
from duetime.api.http.operation import choice_parameter
from duetime.api.http.query import choice, parameters
from duetime.api.http.values import STATUSES, retry_policy_of
from duetime.api.v1.answer_types import (
    CountsAnswer,
    NamespaceAnswer,
    NamespaceListAnswer,
    SloStatusAnswer,
)
from duetime.api.v1.answers import ok, retry_policy_answer
from duetime.api.v1.bulk_operations import accepted
from duetime.api.v1.request_types import NamespaceBody
from duetime.api.v1.requests import path_text
from duetime.domain.errors import (
    Forbidden,
    InvalidInput,
    NamespaceNotFound,
    NoSuchNamespace,
)
from duetime.domain.instants import format_duration
from duetime.domain.lateness.objective import ErrorBudget, LatenessObjective, parse_objective
from duetime.domain.namespace import Namespace, NamespaceOptions, parse_retention_seconds
from duetime.domain.retry import RetryPolicy
from duetime.service.bulk.operations import BulkOperations
from duetime.service.namespaces import Namespaces
from duetime.service.reporting.objectives import Objectives
from duetime.service.timer_service import TimerService

ValueT = TypeVar("ValueT")

FORCE = choice_parameter(
    "force", "Forget pending timers too; they never fire.", ("true", "false"), "false"
)

_decode = BodyDecoder(NamespaceBody, {}).decode


class NamespacesV1:
    """Each method answers a request or raises.

    Answers come from the store, so they include what other nodes changed a moment ago.
    """

    def __init__(
        self,
        namespaces: Namespaces,
        service: TimerService,
        operations: BulkOperations,
        objectives: Objectives,
        *,
        max_body_bytes: int,
    ) -> None:
        self._namespaces = namespaces
        self._service = service
        self._operations = operations
        self._objectives = objectives
        self._max_body_bytes = max_body_bytes

    async def page(self, scope: Scope, receive: Receive) -> Answer:
        await self._namespaces.refresh()
        access = caller_of(scope).access
        visible = [each for each in self._namespaces if access.sees(each.name)]
        in_order = sorted(visible, key=lambda each: each.name)
        return ok(NamespaceListAnswer([self._described(each) for each in in_order]))

    async def get(self, scope: Scope, receive: Receive) -> Answer:
        return await self._answer(await self._existing(scope))

    async def put(self, scope: Scope, receive: Receive) -> Answer:
        name = path_text(scope, "name", "namespace")
        try:
            caller_of(scope).reach(name)
        except NamespaceNotFound:
            raise Forbidden(f"this key is not for the namespace '{name}'") from None
        body = _decode(await read_body(scope, receive, self._max_body_bytes))
        caller_of(scope).note(given_members(body, "retention"))
        num_shards = None if body.num_shards is UNSET else body.num_shards
        stored = await self._namespaces.put(
            name,
            num_shards,
            lambda options: changed_options(body, options),
            caller_of(scope).access,
        )
        return await self._answer(stored)

    async def delete(self, scope: Scope, receive: Receive) -> Answer:
        given = parameters(scope["query_string"], frozenset({FORCE.name}))
        force = choice(FORCE.name, given.get(FORCE.name, "false"), {"true": True, "false": False})
        namespace = await self._existing(scope)
        caller = caller_of(scope)
        caller.note({"force": force or None})
        operation = await self._operations.delete_namespace(
            namespace.name, force=force, started_by=caller.access.name
        )
        caller.note({"operation": operation.id})
        return accepted(operation)

    async def _existing(self, scope: Scope) -> Namespace:
        name = path_text(scope, "name", "namespace")
        try:
            caller_of(scope).reach(name)
        except NamespaceNotFound:
            raise NoSuchNamespace(name) from None
        namespace = await self._namespaces.current(name)
        if namespace is None:
            raise NoSuchNamespace(name)
        return namespace

    async def _answer(self, namespace: Namespace) -> Answer:
        counts = await self._service.counts(namespace.name)
        by_label = {label: counts.get(status, 0) for label, status in STATUSES.items()}
        return ok(replace(self._described(namespace), counts=CountsAnswer(**by_label)))

    def _described(self, namespace: Namespace) -> NamespaceAnswer:
        return namespace_answer(namespace, self._objectives.budget_of(namespace))


def changed_options(body: NamespaceBody, options: NamespaceOptions) -> NamespaceOptions:
    """The options with the changes. The service checks their ranges."""
    policy = body.retry_policy
    if policy is None:
        options = replace(options, retry_policy=RetryPolicy())
    elif policy is not UNSET:
        options = replace(options, retry_policy=retry_policy_of(policy, options.retry_policy))
    if body.retention is not UNSET:
        options = replace(options, retention_seconds=_retention_seconds(body.retention))
    return replace(
        options,
        concurrency=_changed(options.concurrency, body.concurrency),
        max_payload_bytes=_changed(options.max_payload_bytes, body.max_payload_bytes),
        max_pending=_changed(options.max_pending, body.max_pending),
        callback_networks=_changed(options.callback_networks, body.callback_networks),
        slo=options.slo if body.slo is UNSET else _slo(body.slo),
    )


def namespace_answer(namespace: Namespace, budget: ErrorBudget | None = None) -> NamespaceAnswer:
    options = namespace.options
    policy = retry_policy_answer(options.retry_policy)
    assert policy is not None
    seconds = options.retention_seconds
    return NamespaceAnswer(
        name=namespace.name,
        num_shards=namespace.num_shards,
        retry_policy=policy,
        retention=None if seconds is None else format_duration(seconds * 1_000),
        concurrency=options.concurrency,
        max_payload_bytes=options.max_payload_bytes,
        max_pending=options.max_pending,
        callback_networks=options.callback_networks,
        slo=None if options.slo is None else options.slo.text,
        slo_status=slo_status_answer(budget),
        deleting=options.deleting,
    )


def slo_status_answer(budget: ErrorBudget | None) -> SloStatusAnswer | None:
    if budget is None:
        return None
    return SloStatusAnswer(
        attempts=budget.attempts, late=budget.late, error_budget_left=round(budget.left, 6)
    )


def _slo(text: str | None) -> LatenessObjective | None:
    if text is None:
        return None
    try:
        return parse_objective(text)
    except ValueError as error:
        raise InvalidInput("slo", str(error)) from None


def _retention_seconds(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_retention_seconds(text)
    except ValueError as error:
        raise InvalidInput("retention", str(error)) from None


def _changed(before: ValueT | None, given: ValueT | UnsetType | None) -> ValueT | None:
    return before if given is UNSET else given
