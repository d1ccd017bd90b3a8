"""Reads that show secrets of callbacks leave an entry; other reads leave none."""

import pytest

from duetime.domain.security.access import Access, Role
from tests.unit.api.audit.audit_bench import AuditBench, act_as


async def test_reads_of_secrets_leave_one_entry_each(bench: AuditBench) -> None:
    id = (await bench.create()).data["id"]
    await bench.create_v1("small one", namespace="small")
    reads: tuple[tuple[str, str, object, str, str | None], ...] = (
        ("GET", f"/timers/{id}", b"", "default", id),
        ("GET", "/timers", b"", "default", None),
        ("GET", "/api/v1/timers/small/small%20one", b"", "small", "small one"),
        ("POST", "/api/v1/timers/get", {"timerId": id}, "default", id),
        ("GET", "/api/v1/timers", b"", "default", None),
        ("GET", "/api/v1/timers/export", b"", "default", None),
    )
    for number, (method, path, body, namespace, target) in enumerate(reads, start=1):
        for harmless in ("", "?secrets=false"):
            assert (await bench.request(method, path + harmless, body)).status == 200
        # The name may be encoded like any other text of a query.
        name = "secrets" if number % 2 else "%73ecrets"
        assert (await bench.request(method, f"{path}?{name}=true", body)).status == 200
        entries = await bench.entries()
        assert len(entries) == number
        entry = entries[0]
        assert (entry.actor, entry.action, entry.result) == ("API_KEY", "secrets.read", "ok")
        assert (entry.namespace, entry.target) == (namespace, target)
        bench.clock.advance(1)


async def test_refused_reads_of_secrets_leave_an_entry(
    bench: AuditBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.request("GET", "/api/v1/timers/small/none?secrets=true")
    bench.clock.advance(1)
    act_as(monkeypatch, Access(name="dashboard", roles=frozenset({Role.READ})))
    assert (await bench.request("GET", "/api/v1/timers/small/one?secrets=true")).status == 403
    bench.clock.advance(1)
    path = "/api/v1/timers/export?namespace=notifications&secrets=true"
    assert (await bench.request("GET", path)).status == 403
    shown = [
        (entry.actor, entry.namespace, entry.target, entry.result)
        for entry in reversed(await bench.entries(action="secrets.read"))
    ]
    assert shown == [
        ("API_KEY", "small", "none", "TIMER_NOT_FOUND"),
        ("dashboard", "small", "one", "FORBIDDEN"),
        ("dashboard", "notifications", None, "FORBIDDEN"),
    ]
