"""The memory for bodies: its reserve, its shares, and the log of refusals."""

from structlog.testing import capture_logs

from duetime.api.http.body_budget import BodyBudget, BodyShare
from duetime.domain.limits import SMALL_BODY_BYTES

LIMIT_BYTES = 80 * SMALL_BODY_BYTES


def test_large_bodies_leave_the_reserve_to_small_ones() -> None:
    budget = BodyBudget(LIMIT_BYTES)
    large = BodyShare(budget)
    assert large.take(70 * SMALL_BODY_BYTES)
    assert not large.take(1)
    assert not BodyShare(budget).take(SMALL_BODY_BYTES + 1)
    small = [BodyShare(budget) for _ in range(11)]
    assert [share.take(SMALL_BODY_BYTES) for share in small] == [True] * 10 + [False]
    assert not small[0].take(1), "it is no longer small"
    assert budget.used_bytes == LIMIT_BYTES


def test_a_share_comes_back_once() -> None:
    budget = BodyBudget(LIMIT_BYTES)
    share = BodyShare(budget)
    assert share.take(100)
    share.give_back(30)
    assert budget.used_bytes == 70
    share.give_back(100)
    share.close()
    share.close()
    assert budget.used_bytes == 0


def test_a_shortage_is_logged_once() -> None:
    budget = BodyBudget(LIMIT_BYTES)
    with capture_logs() as logs:
        for _ in range(2):
            share = BodyShare(budget)
            assert share.take(70 * SMALL_BODY_BYTES)
            assert not share.take(1)
            assert not share.take(1)
            share.close()
    assert [entry["event"] for entry in logs] == ["api.bodies_refused"] * 2


def test_no_peer_gets_all() -> None:
    budget = BodyBudget(LIMIT_BYTES)
    peer, other = budget.of_peer("a"), budget.of_peer("b")
    assert budget.of_peer("a") is peer
    assert BodyShare(peer).take(70 * SMALL_BODY_BYTES)
    small = [BodyShare(peer) for _ in range(6)]
    assert [share.take(SMALL_BODY_BYTES) for share in small] == [True] * 5 + [False]
    assert peer.is_short
    of_other = [BodyShare(other) for _ in range(6)]
    assert [share.take(SMALL_BODY_BYTES) for share in of_other] == [True] * 5 + [False]
    small[0].close()
    assert small[5].take(SMALL_BODY_BYTES)
    assert budget.used_bytes == LIMIT_BYTES
