"""How a timer of the bus is shown."""

import pytest

from duetime.cli.views import print_timer
from duetime.domain.retry import UNTIL_DELIVERED


def test_a_timer_that_is_never_given_up_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    policy = {
        "max_retries": UNTIL_DELIVERED.max_retries,
        "initial_interval": "100ms",
        "backoff_multiplier": 2.0,
        "max_interval": "5s",
        "max_retry_attempts_duration": "876000h",
    }
    print_timer("", {"id": "call", "retry_policy": policy})
    assert "until it is delivered, every 5s or sooner" in capsys.readouterr().out
