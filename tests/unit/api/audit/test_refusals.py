"""Refused requests cannot fill the store, and nothing that was done is left out."""

from collections import Counter

from duetime.domain.security.audit import MAX_TEXT_CHARACTERS
from duetime.service.security.refusals import REFUSED_ENTRIES
from tests.unit.api.audit.audit_bench import AuditBench

BURST = int(REFUSED_ENTRIES.burst)


async def test_refused_requests_of_a_key_leave_few_and_short_entries(bench: AuditBench) -> None:
    key = await bench.issue_key("read", namespaces=["small"])
    long = "x" * 500
    for number in range(3 * BURST):
        reply = await bench.request("DELETE", f"/api/v1/timers/{long}/{number}{long}", key=key)
        assert reply.status == 403
    entries = await bench.entries(action="timer.delete")
    assert len(entries) == BURST
    for entry in entries:
        assert len(entry.namespace or "") == len(entry.target or "") == MAX_TEXT_CHARACTERS
    await bench.audit_log.close()
    (summary,) = await bench.entries(action="request.refuse")
    assert (summary.key_id, summary.details) == (key.split("_")[1], f"requests={2 * BURST}")


async def test_one_key_leaves_the_entries_of_another_alone(bench: AuditBench) -> None:
    noisy, quiet = [await bench.issue_key("read") for _ in range(2)]
    for _ in range(2 * BURST):
        await bench.request("DELETE", "/api/v1/timers/small/one", key=noisy)
    await bench.request("DELETE", "/api/v1/timers/small/two", key=quiet)
    assert len(await bench.entries(target="two")) == 1
    await bench.audit_log.close()


async def test_what_was_done_is_never_left_out(bench: AuditBench) -> None:
    key = await bench.issue_key("write", namespaces=["small"])
    for number in range(2 * BURST):
        path = f"/api/v1/timers/small/t{number}"
        assert (await bench.request("DELETE", path, key=key)).status == 404
        assert (await bench.create_v1(f"t{number}", namespace="small", payload=1)).status == 200
        assert (await bench.request("DELETE", path, key=key)).status == 204
    results = Counter(entry.result for entry in await bench.entries(action="timer.delete"))
    assert results == {"ok": 2 * BURST, "TIMER_NOT_FOUND": BURST}
    await bench.audit_log.close()


async def test_an_import_that_began_is_never_left_out(bench: AuditBench) -> None:
    """Some of its timers may have been created."""
    line = b'{"id": "i1", "executeIn": "1h", "callbackUrl": "https://example.com"}\n'
    for _ in range(2 * BURST):
        await bench.break_off("/api/v1/timers/import", line)
    entries = await bench.entries(action="timer.import")
    assert len(entries) == 2 * BURST
    assert {entry.result for entry in entries} == {"CLIENT_GONE"}


async def test_updates_that_break_off_are_limited(bench: AuditBench) -> None:
    for _ in range(2 * BURST):
        await bench.break_off("/api/v1/timers/cancel", b"{")
    entries = await bench.entries(action="timer.cancel")
    assert {entry.result for entry in entries} == {"CLIENT_GONE"}
    assert len(entries) == BURST
    await bench.audit_log.close()
