"""From the timer that a front door asks for to the checked request that the store creates."""

from collections.abc import Callable, Iterable
from hashlib import blake2b
from itertools import count

from msgspec import Raw, Struct
from msgspec.structs import replace

from duetime.domain.callback import Callback
from duetime.domain.errors import DuetimeError, InvalidInput, NamespaceDeleting, NamespaceNotFound
from duetime.domain.instants import Delay, Instant, plus_ms
from duetime.domain.keys import NamespaceKeys
from duetime.domain.namespace import DEFAULT_NAMESPACE, Namespace
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Timer
from duetime.ports.store import CreateRequest, OnExisting
from duetime.service.namespaces import Namespaces
from duetime.service.turns import Turns
from duetime.service.validation import (
    TimerChecks,
    TimerRules,
    check_key_text,
    check_storable_text,
)
from duetime.telemetry.current_work import kept_traceparent


class NewTimer(Struct, frozen=True, kw_only=True, gc=False):
    """A timer to create. Without an `id` it gets a new one.

    With an `idempotency_key` the id is derived from the key, so `id` must be absent; a second
    request with the same key and the same content is answered with the first one's timer.
    `payload` of the callback and `metadata` must be valid JSON in UTF-8.

    A delay counts from the moment the timer is created. A second request with the same id, or the
    same idempotency key, is compared by its delay and not by its instant.
    """

    execute_at: Instant | Delay
    callback: Callback
    namespace: str = DEFAULT_NAMESPACE
    id: str | None = None
    metadata: Raw | None = None
    retry_policy: RetryPolicy | None = None
    correlation_id: str | None = None
    command_order: int = 0
    idempotency_key: str | None = None
    on_existing: OnExisting = OnExisting.KEEP


def with_trace_context(callback: Callback) -> Callback:
    """The callback with the trace context of the current request, unless it has one already."""
    traceparent = kept_traceparent()
    if traceparent is None or callback.traceparent is not None:
        return callback
    return replace(callback, traceparent=traceparent)


def delay_fingerprint(delay: Delay) -> bytes:
    """Sixteen bytes by which a repeated create with this delay finds the first one again."""
    return blake2b(b"execute_in_ms=%d" % delay.ms, digest_size=16).digest()


class NamespaceRequests:
    """Makes the requests of one namespace, under the rules of one API.

    Everything that follows from the namespace alone is worked out once for all its timers, so
    this object is valid only as long as the known namespace is the same one.
    """

    def __init__(
        self,
        namespace: Namespace,
        checks: TimerChecks,
        rules: TimerRules,
        new_uuid: Callable[[], str],
    ) -> None:
        self.namespace = namespace
        self.name = namespace.name
        self._checks = checks
        self._new_uuid = new_uuid
        self._max_payload_bytes = checks.max_payload_bytes(namespace)
        self._default_policy = namespace.options.retry_policy if rules.default_retries else None
        self._keys = NamespaceKeys(namespace.name, namespace.num_shards)

    def request_for(
        self,
        new: NewTimer,
        now: Instant,
        timer_id: str | None = None,
        fingerprint: bytes | None = None,
    ) -> CreateRequest:
        """The request, checked except for its instant. A timer with a fingerprint never replaces
        another. Raises `InvalidInput`."""
        id_is_new = timer_id is None and new.id is None
        if timer_id is None:
            if new.id is None:
                timer_id = self._new_uuid()
            else:
                timer_id = new.id
                check_key_text("id", timer_id)
        self._checks.check_callback(new.callback, self._max_payload_bytes)
        retry_policy = new.retry_policy
        if retry_policy is None:
            retry_policy = self._default_policy
        else:
            self._checks.check_policy(retry_policy)
        if new.metadata is not None:
            self._checks.check_metadata(new.metadata)
        if new.correlation_id is not None:
            check_storable_text("correlation_id", new.correlation_id)
        on_existing = new.on_existing if fingerprint is None else OnExisting.KEEP
        execute_at = new.execute_at
        if isinstance(execute_at, Delay):
            if fingerprint is None and not id_is_new:
                fingerprint = delay_fingerprint(execute_at)
            execute_at = plus_ms(now, execute_at.ms)
        key, shard, timer_uuid = self._keys.place(timer_id)
        timer = Timer(
            key=key,
            shard=shard,
            timer_uuid=timer_uuid,
            delivery_id=self._new_uuid(),
            execute_at=execute_at,
            due_at=execute_at,
            callback=with_trace_context(new.callback),
            created_at=now,
            updated_at=now,
            retry_policy=retry_policy,
            metadata=new.metadata,
            correlation_id=new.correlation_id,
            command_order=new.command_order,
            fingerprint=fingerprint,
        )
        return CreateRequest(timer, on_existing, id_is_new)


class RequestBatch:
    """The timers of one batch, sorted by what happens to them next. The dictionaries are keyed by
    the index in the batch."""

    def __init__(self) -> None:
        self.requests: list[CreateRequest] = []
        self.refused: dict[int, DuetimeError] = {}
        self.mistimed: dict[int, tuple[CreateRequest, InvalidInput]] = {}
        """Requests with nothing wrong but the instant: they may be repeats."""

    @property
    def misses_namespaces(self) -> bool:
        return any(isinstance(error, NamespaceNotFound) for error in self.refused.values())


class CreateRequests:
    """Makes requests for any namespace, under the rules of one API."""

    def __init__(
        self,
        namespaces: Namespaces,
        checks: TimerChecks,
        rules: TimerRules,
        new_uuid: Callable[[], str],
    ) -> None:
        self._namespaces = namespaces
        self._checks = checks
        self._rules = rules
        self._new_uuid = new_uuid
        self._by_namespace: dict[str, NamespaceRequests] = {}

    def in_namespace(self, name: str) -> NamespaceRequests:
        """Raises `NamespaceNotFound` for a namespace that is not known on this node, or takes no
        more timers."""
        namespace = self._namespaces.known(name)
        if namespace is None:
            raise NamespaceNotFound(name)
        requests = self._by_namespace.get(name)
        if requests is None or requests.namespace is not namespace:
            if namespace.options.deleting:
                raise NamespaceDeleting(name)
            requests = NamespaceRequests(namespace, self._checks, self._rules, self._new_uuid)
            self._by_namespace[name] = requests
        return requests

    async def batch(
        self, news: Iterable[NewTimer | DuetimeError], now: Instant, turns: Turns
    ) -> RequestBatch:
        """Entries that are already errors are refused with that error."""
        batch = RequestBatch()
        requests: NamespaceRequests | None = None

        def add(index: int, new: NewTimer | DuetimeError) -> None:
            nonlocal requests
            if not isinstance(new, NewTimer):
                batch.refused[index] = new
                return
            try:
                if requests is None or requests.name != new.namespace:
                    requests = self.in_namespace(new.namespace)
                request = requests.request_for(new, now)
            except (InvalidInput, NamespaceNotFound) as error:
                batch.refused[index] = error
                return
            try:
                self._checks.check_instant(new.execute_at, now)
            except InvalidInput as error:
                batch.mistimed[index] = (request, error)
            else:
                batch.requests.append(request)

        await turns.map(add, count(), news)
        return batch
