"""`duetime audit` on the largest store, at the end of its measurements."""

import subprocess

import msgspec

from bench.harness.server import COMMAND, ServerFailed, environment_of
from bench.stores.store_under_test import StoreUnderTest

AUDIT_SECONDS = 900.0


class Finding(msgspec.Struct, frozen=True):
    problem: str
    count: int


class StoreAudit(msgspec.Struct, frozen=True):
    """The fields of the audit's JSON that are checked."""

    accepted: int
    findings: list[Finding]

    @property
    def faults(self) -> list[str]:
        return [f"audit: {each.problem} ({each.count})" for each in self.findings]


def audit_store(store: StoreUnderTest) -> StoreAudit:
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
        return msgspec.json.decode(done.stdout, type=StoreAudit)
    except msgspec.DecodeError as error:
        raise ServerFailed(
            f"duetime audit ended with {done.returncode}: {done.stderr.decode()[-2_000:]}"
        ) from error
