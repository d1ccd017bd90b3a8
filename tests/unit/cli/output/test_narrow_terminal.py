"""The other tables and reports on a terminal of 80 columns."""

from collections.abc import Callable
from types import ModuleType

import msgspec
import pytest
from rich.console import Console

from duetime.cli.client.answers import AuditEntry, Namespace, Operation
from duetime.cli.output import audit_views, cluster_views, layout, namespace_views, operation_views
from duetime.cli.output.security.audit_entries import print_entries
from duetime.domain.timer import TimerStatus
from duetime.ports.inspection import AuditFinding, AuditReport
from tests.unit.cli.output.test_cluster_views import cluster, member, shard, tables_of
from tests.unit.cli.scripted_server import OPERATION_ID, ScriptedServer, invoke, operation

WIDTH = 80
LONG_NAME = "orders-of-the-european-warehouse-{}-in-the-north"

Lines = Callable[[], list[str]]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Lines:
    def terminal() -> Console:
        return Console(force_terminal=True, color_system=None, width=WIDTH)

    modules: list[ModuleType] = [layout, audit_views, cluster_views, namespace_views]
    for module in modules:
        monkeypatch.setattr(module, "console", terminal)

    def read() -> list[str]:
        shown = capsys.readouterr().out.splitlines()
        assert max(map(len, shown)) <= WIDTH
        return shown

    return read


def namespace(name: str, **options: object) -> Namespace:
    policy = {
        "maxRetries": 3,
        "maxRetryAttemptsDuration": "24h",
        "initialInterval": "30s",
        "backoffMultiplier": 2.0,
        "maxInterval": "10m",
    }
    defaults = {"retention": None, "concurrency": None, "maxPayloadBytes": None}
    document = {"name": name, "numShards": 16, "retryPolicy": policy}
    return msgspec.convert(document | defaults | options, Namespace)


@pytest.mark.parametrize("name", [LONG_NAME, LONG_NAME + "-of-the-continent"])
def test_the_names_of_namespaces_are_whole(lines: Lines, name: str) -> None:
    namespace_views.print_namespaces([namespace(name.format(n)) for n in range(3)])
    *shown, hint = lines()
    names = [line.split()[0] for line in shown[1:] if not line.startswith(" ")]
    assert names == [name.format(n) for n in range(3)]
    assert hint == "shortened to fit; duetime namespaces show NAME shows all"


def test_the_concurrency_of_namespaces_is_shown_beside_objectives(lines: Lines) -> None:
    """It is the likeliest cause of lateness within a namespace."""
    status = {"attempts": 12_000, "late": 3, "errorBudgetLeft": 0.75}
    slo = "99.9 % within 100ms over 30d"
    namespace_views.print_namespaces(
        [namespace("notifications", concurrency=100, slo=slo, sloStatus=status)]
    )
    headings, row, *_ = lines()
    assert "concurrency" in headings
    assert row.split()[:2] == ["notifications", "100"]


@pytest.mark.parametrize("action", ["redrive", "reschedule", "delete-namespace"])
def test_the_ids_of_operations_are_whole(lines: Lines, action: str) -> None:
    """`show` and `abort` need them."""
    ids = [f"{OPERATION_ID[:-1]}{n}" for n in range(3)]
    operation_views.print_operations(
        [
            msgspec.convert(
                operation(id=id, action=action, namespace=LONG_NAME.format(1), changed=1_234_567),
                Operation,
            )
            for id in ids
        ]
    )
    _, *rows = lines()
    assert [row.split()[0] for row in rows] == ids
    assert all("completed" in row for row in rows)


@pytest.mark.usefixtures("lines")
def test_endpoints_are_whole(server: ScriptedServer) -> None:
    """`--endpoint` of other commands needs them."""
    origins = [f"https://api-{n}.orders.internal.example.com:8443" for n in range(2)]
    facts = {"inFlight": 3, "waiting": 36_544, "consecutiveFailures": 7}
    failing = {"state": "halfOpen", "lastError": "no answer within 30 s", **facts}
    answer = {"endpoints": [{"endpoint": origin, **failing} for origin in origins]}
    server.answer("GET", "/api/v1/endpoints", answer)
    rows = invoke("endpoints").stdout.splitlines()
    assert max(map(len, rows)) <= WIDTH
    assert [row.split()[0] for row in rows if row.startswith("http")] == origins


def test_a_wide_list_of_operations_says_who_started_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    operations = [operation(startedBy="billing"), operation()]
    operation_views.print_operations([msgspec.convert(each, Operation) for each in operations])
    headings, first, second, *_ = capsys.readouterr().out.splitlines()
    assert "by" in headings.split()
    assert "billing" in first
    assert "billing" not in second


def test_the_number_of_changed_timers_is_shown_beside_a_short_action(lines: Lines) -> None:
    operation_views.print_operations([msgspec.convert(operation(action="cancel"), Operation)])
    assert "1,230" in lines()[1]


def test_members_and_their_clocks_are_shown(lines: Lines) -> None:
    nodes = [f"duetime-7c9f8d6b5-x{n}k2p:1:a8f3" for n in range(3)]
    members = [
        member(node, clock_offset_ms=700.0, lateness_ms=1.2, host=node, url=f"http://{node}:8080")
        for node in nodes
    ]
    shards = [shard(number, nodes[number % 3]) for number in range(256)]
    cluster_views.print_cluster(tables_of(cluster(members, shards)))
    shown = lines()
    assert sum("+700.0 ms" in line for line in shown) == 3


def test_findings_of_an_audit_are_shown_in_full(lines: Lines) -> None:
    problem = "executing timers whose owner is gone and that its successor did not take over"
    examples = [f"orders/order-2030-{n}" for n in range(9)]
    report = AuditReport(
        accepted=9,
        forgotten=0,
        counts=dict.fromkeys(TimerStatus, 0),
        overdue=0,
        findings=[AuditFinding(problem, 9, examples)],
    )
    audit_views.print_audit("/var/lib/duetime.db", report, None)
    words = " ".join(" ".join(lines()).split())
    assert f"problem {problem} timers 9 for example {', '.join(examples)}" in words


def test_the_audit_log_keeps_its_main_columns(lines: Lines) -> None:
    print_entries(
        [
            AuditEntry(
                id=str(n),
                at="2030-01-01T00:00:00.123456Z",
                actor=LONG_NAME.format(n),
                key_id="01977f3e",
                address="2001:db8:1234:5678:9abc:def0:1234:5678",
                action="namespace.delete",
                namespace=LONG_NAME.format(n),
                target=OPERATION_ID,
                result="NAMESPACE_NOT_FOUND",
                details="force, operation=" + OPERATION_ID,
            )
            for n in range(3)
        ]
    )
    heading, *_ = lines()
    assert heading.split() == ["at", "actor", "key", "action", "namespace", "target", "result"]
