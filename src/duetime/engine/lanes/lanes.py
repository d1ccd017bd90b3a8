"""The lanes of all endpoints that something is sent to or waits for."""

from collections.abc import Callable, Collection, Iterator

from duetime.domain.keys import ShardNumber
from duetime.domain.timer import Claim
from duetime.engine.lanes.breaker import PROBES, Breaker, IdleBreakers
from duetime.engine.lanes.lane import Lane
from duetime.engine.lanes.quota import Quotas
from duetime.engine.lanes.slots import Slots
from duetime.ports.clock import Clock
from duetime.ports.endpoints import EndpointState, EndpointStatus


class Lanes:
    """A lane is forgotten when it is idle; what is known of a failing endpoint is kept longer."""

    def __init__(
        self, slots: Slots, quotas: Quotas, clock: Clock, start: Callable[[Lane, Claim], None]
    ) -> None:
        self._slots = slots
        self._quotas = quotas
        self._start = start
        self._lanes: dict[str, Lane] = {}
        self._idle = IdleBreakers(clock)

    def of(self, endpoint: str, now_seconds: float) -> Lane:
        lane = self._lanes.get(endpoint)
        if lane is None:
            breaker = self._idle.take(endpoint)
            lane = Lane(self._slots, self._quotas, breaker, self._start, now_seconds)
            self._lanes[endpoint] = lane
        return lane

    def forget(self, lane: Lane, now_seconds: float) -> bool:
        """False when there is a reason to keep it for a while."""
        if not lane.is_over(now_seconds):
            return False
        if self._lanes.pop(lane.breaker.endpoint, None) is not None:
            self._idle.put(lane.breaker, now_seconds)
        return True

    def waiting_claims(self) -> Iterator[Claim]:
        for lane in self._lanes.values():
            yield from lane.waiting_claims()

    def take_waiting(self, shards: Collection[ShardNumber] | None = None) -> list[Claim]:
        """Take out what waits: all of it, or that of some shards."""
        return [claim for lane in self._lanes.values() for claim in lane.take_waiting(shards)]

    def look_after(self, now_seconds: float) -> list[tuple[Lane, list[Claim]]]:
        """Answers the claims to hand back, lane by lane."""
        self._quotas.resume(now_seconds)
        handed_back = [(lane, lane.look_after(now_seconds)) for lane in self._lanes.values()]
        for lane, claims in handed_back:
            if lane.is_idle and not claims:
                self.forget(lane, now_seconds)
        return handed_back

    @property
    def need_care(self) -> bool:
        return any(lane.needs_care for lane in self._lanes.values())

    def open_endpoints(self, now_seconds: float) -> int:
        in_use = sum(lane.breaker.is_open for lane in self._lanes.values())
        return in_use + sum(breaker.is_open for breaker in self._idle.remembered(now_seconds))

    def statuses(self, now_seconds: float) -> list[EndpointStatus]:
        """Of all that are in use, open, or failed lately; the open ones first, by their names."""
        statuses = [
            _status(lane.breaker, lane.in_flight, lane.waiting) for lane in self._lanes.values()
        ]
        statuses += [_status(breaker, 0, 0) for breaker in self._idle.remembered(now_seconds)]
        statuses.sort(key=lambda status: (status.state is EndpointState.CLOSED, status.endpoint))
        return statuses


def _status(breaker: Breaker, in_flight: int, waiting: int) -> EndpointStatus:
    if not breaker.is_open:
        state = EndpointState.CLOSED
    elif 0 < in_flight <= PROBES:
        state = EndpointState.HALF_OPEN
    else:
        state = EndpointState.OPEN
    return EndpointStatus(
        endpoint=breaker.endpoint,
        state=state,
        in_flight=in_flight,
        waiting=waiting,
        consecutive_failures=breaker.failures,
        last_error=breaker.last_error,
        opened_at=breaker.opened_at,
    )
