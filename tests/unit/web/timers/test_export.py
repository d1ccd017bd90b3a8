"""Exports have everything that matches, and nothing else."""

import asyncio
import csv
import io
from collections.abc import Sequence

import msgspec
import pytest
from msgspec import Raw

from duetime.domain.callback import HttpCallback
from duetime.event_loop import next_turn
from duetime.ports.searching import FoundTimer, OrderedQuery
from duetime.testing.store_contract.steps import at
from duetime.testing.timers import make_timer
from duetime.web.downloads import MAX_EXPORTS, MAX_EXPORTS_OF_KEY
from duetime.web.pages.timers.export import CSV_COLUMNS
from tests.unit.web.page_bench import text_of
from tests.unit.web.timers.timers_bench import TimersBench, rows_of

CALLBACK = HttpCallback(
    url="https://user:hidden@api.example.com/due",
    headers={"Authorization": "Bearer hidden"},
    payload=Raw(b'{"amount": 12345678901234567890123}'),
)


async def filled(bench: TimersBench, count: int = 450) -> None:
    await bench.add(
        *(
            make_timer(f"t{n:04}", execute_at=at(n), callback=CALLBACK, metadata=Raw(b'{"a":1}'))
            for n in range(count)
        )
    )


async def test_csv_has_a_row_for_every_timer(bench: TimersBench) -> None:
    await filled(bench)
    status, content = await bench.export(format="csv", sort="id", limit="20")
    assert status == 200
    header, *rows = csv.reader(io.StringIO(content.decode(), newline=""))
    assert tuple(header) == CSV_COLUMNS
    assert [row[1] for row in rows] == [f"t{n:04}" for n in range(450)]
    first = dict(zip(header, rows[0], strict=True))
    assert first["payload"] == '{"amount": 12345678901234567890123}'
    assert first["metadata"] == '{"a":1}'
    assert first["status"] == "pending"
    assert first["execute_at"].endswith("Z")
    assert b"hidden" not in content


@pytest.mark.parametrize("start", ["=1+1", "+1", "-1", "@sum", "\tx"])
async def test_cells_are_no_formulas(bench: TimersBench, start: str) -> None:
    await bench.add(make_timer(f"{start}|x"))
    _, content = await bench.export(format="csv")
    _, row = csv.reader(io.StringIO(content.decode(), newline=""))
    assert row[1] == f"'{start}|x"


async def test_ndjson_has_a_line_for_every_timer(bench: TimersBench) -> None:
    await filled(bench)
    _, content = await bench.export(format="ndjson", sort="id", id_prefix="t01")
    lines = [msgspec.json.decode(line) for line in content.splitlines()]
    assert [line["id"] for line in lines] == [f"t{n:04}" for n in range(100, 200)]
    assert b"hidden" not in content
    assert lines[0]["callbackHeaders"] == {"Authorization": "[redacted]"}
    assert b'"payload":{"amount": 12345678901234567890123}' in content


async def test_json_is_one_document(bench: TimersBench) -> None:
    await filled(bench)
    _, content = await bench.export(format="json", due_until="now+100s")
    whole = msgspec.json.decode(content)
    assert [timer["id"] for timer in whole["timers"]] == [f"t{n:04}" for n in range(100)]
    assert (whole["count"], whole["complete"]) == (100, True)
    _, none = await bench.export(format="json", id_prefix="nothing")
    assert msgspec.json.decode(none) == {"timers": [], "count": 0, "complete": True}


@pytest.mark.parametrize(
    "query",
    [{}, {"format": "xml"}, {"format": "csv", "status": "x"}, {"format": "csv", "metadata": "x"}],
)
async def test_a_wrong_export_is_refused(bench: TimersBench, query: dict[str, str]) -> None:
    status, content = await bench.export(**query)
    assert status == 400
    assert b"must be" in content


async def test_an_export_has_nothing_of_other_namespaces(bench: TimersBench) -> None:
    await bench.add(make_timer("mine", namespace="a"), make_timer("theirs", namespace="b"))
    key = await bench.issue_key("read", namespaces=["a"])
    _, content = await bench.export(key, format="csv")
    assert b"mine" in content
    assert b"theirs" not in content
    assert (await bench.export(key, format="csv", namespace="b"))[0] == 404


async def test_an_export_ends_when_the_client_is_gone(bench: TimersBench) -> None:
    """Also while nothing matches, so that nothing is sent."""
    await filled(bench, 5_000)
    scans = 0
    scan = bench.store.searches.scan_in_order

    async def counted_scan(query: OrderedQuery) -> Sequence[FoundTimer]:
        nonlocal scans
        scans += 1
        if scans == 3:
            bench.client_gone.set()
            await next_turn()
        return await scan(query)

    bench.store.searches.scan_in_order = counted_scan  # type: ignore[method-assign]
    _, content = await bench.export(format="json", metadata="a=2")
    assert scans < 10
    assert b"complete" not in content


async def test_only_so_many_exports_run_at_once(bench: TimersBench) -> None:
    await filled(bench, 10)
    scan = bench.store.searches.scan_in_order
    begun, released = asyncio.Semaphore(0), asyncio.Event()

    async def held_scan(query: OrderedQuery) -> Sequence[FoundTimer]:
        begun.release()
        await released.wait()
        return await scan(query)

    bench.store.searches.scan_in_order = held_scan  # type: ignore[method-assign]
    running = []
    for _ in range(MAX_EXPORTS // MAX_EXPORTS_OF_KEY):
        key = await bench.issue_key("read")
        for _ in range(MAX_EXPORTS_OF_KEY):
            running.append(
                asyncio.ensure_future(bench.export(key, namespace="default", format="csv"))
            )
            await begun.acquire()
        if len(running) < MAX_EXPORTS:
            status, content = await bench.export(key, format="csv")
            assert status == 503
            assert b"oo many exports of this key are running" in content
    status, content = await bench.export(format="csv")
    assert status == 503
    assert b"oo many exports are running here" in content
    released.set()
    assert [status for status, _ in await asyncio.gather(*running)] == [200] * MAX_EXPORTS
    assert (await bench.export(format="csv"))[0] == 200


async def test_timers_that_cannot_be_read_are_in_their_place(bench: TimersBench) -> None:
    await filled(bench, 3)
    scan = bench.store.searches.scan_in_order

    async def damaged_scan(query: OrderedQuery) -> Sequence[FoundTimer]:
        return [FoundTimer(each.timer, each.timer.key.id != "t0001") for each in await scan(query)]

    bench.store.searches.scan_in_order = damaged_scan  # type: ignore[method-assign]
    _, content = await bench.export(format="ndjson", sort="execute_at")
    _, damaged, _ = map(msgspec.json.decode, content.splitlines())
    assert (damaged["id"], damaged["notShown"]) == ("t0001", "unreadable")
    _, content = await bench.export(format="csv", sort="execute_at")
    rows = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    assert [row["not_shown"] for row in rows] == ["", "unreadable", ""]
    page = await bench.get(sort="execute_at")
    assert rows_of(page) == ["default/t0000", "default/t0001", "default/t0002"]
    assert "t0001 unreadable" in text_of(page)
