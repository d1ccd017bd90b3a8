"""From what a front door asks for to what the store is asked to create."""

from collections.abc import Callable, Iterable

from duetime.domain.errors import DuetimeError, InvalidInput, NamespaceNotFound
from duetime.domain.instants import Instant
from duetime.domain.keys import NamespaceKeys
from duetime.domain.namespace import Namespace
from duetime.domain.timer import Timer
from duetime.ports.store import CreateRequest, OnExisting
from duetime.service.key_text import check_key_text, check_storable_text
from duetime.service.namespaces import Namespaces
from duetime.service.new_timer import NewTimer
from duetime.service.rules import TimerRules
from duetime.service.timer_checks import TimerChecks


class Admission:
    """Admits timers to one namespace, under the rules of one front door.

    What follows from the namespace alone is worked out once for all its timers, so an admission
    holds only for as long as its `namespace` is the one that is known.
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

    def request_of(
        self,
        new: NewTimer,
        now: Instant,
        timer_id: str | None = None,
        fingerprint: bytes | None = None,
    ) -> CreateRequest:
        """The request, checked but for its instant. A timer with a fingerprint never replaces
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
        key, shard, timer_uuid = self._keys.place(timer_id)
        timer = Timer(
            key=key,
            shard=shard,
            timer_uuid=timer_uuid,
            delivery_id=self._new_uuid(),
            execute_at=new.execute_at,
            due_at=new.execute_at,
            callback=new.callback,
            created_at=now,
            updated_at=now,
            retry_policy=retry_policy,
            metadata=new.metadata,
            correlation_id=new.correlation_id,
            command_order=new.command_order,
            fingerprint=fingerprint,
        )
        on_existing = new.on_existing if fingerprint is None else OnExisting.KEEP
        return CreateRequest(timer, on_existing, id_is_new)


class AdmittedBatch:
    """Timers that came together, sorted by what is to be done with them. All but those to be
    created have their places in the batch with them."""

    def __init__(self) -> None:
        self.requests: list[CreateRequest] = []
        self.refused: dict[int, DuetimeError] = {}
        self.mistimed: dict[int, tuple[CreateRequest, InvalidInput]] = {}
        """Only their instants are wrong, so they may be repeats."""

    @property
    def misses_namespaces(self) -> bool:
        return any(isinstance(error, NamespaceNotFound) for error in self.refused.values())


class Admissions:
    """The admission to each namespace, made when its first timer comes."""

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
        self._by_name: dict[str, Admission] = {}

    def to(self, name: str) -> Admission:
        """Raises `NamespaceNotFound` for a namespace that is not known here."""
        namespace = self._namespaces.known(name)
        if namespace is None:
            raise NamespaceNotFound(name)
        admission = self._by_name.get(name)
        if admission is None or admission.namespace is not namespace:
            admission = Admission(namespace, self._checks, self._rules, self._new_uuid)
            self._by_name[name] = admission
        return admission

    def admit_all(self, news: Iterable[NewTimer | DuetimeError], now: Instant) -> AdmittedBatch:
        """What is an error already is refused with it."""
        batch = AdmittedBatch()
        admission: Admission | None = None
        for place, new in enumerate(news):
            if not isinstance(new, NewTimer):
                batch.refused[place] = new
                continue
            try:
                if admission is None or admission.name != new.namespace:
                    admission = self.to(new.namespace)
                request = admission.request_of(new, now)
            except (InvalidInput, NamespaceNotFound) as error:
                batch.refused[place] = error
                continue
            try:
                self._checks.check_instant(new.execute_at, now)
            except InvalidInput as error:
                batch.mistimed[place] = (request, error)
            else:
                batch.requests.append(request)
        return batch
