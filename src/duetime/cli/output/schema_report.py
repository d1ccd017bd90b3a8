"""How far a store's schema is, told to whoever runs migrations.

The version of a store is that of its newest migration, and 0 when it has no schema.
"""

from collections.abc import Iterable

from duetime.cli.output.terminal import ExitCode, fail


def refuse_newer(version: int, newest: int) -> None:
    """End the command if the store was migrated by a newer release."""
    if version > newest:
        fail(
            f"the schema has version {version}, but this release of duetime knows only"
            f" version {newest}: use a newer release",
            ExitCode.FAILED,
        )


def report_check(version: int, newest: int) -> None:
    """Tell what is missing, and end the command if something is."""
    for number in range(version + 1, newest + 1):
        print(f"missing migration {number}")
    if version == newest:
        print(_up_to_date(newest))
    elif version:
        fail(
            f"the schema has version {version} and this release needs version {newest}:"
            " run `duetime migrate`",
            ExitCode.FAILED,
        )
    else:
        fail("there is no schema yet: run `duetime migrate`", ExitCode.FAILED)


def report_applied(applied: Iterable[int], newest: int) -> None:
    for number in applied:
        print(f"applied migration {number}")
    print(_up_to_date(newest))


def _up_to_date(version: int) -> str:
    return f"schema is up to date (version {version})"
