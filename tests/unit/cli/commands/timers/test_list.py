"""`duetime list` against a scripted server: which namespaces it covers, and how it continues."""

import json

import httpx
import pytest

from duetime.api.platform.examples import LISTED
from duetime.clock import SystemClock
from duetime.domain.instants import parse_instant
from tests.unit.cli.scripted_server import ScriptedServer, invoke

TIMERS = "/api/v1/timers"
POLICY = {
    "maxRetries": 3,
    "maxRetryAttemptsDuration": "24h",
    "initialInterval": "30s",
    "backoffMultiplier": 2.0,
    "maxInterval": "10m",
}


def platform_page(shown: int, total: int, offset: int = 0, **more: object) -> dict[str, object]:
    limit = max(shown, 1)
    data = {"timers": [LISTED] * shown, "total": total, "limit": limit, "offset": offset, **more}
    return {"code": 0, "message": "success", "data": data}


def v1_timer(id: str, **more: object) -> dict[str, object]:
    return {
        "id": id,
        "namespace": "orders",
        "executeAt": "2030-01-01T12:00:00Z",
        "createdAt": "2029-12-31T10:30:00Z",
        "status": "completed",
        "callbackUrl": "https://app.example.com/hook",
        "attempts": [],
        **more,
    }


@pytest.mark.parametrize(
    ("page", "last"),
    [
        (platform_page(1, 1), "1 timer of namespace 'default'"),
        (platform_page(3, 3), "3 timers of namespace 'default'"),
        (
            platform_page(2, 1_234, 10),
            "11 to 12 of 1,234 timers of namespace 'default'; more with --offset 12",
        ),
        (platform_page(1, 3, 2), "3 to 3 of 3 timers of namespace 'default'"),
        (
            platform_page(1, 9_000_000, total_is_estimated=True),
            "1 to 1 of about 9,000,000 timers of namespace 'default'; more with --offset 1",
        ),
        (
            platform_page(2, 9_000, offset=4_000),
            "4,001 to 4,002 of 9,000 timers of namespace 'default'; more with --offset 4002",
        ),
        (
            platform_page(0, 0),
            "0 timers of namespace 'default'; --all-namespaces lists the others too",
        ),
    ],
)
def test_the_last_line_says_which_namespace_is_covered(
    server: ScriptedServer, page: dict[str, object], last: str
) -> None:
    server.answer("GET", "/timers", page)
    assert invoke("list").stdout.splitlines()[-1] == last


def test_a_key_of_a_team_lists_its_own_namespace_which_has_no_name_here(
    server: ScriptedServer,
) -> None:
    server.answer("GET", "/timers", platform_page(1, 3))
    key = ("--api-key", "dt_9c1f4b7e20d85a63_secret")
    assert invoke("list", *key).stdout.splitlines()[-1] == (
        "1 to 1 of 3 timers; more with --offset 1"
    )


@pytest.mark.parametrize("form", [(), ("--json",)])
@pytest.mark.parametrize(
    ("arguments", "path", "page"),
    [
        ((), "/timers", platform_page(1, 1_235, limit=1_235)),
        ((), "/timers", platform_page(0, 1_300, offset=66, limit=1_234)),
        (
            ("--namespace", "default"),
            TIMERS,
            {"timers": [], "nextCursor": None, "unreadable": 1_234},
        ),
    ],
)
def test_timers_that_the_server_cannot_read_are_counted(
    server: ScriptedServer,
    arguments: tuple[str, ...],
    path: str,
    page: dict[str, object],
    form: tuple[str, ...],
) -> None:
    server.answer("GET", path, page)
    result = invoke("list", *arguments, *form)
    assert result.exit_code == 0
    assert result.stderr == (
        "left out 1,234 timers that the server cannot read; its log says why (timer.sealed, "
        "timer.unreadable)\n"
    )


@pytest.mark.parametrize(
    "page",
    [platform_page(3, 3, limit=50), platform_page(1, 9_000_000, limit=50, total_is_estimated=True)],
)
def test_a_page_that_lacks_nothing_says_nothing(
    server: ScriptedServer, page: dict[str, object]
) -> None:
    server.answer("GET", "/timers", page)
    assert invoke("list").stderr == ""


def test_a_list_continues_after_the_timers_that_it_left_out(server: ScriptedServer) -> None:
    server.answer("GET", "/timers", platform_page(1, 9, limit=3))
    assert invoke("list").stdout.splitlines()[-1] == (
        "1 to 3 of 9 timers of namespace 'default'; more with --offset 3"
    )


