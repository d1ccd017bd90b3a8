"""The books at the end: `duetime audit` on the largest store, after all that was done to it."""

import subprocess

import msgspec

from bench.harness.server import COMMAND, ServerFailed, environment_of
from bench.stores.store_under_test import StoreUnderTest

AUDIT_SECONDS = 900.0


class Finding(msgspec.Struct, frozen=True):
    problem: str
    count: int


class Books(msgspec.Struct, frozen=True):
    """What the audit printed, as far as we look at it."""

    accepted: int
    findings: list[Finding]

    @property
    def faults(self) -> list[str]:
        return [f"audit: {each.problem} ({each.count})" for each in self.findings]


def audit_books(store: StoreUnderTest) -> Books:
    done = subprocess.run(
        [COMMAND, "audit", "--json"],
        cwd=store.directory,
        env=environment_of(store),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=AUDIT_SECONDS,
        check=False,
    )
    try:
        return msgspec.json.decode(done.stdout, type=Books)
    except msgspec.DecodeError as error:
        raise ServerFailed(
            f"duetime audit ended with {done.returncode}: {done.stderr.decode()[-2_000:]}"
        ) from error
