"""How eagerly a connection to NATS is made again."""

from duetime.nats.reconnect_pacing import Steadiness


def test_a_connection_that_lasted_is_made_again_at_once() -> None:
    steadiness = Steadiness()

    steadiness.note_end(made_at=100.0, now=106.0)

    assert steadiness.pause_seconds == 0


def test_pauses_grow_while_connections_are_short_and_end_with_one_that_lasts() -> None:
    steadiness = Steadiness()
    pauses = []

    for now in range(10):
        steadiness.note_end(made_at=now, now=now + 0.5)
        pauses.append(steadiness.pause_seconds)

    assert pauses[:5] == [0.2, 0.4, 0.8, 1.6, 2.0]
    assert pauses[5:] == [2.0] * 5
    steadiness.note_end(made_at=20, now=30)
    assert steadiness.pause_seconds == 0
    steadiness.note_end(made_at=30, now=31)
    assert steadiness.pause_seconds == 0.2


def test_short_connections_are_told_at_first_and_then_every_ten_seconds() -> None:
    steadiness = Steadiness()
    told = []

    for second in range(25):
        steadiness.note_end(made_at=second - 0.5, now=second)
        if steadiness.is_time_to_tell(second):
            steadiness.note_told(second)
            told.append(second)

    assert told == [0, 10, 20]
    steadiness.note_end(made_at=20, now=26)
    assert steadiness.is_time_to_tell(26), "one that lasted is always news"
