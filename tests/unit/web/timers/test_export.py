"""Exports have everything that matches, and show when they are cut off."""

import csv
import io

import msgspec
import pytest
from msgspec import Raw

from duetime.domain.callback import HttpCallback
from duetime.testing.store_contract.steps import at
from duetime.testing.timers import make_timer
from duetime.web.pages.timers.export import CSV_COLUMNS
from tests.unit.web.timers.timers_bench import TimersBench

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


async def test_csv_has_every_timer_and_ends_with_their_number(bench: TimersBench) -> None:
    await filled(bench)
    status, content = await bench.export(format="csv", sort="id", limit="20")
    assert status == 200
    header, *rows, end = csv.reader(io.StringIO(content.decode(), newline=""))
    assert tuple(header) == CSV_COLUMNS
    assert [row[1] for row in rows] == [f"t{n:04}" for n in range(450)]
    assert end == ["#end", "450"]
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
    _, row, _ = csv.reader(io.StringIO(content.decode(), newline=""))
    assert row[1] == f"'{start}|x"


async def test_ndjson_has_a_timer_per_line_and_an_end(bench: TimersBench) -> None:
    await filled(bench)
    _, content = await bench.export(format="ndjson", sort="id", id_prefix="t01")
    *lines, end = map(msgspec.json.decode, content.splitlines())
    assert [line["id"] for line in lines] == [f"t{n:04}" for n in range(100, 200)]
    assert end == {"end": True, "count": 100}
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
