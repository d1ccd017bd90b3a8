"""The list of timers: its address has the whole state, and it says what it does not know."""

import re
from html import unescape

import pytest
from msgspec import Raw

from duetime.domain.callback import HttpCallback
from duetime.domain.timer import Timer
from duetime.service.searching import searching as searching_module
from duetime.testing.store_contract.steps import at
from duetime.testing.timers import make_timer
from tests.unit.web.page_bench import text_of
from tests.unit.web.timers.timers_bench import TimersBench, link_of, rows_of


def orders(count: int, namespace: str = "default") -> list[Timer]:
    return [
        make_timer(
            f"order-{n:03}",
            namespace=namespace,
            execute_at=at(60 * n),
            created_at=at(n),
            callback=HttpCallback(url=f"https://api{n % 2}.example.com/due?n={n}"),
            metadata=Raw(b'{"customer": %d}' % (n % 3)),
        )
        for n in range(count)
    ]


async def test_the_newest_timers_come_first(bench: TimersBench) -> None:
    await bench.add(*orders(3))
    reply = await bench.get()
    assert reply.status == 200
    assert rows_of(reply) == ["default/order-002", "default/order-001", "default/order-000"]
    assert "3 timers newest first" in text_of(reply)
    assert link_of(reply, "next") is None


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("id_prefix=order-001", "/ui/timers/default/order-001"),
        ("id_prefix=order-00", "/ui/timers?id_prefix=order-00"),
        ("id_prefix=order-000", "/ui/timers?id_prefix=order-000"),
        ("id_prefix=order-000&namespace=other", "/ui/timers/other/order-000"),
        ("id_prefix=a%2Fb", "/ui/timers/other/a%2Fb"),
        ("id_prefix=nobody", "/ui/timers?id_prefix=nobody"),
        ("id_prefix=", "/ui/timers"),
        ("", "/ui/timers"),
        ("id_prefix=a%00b", "/ui/timers?id_prefix=a%00b"),
    ],
)
async def test_a_timer_is_found_by_its_id(bench: TimersBench, query: str, expected: str) -> None:
    await bench.add(
        *orders(30), *orders(1, "other"), make_timer("a/b", namespace="other"),
        make_timer("a/bc", namespace="other"),
    )  # fmt: skip
    reply = await bench.get(f"/ui/timers/find?{query}")
    assert (reply.status, reply.headers["location"]) == (303, expected)


async def test_a_timer_that_may_not_be_seen_is_not_found(bench: TimersBench) -> None:
    await bench.add(*orders(1), *orders(2, "other"))
    key = await bench.issue_key("read", namespaces=["other"])
    reply = await bench.get("/ui/timers/find", key, id_prefix="order-000")
    assert reply.headers["location"] == "/ui/timers/other/order-000"
    foreign = await bench.get("/ui/timers/find", key, id_prefix="order-000", namespace="default")
    assert foreign.status == 404


