"""Lanes and the slots they share, without an engine around them."""

from msgspec import UNSET, Raw

from duetime.domain.callback import HttpCallback
from duetime.domain.keys import Epoch
from duetime.domain.outcome import Completed, Failed
from duetime.domain.timer import Claim
from duetime.domain.transitions import claim_of, claimed
from duetime.engine.lanes.breaker import Breaker
from duetime.engine.lanes.lane import Lane
from duetime.engine.lanes.quota import Quotas
from duetime.engine.lanes.slots import Slots
from duetime.engine.wait_log import Waited
from duetime.pauses import Pauses
from duetime.ports.namespaces.view import NoNamespaces
from duetime.testing import VirtualClock, make_timer
from duetime.testing.virtual_clock import START_AT

DONE = Completed(sent_at=START_AT, answered_at=START_AT)
FAILED = Failed(sent_at=START_AT, answered_at=START_AT, error="HTTP 503")


class LaneBench:
    """Lanes that note which claims they start."""

    def __init__(self, total: int = 4_096, per_endpoint: int = 1_024) -> None:
        self.slots = Slots(total, per_endpoint)
        self.pauses = Pauses()
        self.started: list[str] = []
        self._quotas = Quotas(NoNamespaces())
        self._claims = 0

    def lane(self, now_seconds: float = 0.0) -> Lane:
        breaker = Breaker("https://one.example", VirtualClock(), self.pauses)
        return Lane(
            self.slots,
            self._quotas,
            breaker,
            self.pauses,
            self._note,
            lambda lane, now: None,
            lambda now: None,
            now_seconds,
        )

    def claim(self, payload_bytes: int = 0, namespace: str = "default") -> Claim:
        self._claims += 1
        payload = Raw(b'"%b"' % (b"x" * (payload_bytes - 2))) if payload_bytes else UNSET
        callback = HttpCallback(url="http://127.0.0.1:9/", payload=payload)
        timer = make_timer(f"timer-{self._claims}", namespace=namespace, callback=callback)
        return claim_of(claimed(timer, epoch=Epoch(1), now=START_AT))

    def fill(self, lane: Lane, count: int, now_seconds: float = 0.0) -> int:
        """Offer `count` claims; returns the number of accepted ones."""
        return sum(lane.accept(self.claim(), now_seconds) for _ in range(count))

    def time_out(self, lane: Lane, now_seconds: float) -> None:
        """An attempt of thirty seconds failed, in which the process ran."""
        self.pauses.begin(now_seconds)
        lane.answered(self.claim(), FAILED, now_seconds - 30, now_seconds)

    def _note(self, lane: Lane, claim: Claim, waited: Waited | None) -> None:
        self.started.append(claim.id)


def look_until(lane: Lane, seconds: float, since: float = 0.0) -> list[Claim]:
    """Look after the lane every 25 ms; returns the claims it handed back."""
    handed_back: list[Claim] = []
    for step in range(1, round(seconds / 0.025) + 1):
        handed_back += lane.look_after(since + step * 0.025)
    return handed_back
