"""Long numbers are grouped wherever a person reads them."""

import pytest

from duetime.cli.output.audit_views import print_audit
from duetime.domain.timer import TimerStatus
from duetime.ports.inspection import AuditFinding, AuditReport
from tests.unit.cli.scripted_server import ScriptedServer, invoke


def test_endpoints(server: ScriptedServer) -> None:
    busy = {
        "endpoint": "https://a.example",
        "state": "open",
        "inFlight": 1_001,
        "waiting": 36_544,
        "consecutiveFailures": 1_002,
        "lastError": None,
    }
    server.answer("GET", "/api/v1/endpoints", {"endpoints": [busy]})
    row = invoke("endpoints").stdout.splitlines()[1]
    assert row.split("\t")[1:5] == ["open", "1,001", "36,544", "1,002"]


def test_health(server: ScriptedServer) -> None:
    engine = {"running": True, "shards_owned": 4_096, "lateness_ms": 1.5}
    envelope = {"code": 0, "message": "healthy", "data": {"engine": engine}}
    server.answer("GET", "/healthz", envelope)
    shown = invoke("health").stdout.splitlines()
    assert shown[2:] == [
        "engine.running: true",
        "engine.shards_owned: 4,096",
        "engine.lateness_ms: 1.5",
    ]


def test_an_audit(capsys: pytest.CaptureFixture[str]) -> None:
    report = AuditReport(
        accepted=36_544,
        forgotten=0,
        counts=dict.fromkeys(TimerStatus, 37_392),
        overdue=0,
        findings=[AuditFinding("lost", 1_234, [])],
    )
    print_audit("duetime.db", report, None)
    shown = capsys.readouterr().out
    assert "accepted: 36,544\n" in shown
    assert "pending: 37,392\n" in shown
    assert "lost\t1,234\t-\n" in shown
