"""Hostile text is shown as text on every page, in a real browser."""

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from duetime.domain.namespace import Namespace
from duetime.stores.sqlite import SqliteStore
from tests.browser.ui.hostile_text import VECTORS
from tests.browser.ui.seeding import page_of
from tests.browser.ui.visit import Visit, visiting
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import in_ms, timer_body
from tests.real_server.v1_requests import create_v1, wait_for_v1

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

ONCE = {"maxRetries": 0}
NAMESPACES = (0, 4, 35, 37, 38)
"""The vectors that are names of namespaces, too."""

HOUR_MS = 3_600_000

# Everything that text may have become: elements that run or load, and attributes that do.
FOREIGN = """() => {
  const own = location.origin + "/";
  const found = [];
  for (const element of document.querySelectorAll("*")) {
    const { localName: name } = element;
    if (["iframe", "object", "embed", "base", "marquee", "style", "video", "audio"].includes(name))
      found.push(element.outerHTML);
    if (name === "script" && !element.src.startsWith(own)) found.push(element.outerHTML);
    if (name === "link" && !element.href.startsWith(own)) found.push(element.outerHTML);
    if (name === "meta" && element.httpEquiv) found.push(element.outerHTML);
    for (const { name: attribute, value } of element.attributes) {
      if (/^on/i.test(attribute)) found.push(attribute);
      const loads = ["href", "src", "action", "formaction"].includes(attribute);
      if (loads && /^\\s*(javascript|data):/i.test(value)) found.push(value);
    }
  }
  if ("hacked" in globalThis) found.push("a script ran");
  return found;
}"""


def id_of(number: int) -> str:
    return f"{number:02d} {VECTORS[number]}"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def planted(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServerProcess]:
    """A server whose timers, keys and namespaces have hostile text wherever it is accepted."""
    directory = tmp_path_factory.mktemp("server")
    await plant_namespaces(directory / "timers.db")
    async with (
        CallbackReceiver() as receiver,
        ServerProcess(directory) as server,
        server.client() as api,
    ):
        for number, text in enumerate(VECTORS):
            platform = timer_body(receiver.url, in_ms(HOUR_MS), metadata={text: text})
            assert (await api.post("/timers", json=platform)).status_code == 201
            path = f"/{number}"
            receiver.script(path, Answer(status=500, body=text.encode()))
            await create_v1(
                api,
                id_of(number),
                f"{receiver.url}{path}?text={quote(text)}",
                in_ms(HOUR_MS if number % 2 else 50),
                payload={text: [text, {"text": text}]},
                callbackHeaders={"x-text": quote(text) if not text.isascii() else text},
                retryPolicy=ONCE,
            )
            name = {"name": f"{number} {text}"[:60], "roles": ["read"]}
            answer = await api.post("/api/v1/keys", json=name)
            assert answer.status_code in (201, 400), answer.text
        pause = {"endpoint": "https://paused.example.com", "reason": VECTORS[0]}
        assert (await api.post("/api/v1/endpoints/pause", json=pause)).is_success
        for number in NAMESPACES:
            started = await api.post("/api/v1/operations", json=_operation(VECTORS[number]))
            assert started.is_success, started.text
            path = f"/api/v1/namespaces/{quote(VECTORS[number], safe='')}/secrets"
            assert (await api.post(path, json={})).is_success
        for number in range(0, len(VECTORS), 2):
            await wait_for_v1(api, id_of(number), "failed")
        yield server


async def plant_namespaces(path: Path) -> None:
    """Namespaces of an earlier release may have any name; new ones may not."""
    store = SqliteStore(path)
    await store.open()
    for number in NAMESPACES:
        await store.add_namespace(Namespace(VECTORS[number], 1))
    await store.close()


def _operation(text: str) -> dict[str, object]:
    return {
        "action": "cancel",
        "namespace": text,
        "filter": {
            "idPrefix": text,
            "errorContains": text,
            "metadata": {"key": text, "value": text},
        },
    }


async def check(visit: Visit) -> None:
    assert await visit.page.evaluate(FOREIGN) == []
    assert not visit.faults


@pytest.mark.timeout(300)
async def test_pages_of_timers_show_hostile_text_as_text(
    browser: Browser, planted: ServerProcess
) -> None:
    async with visiting(browser, planted.url) as visit:
        for number, text in enumerate(VECTORS):
            assert await visit.open(page_of(id_of(number), "default")) == 200, text
            await check(visit)
            shown = " ".join((await visit.page.locator("main").inner_text()).split())
            assert " ".join(id_of(number).split()) in shown


@pytest.mark.parametrize(
    "path",
    [
        "/ui",
        "/ui/timers?limit=200",
        "/ui/timers?limit=200&status=failed",
        "/ui/timers?limit=200&status=pending&column=target&column=metadata&column=error",
        "/ui/operations",
        "/ui/secrets",
        "/ui/cluster",
        "/ui/bus",
        "/ui/receiver",
        "/ui/endpoints",
        "/ui/keys",
        "/ui/audit",
        "/ui/namespaces",
    ],
)
async def test_lists_show_hostile_text_as_text(
    browser: Browser, planted: ServerProcess, path: str
) -> None:
    async with visiting(browser, planted.url) as visit:
        assert await visit.open(path) == 200
        await check(visit)


@pytest.mark.parametrize("number", NAMESPACES)
async def test_pages_of_a_namespace_show_its_name_as_text(
    browser: Browser, planted: ServerProcess, number: int
) -> None:
    name = quote(VECTORS[number], safe="")
    async with visiting(browser, planted.url) as visit:
        for path in (
            f"/ui?namespace={name}",
            f"/ui/timers?namespace={name}",
            f"/ui/namespaces/{name}",
            f"/ui/namespaces/{name}/delete",
            f"/ui/secrets/{name}",
            f"/ui/create?namespace={name}",
            f"/ui/operations/new?namespace={name}&id_prefix={name}&action=cancel",
        ):
            assert await visit.open(path) == 200, path
            await check(visit)
            shown = " ".join((await visit.page.locator("body").inner_text()).split())
            assert " ".join(VECTORS[number].split()) in shown, path
        await visit.open("/ui/operations")
        await visit.page.locator("main table a").first.click()
        await check(visit)


@pytest.mark.parametrize("text", VECTORS[::6])
async def test_text_of_the_address_is_shown_as_text(
    browser: Browser, planted: ServerProcess, text: str
) -> None:
    given = quote(text, safe="")
    async with visiting(browser, planted.url) as visit:
        for path in (
            f"/ui/timers?id_prefix={given}&error={given}&metadata={given}%3D{given}",
            f"/ui/timers?namespace={given}",
            f"/ui/timers?sort={given}&status={given}&cursor={given}",
            f"/ui/timers/{given}/{given}",
            f"/ui/create?url={given}&namespace={given}&from={given}",
            f"/ui/operations/new?action={given}&id_prefix={given}&namespace={given}",
            f"/ui/operations/{given}",
            f"/ui/namespaces/{given}",
            f"/ui/audit?actor={given}&action={given}&target={given}",
            f"/ui?due={given}&namespace={given}",
            f"/ui/{given}",
            f"/ui/sign-in?next={given}&code={given}",
        ):
            await visit.open(path)
            await check(visit)
