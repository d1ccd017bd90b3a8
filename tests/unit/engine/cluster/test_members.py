"""Members are judged dead when their beats stand still for long enough."""

from duetime.engine.cluster.members import MemberWatch
from duetime.ports.membership import Member, NodeFacts

DEAD_AFTER_SECONDS = 7.5
LONGEST_GAP_SECONDS = 4.0


class WatchBench:
    """A watch over nodes with the beats that a test gives."""

    def __init__(self) -> None:
        self.gone: set[str] = set()
        self._watch = MemberWatch(
            DEAD_AFTER_SECONDS, LONGEST_GAP_SECONDS, lambda member: member.node in self.gone
        )

    def look(self, now_seconds: float, **beats: int) -> list[str]:
        """The dead, when these are the beats."""
        members = [Member(node, beat, NodeFacts()) for node, beat in beats.items()]
        return [member.node for member in self._watch.look(members, now_seconds)]

    def look_every_second(self, since: int, until: int, **beats: int) -> list[str]:
        return [node for second in range(since, until) for node in self.look(second, **beats)]


def test_a_member_whose_beat_stands_still_is_dead_after_its_time() -> None:
    bench = WatchBench()
    assert bench.look_every_second(0, 8, still=5) == []
    assert bench.look(8, still=5) == ["still"]


def test_a_member_that_beats_lives() -> None:
    bench = WatchBench()
    for second in range(60):
        assert bench.look(second, lively=second // 5) == []


def test_time_counts_from_when_a_beat_was_first_seen() -> None:
    bench = WatchBench()
    bench.look_every_second(0, 5, still=5)
    assert bench.look_every_second(5, 13, still=6) == []
    assert bench.look(13, still=6) == ["still"]


def test_a_beat_that_starts_over_is_a_sign_of_life() -> None:
    bench = WatchBench()
    bench.look_every_second(0, 7, back=900)
    assert bench.look_every_second(7, 14, back=1) == []


def test_after_a_gap_in_which_it_could_not_look_everyone_has_a_new_chance() -> None:
    bench = WatchBench()
    bench.look_every_second(0, 7, still=5, other=5)
    assert bench.look(37, still=5, other=5) == []
    assert bench.look_every_second(38, 44, still=5, other=6) == []
    assert bench.look(45, still=5, other=7) == ["still"]


def test_a_short_gap_does_not_count() -> None:
    bench = WatchBench()
    bench.look(0, still=5)
    bench.look(4, still=5)
    assert bench.look(8, still=5) == ["still"]


def test_a_member_that_was_off_the_list_is_watched_anew() -> None:
    bench = WatchBench()
    bench.look_every_second(0, 7, back=5)
    bench.look(7)
    assert bench.look_every_second(8, 15, back=5) == []


def test_a_member_whose_process_is_known_to_be_gone_is_dead_at_once() -> None:
    bench = WatchBench()
    bench.gone.add("killed")
    assert bench.look(0, killed=5, other=5) == ["killed"]
