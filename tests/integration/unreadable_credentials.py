"""Keys and secrets that cannot be read, alike on all stores."""

import secrets

from structlog.testing import capture_logs

from duetime.ports.inspection import AuditReport
from duetime.ports.security import SecurityStore
from duetime.testing.store_contract.security.credentials import make_key, stored

DOCUMENTS = {
    "of a later release": '{"type":"passkey","id":"k"}',
    "of an unknown role": (
        '{"type":"key","id":"k","name":"n","secret_sha256":"hidden","created_at":0,'
        '"roles":["owner hidden"]}'
    ),
    "cut off": '{"type":"key","id":"k","secret_sha256":"hidd',
    "empty": "",
}


def new_id() -> str:
    """The id of a credential that no other test has had logged."""
    return secrets.token_hex(8)


async def assert_set_aside(security: SecurityStore, id: str, *others: str) -> None:
    """The credential is logged once, without its content, and does not disturb the others."""
    with capture_logs() as logs:
        for _ in range(3):
            assert set(await stored(security)) == set(others)
    (line,) = logs
    shown = (line["event"], line["log_level"], line["id"])
    assert shown == ("credential.unreadable", "error", id)
    assert line["reason"]
    assert "hidden" not in str(line)


def assert_found(report: AuditReport, id: str) -> None:
    """The audit shows the credential, without its content, and nothing else."""
    (finding,) = report.findings
    assert finding.problem.startswith("keys or secrets that this release cannot read")
    assert (finding.count, finding.examples[0].partition(":")[0]) == (1, id)
    assert "hidden" not in finding.examples[0]


async def assert_mendable(security: SecurityStore, id: str) -> None:
    """The id is taken, and the credential can be replaced and removed."""
    assert not await security.add_credential(make_key(id))
    assert not await security.replace_credential(make_key(id), expected=make_key(id))
    assert await security.replace_credential(make_key(id))
    assert (await stored(security))[id] == make_key(id)
    assert await security.remove_credential(id)
