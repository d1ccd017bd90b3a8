"""Instants as the script writes them, for a browser in another zone and with a wrong clock."""

import pytest
from playwright.async_api import Browser

from tests.real_server.server_process import API_KEY, ServerProcess

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

WRITE = """async ([times, now, instants]) => {
  const shell = await import(document.querySelector("script[src*=shell]").src);
  document.documentElement.dataset.times = times;
  const top = document.createElement("div");
  for (const each of instants) {
    const time = document.createElement("time");
    time.dateTime = each;
    time.dataset.style = "both";
    top.append(time);
  }
  shell.setClock(now);
  shell.showTimes(top);
  return [...top.children].map((time) => time.textContent);
}"""


@pytest.mark.parametrize(
    ("times", "written"),
    [
        ("utc", ["23:30:00 UTC · in 11 h", "2030-06-02 00:30:00 UTC · in 12 h"]),
        ("local", ["11:30:00 · in 11 h", "12:30:00 · in 12 h"]),
    ],
)
async def test_a_date_is_left_out_by_the_day_of_the_service_in_the_zone_that_is_shown(
    browser: Browser, server: ServerProcess, times: str, written: list[str]
) -> None:
    context = await browser.new_context(
        extra_http_headers={"x-api-key": API_KEY}, timezone_id="Pacific/Auckland"
    )
    page = await context.new_page()
    await page.goto(f"{server.url}/ui/namespaces")
    instants = ["2030-06-01T23:30:00Z", "2030-06-02T00:30:00Z"]
    assert await page.evaluate(WRITE, [times, "2030-06-01T13:00:00Z", instants]) == written
    await context.close()


async def test_long_distances_are_told_in_years(browser: Browser, server: ServerProcess) -> None:
    context = await browser.new_context(extra_http_headers={"x-api-key": API_KEY})
    page = await context.new_page()
    await page.goto(f"{server.url}/ui/namespaces")
    instants = ["2033-07-15T00:00:00Z", "2031-02-01T00:00:00Z", "2029-01-01T00:00:00Z"]
    written = await page.evaluate(WRITE, ["utc", "2030-06-01T00:00:00Z", instants])
    assert [each.partition(" · ")[2] for each in written] == ["in 3.1 y", "in 245 d", "1.4 y ago"]
    await context.close()
