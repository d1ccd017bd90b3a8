"""The options that make a retry policy, the same wherever a timer is created or changed."""

from typing import Annotated

import typer

from duetime.cli.options import read_duration

RETRY_OPTIONS = (
    "--max-retries",
    "--initial-interval",
    "--max-interval",
    "--backoff-multiplier",
    "--max-duration",
)

MaxRetriesOption = Annotated[
    int | None, typer.Option(min=0, help="Retry a failed callback this often.")
]
InitialIntervalOption = Annotated[
    str | None, typer.Option(metavar="DURATION", help="Wait before the first retry.")
]
MaxIntervalOption = Annotated[
    str | None, typer.Option(metavar="DURATION", help="Longest wait between two attempts.")
]
BackoffMultiplierOption = Annotated[
    float | None, typer.Option(min=1, help="Each further wait is so many times as long.")
]
MaxDurationOption = Annotated[
    str | None,
    typer.Option(metavar="DURATION", help="No retry later than this after the first attempt."),
]


def read_retry_policy(
    *,
    max_retries: int | None,
    initial_interval: str | None,
    max_interval: str | None,
    backoff_multiplier: float | None,
    max_duration: str | None,
) -> dict[str, object]:
    """What was named, as the API takes it; empty if nothing was."""
    policy: dict[str, object] = {}
    if max_retries is not None:
        policy["max_retries"] = max_retries
    if initial_interval is not None:
        policy["initial_interval"] = read_duration("--initial-interval", initial_interval)
    if max_interval is not None:
        policy["max_interval"] = read_duration("--max-interval", max_interval)
    if backoff_multiplier is not None:
        policy["backoff_multiplier"] = backoff_multiplier
    if max_duration is not None:
        policy["max_retry_attempts_duration"] = read_duration("--max-duration", max_duration)
    return policy