async def test_pages_lead_to_each_other(bench: TimersBench) -> None:
    await bench.add(*orders(45))
    first = await bench.get(limit="20", sort="id")
    second = await bench.get(link_of(first, "next") or "")
    third = await bench.get(link_of(second, "next") or "")
    seen = rows_of(first) + rows_of(second) + rows_of(third)
    assert seen == [f"default/order-{n:03}" for n in range(45)]
    assert link_of(third, "next") is None
    assert rows_of(await bench.get(link_of(third, "prev") or "")) == rows_of(second)
    assert rows_of(await bench.get(link_of(second, "prev") or "")) == rows_of(first)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"id_prefix": "order-00"}, 10),
        ({"status": "pending"}, 30),
        ({"status": "failed"}, 0),
        ({"due_from": "2030-01-01T00:00:00Z"}, None),
        ({"due_until": "now+10m"}, 10),
        ({"due_from": "now+10m", "due_until": "now+20m"}, 10),
        ({"due_from": "now"}, 30),
        ({"due_until": "in 10 min"}, 10),
        ({"due_from": "24 h ago", "due_until": "2999-01-01"}, 30),
        ({"due_until": "2999-01-01 12:00 Europe/Berlin"}, 30),
        ({"endpoint": "api1.example.com"}, 15),
        ({"metadata": "customer=2"}, 10),
        ({"metadata": "customer=2", "endpoint": "https://api1.example.com"}, 5),
        ({"namespace": "default"}, 30),
        ({"namespace": "other"}, 0),
    ],
)
async def test_filters_narrow_the_list(
    bench: TimersBench, query: dict[str, str], expected: int | None
) -> None:
    await bench.add(*orders(30), make_timer("x", namespace="other"))
    await bench.store.remove_if_pending(make_timer("x", namespace="other").key)
    reply = await bench.get(**query)
    assert reply.status == 200
    if expected is not None:
        assert len(rows_of(reply)) == expected
    chips = text_of(reply)
    for value in query.values():
        assert value in chips


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"status": "late"}, "status"),
        ({"due_from": "yesterday"}, "due_from"),
        ({"due_from": "2030-01-32"}, "due_from"),
        ({"due_until": "now+soon"}, "due_until"),
        ({"due_from": "now*2"}, "due_from"),
        ({"due_from": "now+1h", "due_until": "now"}, "due_until"),
        ({"endpoint": "https://x/path"}, "endpoint"),
        ({"metadata": "customer"}, "metadata"),
        ({"metadata": "=1"}, "metadata"),
        ({"sort": "size"}, "sort"),
        ({"limit": "51"}, "limit"),
        ({"limit": "a"}, "limit"),
        ({"cursor": "x"}, "cursor"),
        ({"column": "secret"}, "column"),
        ({"id_prefix": "a\0b"}, "id_prefix"),
        ({"error": "x" * 2_000}, "error"),
    ],
)
async def test_a_wrong_parameter_is_named_beside_the_form(
    bench: TimersBench, query: dict[str, str], field: str
) -> None:
    reply = await bench.get(**query)
    assert reply.status == 400
    page = reply.content.decode()
    found = re.findall(rf'<b>{field}</b>|id="{field}"[^>]*aria-invalid="true" autofocus', page)
    assert len(found) == 1, "it is told once"
    assert 'id="filters"' in reply.content.decode()


async def test_a_namespace_that_may_not_be_seen_is_not_found(bench: TimersBench) -> None:
    await bench.add(*orders(2), *orders(2, "other"))
    key = await bench.issue_key("read", namespaces=["other"])
    assert (await bench.get(key=key, namespace="default")).status == 404
    assert (await bench.get(namespace="nowhere")).status == 404
    mine = await bench.get(key=key)
    assert rows_of(mine) == ["other/order-001", "other/order-000"]
    assert "default" not in text_of(mine)


async def test_several_namespaces_are_merged(bench: TimersBench) -> None:
    await bench.add(*orders(2), *orders(2, "other"))
    assert rows_of(await bench.get(sort="id")) == [
        "default/order-000", "other/order-000", "default/order-001", "other/order-001",
    ]  # fmt: skip


async def test_too_many_namespaces_ask_for_one(bench: TimersBench) -> None:
    await bench.add(*(make_timer("t", namespace=f"n{n}") for n in range(25)))
    reply = await bench.get()
    assert reply.status == 200
    assert "Choose one to see its timers" in text_of(reply)
    assert 'href="/ui/timers?namespace=n7"' in reply.content.decode()
    assert rows_of(await bench.get(namespace="n7")) == ["n7/t"]


async def test_a_read_only_key_sees_no_buttons(bench: TimersBench) -> None:
    await bench.add(*orders(1))
    key = await bench.issue_key("read")
    mine = (await bench.get(key=key)).content.decode()
    assert "order-000" in mine
    for text in ("operations/new", 'type="checkbox" name="timer"', "data-pick-all", "/ui/create"):
        assert text not in mine
        assert text in (await bench.get()).content.decode()


async def test_empty_lists_help(bench: TimersBench) -> None:
    assert "There are no timers yet. Create the first one" in text_of(await bench.get())
    none = text_of(await bench.get(id_prefix="x"))
    assert "No timers match. Clear all filters New timer" in none


async def test_a_search_that_stopped_says_how_far_it_got(
    bench: TimersBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching_module, "MOST_LOOKED_AT", 10)
    monkeypatch.setattr(searching_module, "SCANNED_AT_ONCE", 10)
    await bench.add(*orders(30))
    reply = await bench.get(metadata="customer=9")
    words = text_of(reply)
    assert "Looked at 10 timers, up to" in words
    assert "0 match so far. Go on" in words
    assert "does not update by itself" in words
    assert "No timers match" not in words
    assert 'name="live"' not in reply.content.decode()
    last = reply
    for _ in range(3):
        last = await bench.get(link_of(last, "next") or "")
    assert link_of(last, "next") is None


