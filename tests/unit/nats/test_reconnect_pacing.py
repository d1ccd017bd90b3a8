"""How soon a lost connection to NATS is made again."""

from duetime.nats.reconnect_pacing import ReconnectPacing


def test_a_long_connection_is_made_again_at_once() -> None:
    pacing = ReconnectPacing()

    pacing.note_end(connected_at=100.0, now=106.0)

    assert pacing.pause_seconds == 0


def test_pauses_grow_while_connections_are_short_and_end_with_one_that_lasts() -> None:
    pacing = ReconnectPacing()
    pauses = []

    for now in range(10):
        pacing.note_end(connected_at=now, now=now + 0.5)
        pauses.append(pacing.pause_seconds)

    assert pauses[:5] == [0.2, 0.4, 0.8, 1.6, 2.0]
    assert pauses[5:] == [2.0] * 5
    pacing.note_end(connected_at=20, now=30)
    assert pacing.pause_seconds == 0
    pacing.note_end(connected_at=30, now=31)
    assert pacing.pause_seconds == 0.2


def test_short_connections_are_logged_at_first_and_then_every_ten_seconds() -> None:
    pacing = ReconnectPacing()
    logged = []

    for second in range(25):
        pacing.note_end(connected_at=second - 0.5, now=second)
        if pacing.is_time_to_log(second):
            pacing.note_logged(second)
            logged.append(second)

    assert logged == [0, 10, 20]
    pacing.note_end(connected_at=20, now=26)
    assert pacing.is_time_to_log(26), "the end of a long connection is always logged"
