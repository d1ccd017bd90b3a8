"""Restores the timers and namespaces of full lines."""

from collections.abc import Sequence

from duetime.api.http.decoding import InvalidRequest
from duetime.api.v1.errors import in_camel_case
from duetime.api.v1.full.reading import namespace_of, timer_of
from duetime.api.v1.full.types import FullNamespace, FullTimer
from duetime.domain.errors import DuetimeError, Forbidden, InvalidInput, NamespaceNotFound
from duetime.domain.keys import NamespaceKeys
from duetime.domain.namespace import Namespace
from duetime.domain.security.access import Access, Role
from duetime.domain.timer import Timer
from duetime.ports.store import CreateResult, Existence
from duetime.service.namespaces import Namespaces
from duetime.service.restoring import Restoring


class FullRestoration:
    """Each line is restored or refused by itself."""

    def __init__(self, restoring: Restoring, namespaces: Namespaces, access: Access) -> None:
        self._access = access
        self._restoring = restoring
        self._namespaces = namespaces

    async def restore_timers(self, fulls: Sequence[FullTimer]) -> list[CreateResult | DuetimeError]:
        """One outcome for each timer, in order. Raises `StoreUnavailable`."""
        names = {full.namespace for full in fulls}
        await self._namespaces.look_up(filter(self._access.sees, names))
        keys: dict[str, NamespaceKeys] = {}

        def timer_or_error(full: FullTimer) -> Timer | DuetimeError:
            namespace = self._namespaces.known(full.namespace)
            if namespace is None or not self._access.sees(full.namespace):
                return NamespaceNotFound(full.namespace)
            if namespace.name not in keys:
                keys[namespace.name] = NamespaceKeys(namespace.name, namespace.num_shards)
            try:
                return timer_of(full, keys[namespace.name])
            except InvalidInput as error:
                return error

        timers = await self._restoring.turns.map(timer_or_error, fulls)
        outcomes = await self._restoring.restore(timers, may_move_secrets=self._access.is_admin)
        return [_in_timer(each) if type(each) is InvalidInput else each for each in outcomes]

    async def restore_namespaces(
        self, fulls: Sequence[FullNamespace]
    ) -> list[Existence | DuetimeError]:
        """For each line whether its namespace was there before, or the reason why the line was
        refused. Raises `StoreUnavailable`."""
        wanted = list(map(self._namespace_or_error, fulls))
        valid = [each for each in wanted if isinstance(each, Namespace)]
        stored = iter(await self._namespaces.restore(valid, self._access))
        return [next(stored) if isinstance(each, Namespace) else each for each in wanted]

    def _namespace_or_error(self, full: FullNamespace) -> Namespace | DuetimeError:
        try:
            namespace = namespace_of(full)
        except InvalidInput as error:
            return error
        if not self._access.is_admin:
            return Forbidden(f"this key lacks the role {Role.ADMIN.value!r}")
        if not self._access.sees(namespace.name):
            return Forbidden(f"this key is not for the namespace '{namespace.name}'")
        return namespace


def _in_timer(error: InvalidInput) -> InvalidRequest:
    """The service's error, with the member's place in the line."""
    return InvalidRequest(f"timer.{in_camel_case(error.field)}", in_camel_case(error.problem))