class TestAllNamespaces:
    @pytest.fixture(autouse=True)
    def _namespaces(self, server: ScriptedServer) -> None:
        """Three namespaces with 3, 0 and 2 timers, in pages of the requested limit."""
        unset = dict.fromkeys(("retention", "concurrency", "maxPayloadBytes"))
        names = ("orders", "a/b", "default")
        namespaces = [
            {"name": name, "numShards": 16, "retryPolicy": POLICY, **unset} for name in names
        ]
        server.answer("GET", "/api/v1/namespaces", {"namespaces": namespaces})
        ids = {"a/b": ["1", "2", "3"], "default": [], "orders": ["4", "5"]}

        def page(request: httpx.Request) -> httpx.Response:
            query = request.url.params
            start = int(query.get("cursor", "0"))
            end = start + int(query["limit"])
            rest = ids[query["namespace"]]
            timers = [
                {"namespace": query["namespace"], "id": id, "callbackUrl": "http://x"}
                for id in rest[start:end]
            ]
            cursor = str(end) if end < len(rest) else None
            return httpx.Response(200, json={"timers": timers, "nextCursor": cursor})

        server.react("GET", TIMERS, page)

    def test_one_namespace_is_listed_after_the_other(self, server: ScriptedServer) -> None:
        heading, *rows, last = invoke("list", "--all-namespaces").stdout.splitlines()
        assert heading.split("\t")[:2] == ["namespace", "id"]
        assert [tuple(row.split("\t")[:2]) for row in rows] == [
            *(("a/b", id) for id in "123"),
            *(("orders", id) for id in "45"),
        ]
        assert last == "5 timers of all 3 namespaces"

    @pytest.mark.parametrize("limit", [1, 2, 3, 4, 5])
    def test_pages_continue_with_a_cursor(self, server: ScriptedServer, limit: int) -> None:
        ids: list[str] = []
        cursor: str | None = None
        for _ in range(10):
            more = () if cursor is None else ("--cursor", cursor)
            arguments = ("list", "--all-namespaces", "--limit", str(limit), *more)
            document = json.loads(invoke(*arguments, "--json").stdout)
            assert len(document["timers"]) <= limit
            ids += [timer["id"] for timer in document["timers"]]
            cursor = document["nextCursor"]
            if cursor is None:
                break
            assert f"; more with --cursor {cursor}" in invoke(*arguments).stdout
        assert ids == list("12345")

    def test_filters_apply_to_every_namespace(self, server: ScriptedServer) -> None:
        instant = "2030-01-01T00:00:00Z"
        options = ("--status", "failed", "--due-before", instant, "--order", "desc")
        result = invoke("list", "--all-namespaces", *options)
        assert result.stdout.splitlines()[-1] == "5 failed timers of all 3 namespaces"
        requests = server.of("GET", TIMERS)
        assert [request.url.params["namespace"] for request in requests] == [
            *("a/b", "default", "orders")
        ]
        for request in requests:
            query = request.url.params
            assert (query["status"], query["dueBefore"], query["order"]) == (
                "failed",
                instant,
                "desc",
            )


class TestLateTimers:
    def test_overdue_timers_are_listed_by_the_word_now(self, server: ScriptedServer) -> None:
        before_at = SystemClock().now()
        result = invoke("list", "--status", "pending", "--due-before", "now")
        assert result.exit_code == 0
        query = server.of("GET", TIMERS)[0].url.params
        assert before_at <= parse_instant(query["dueBefore"]) <= SystemClock().now()

    def test_the_next_page_is_of_the_same_instant(self, server: ScriptedServer) -> None:
        """Only the limit may differ between pages."""
        server.answer("GET", TIMERS, {"timers": [v1_timer("a")], "nextCursor": "abc"})
        note = invoke("list", "--due-before", "now").stdout.splitlines()[-1]
        bound = server.of("GET", TIMERS)[0].url.params["dueBefore"]
        assert note.endswith(f"; more with --due-before {bound} --cursor abc")

    def test_sent_timers_show_how_late_they_were(self, server: ScriptedServer) -> None:
        """Counted from the creation if that came after the instant."""
        sent = {"dueAt": "2030-01-01T12:00:00Z", "sentAt": "2030-01-01T12:00:01.594Z"}
        timers = [
            v1_timer("late", attempts=[sent]),
            v1_timer("created-late", attempts=[sent], createdAt="2030-01-01T12:00:01.500Z"),
            v1_timer("not-sent", attempts=[sent, {**sent, "sentAt": None}]),
        ]
        server.answer("GET", TIMERS, {"timers": timers, "nextCursor": None})
        lines = invoke("list", "--namespace", "orders").stdout.splitlines()
        last = [line.split("\t")[-1] for line in lines[:4]]
        assert last == ["late", "1,594 ms", "94.0 ms", "-"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--namespace", "a"], "--namespace / --all-namespaces: give one of them, not both"),
        (["--cursor", "abc="], "--cursor: is not from a page of --all-namespaces"),
        (["--offset", "1"], "--offset / --sort: a namespace is listed by execute_at and"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    server: ScriptedServer, arguments: list[str], line: str
) -> None:
    result = invoke("list", "--all-namespaces", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(line)
    assert not server.requests
