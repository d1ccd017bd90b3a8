"""Every id has a path of its own, which browsers leave as it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.keys import TimerKey
from duetime.web.pages.timer_paths import id_in_path, timer_path


@pytest.mark.parametrize(
    ("id", "path"),
    [
        (".", "/ui/timers/n/.~"),
        ("..", "/ui/timers/n/..~"),
        ("..~", "/ui/timers/n/..~~"),
        ("...", "/ui/timers/n/..."),
        ("a~", "/ui/timers/n/a~"),
        ("a/../b", "/ui/timers/n/a%2F..%2Fb"),
    ],
)
def test_dots_alone_are_written_with_a_tilde(id: str, path: str) -> None:
    assert timer_path(TimerKey("n", id)) == path


@given(st.text(".~a", min_size=1))
def test_the_id_is_read_as_it_was_written(id: str) -> None:
    assert id_in_path(timer_path(TimerKey("n", id)).removeprefix("/ui/timers/n/")) == id