async def test_an_order_without_an_index_offers_another(bench: TimersBench) -> None:
    await bench.add(*orders(30))
    reply = await bench.get(id_prefix="order-00", sort="-created_at")
    assert len(rows_of(reply)) == 10
    assert "Another order finds them by an index" in text_of(reply)
    assert rows_of(await bench.get(id_prefix="order-00"))[0] == "default/order-000"


async def test_columns_are_in_the_address(bench: TimersBench) -> None:
    await bench.add(*orders(1))
    usual = (await bench.get()).content.decode()
    assert 'data-label="Callback"' in usual
    assert 'data-label="Metadata"' not in usual
    mine = (await bench.get("/ui/timers?column=metadata&column=status")).content.decode()
    assert 'data-label="Metadata"' in mine
    assert 'data-label="Callback"' not in mine
    assert "column=metadata" in re.findall(r'href="([^"]*)">Id', mine)[0]


@pytest.mark.parametrize(
    "query",
    [
        "&".join(["column=error"] * 990),
        "&".join(f"column=a{n}" for n in range(990)),
        "&".join(f"x{n}=1" for n in range(990)),
        "&".join(f"status=a{n}" for n in range(990)),
    ],
)
async def test_addresses_have_each_parameter_once(bench: TimersBench, query: str) -> None:
    usual = await bench.page("/ui/timers?column=error")
    reply = await bench.page(f"/ui/timers?{query}")
    assert len(reply.content) < len(usual.content) + 3 * len(query)


async def test_everything_that_matches_is_handed_over_with_fixed_instants(
    bench: TimersBench,
) -> None:
    await bench.add(*orders(3))
    page = (await bench.get(due_from="now", namespace="default")).content.decode()
    assert '<input type="hidden" name="due_from" value="20' in page
    assert '<input type="hidden" name="namespace" value="default">' in page
    assert "Run timers now Move timers Redrive timers Cancel timers" in " ".join(
        re.findall(r"</svg>([^<]*timers[^<]*)</button>", page)
    )
    # Without a filter there is nothing to hand over.
    assert "Everything that matches</summary>" in page
    assert "Everything that matches</summary>" not in (await bench.get()).content.decode()


async def test_hostile_text_is_shown_as_text(bench: TimersBench) -> None:
    evil = "<script>alert(1)</script>\"'/../&amp;"
    await bench.add(
        make_timer(
            evil,
            callback=HttpCallback(url="https://user:pass@x.example.com/<img src=x>"),
            metadata=Raw(b'{"<b>": "</td>"}'),
        )
    )
    reply = await bench.get("/ui/timers?column=metadata&column=target&id_prefix=%3Cscript%3E")
    page = reply.content.decode()
    assert "<script>alert" not in page
    assert "<img" not in page.partition("<main")[2]
    assert "pass" not in page
    assert "<b>&#34;" not in page
    (key,) = rows_of(reply)
    assert key == "default/%3Cscript%3Ealert%281%29%3C%2Fscript%3E%22%27%2F..%2F%26amp%3B"


async def test_the_list_is_a_live_part(bench: TimersBench) -> None:
    await bench.add(*orders(1))
    page = (await bench.get(status="pending")).content.decode()
    assert '<meta name="live" content="/ui/timers?status=pending">' in page
    assert 'data-live="list"' in page


async def test_the_quick_filter_for_overdue_timers_leaves_out_finished_ones(
    bench: TimersBench,
) -> None:
    page = (await bench.get(status="completed", due_from="now")).content.decode()
    (address,) = re.findall(r'<a href="([^"]*)">Overdue</a>', page)
    assert unescape(address) == "/ui/timers?status=pending&due_until=now"
    page = (await bench.get(status="pending", due_until="now")).content.decode()
    assert 'aria-current="true">Overdue</a>' in page


@pytest.mark.parametrize(
    ("status", "names"),
    [
        (None, ["run-now", "move", "redrive", "cancel"]),
        ("pending", ["run-now", "move", "cancel"]),
        ("failed", ["redrive"]),
        ("completed", []),
        ("executing", []),
    ],
)
async def test_only_actions_that_fit_the_status_are_offered(
    bench: TimersBench, status: str | None, names: list[str]
) -> None:
    await bench.add(*orders(1))
    query = {} if status is None else {"status": status}
    form = (await bench.get(**query)).content.decode().partition('id="chosen"')[2]
    assert re.findall(r'name="action" value="([^"]*)"', form.partition("</form>")[0]) == names
