"""A walk through a page with Tab, which judges every place where the focus stops."""

from playwright.async_api import Page

MAX_STOPS = 1_000
MAX_TABS_IN_A_FIELD = 12
"""Tabs that one field may take: a date with a time has several parts."""

# Counts the elements that Tab ought to reach. It reaches one of the radio buttons with one name.
_PREPARE = """() => {
  const radios = new Set();
  const isReachable = (element) => {
    if (element.disabled || element.tabIndex < 0) return false;
    if (!element.checkVisibility({visibilityProperty: true})) return false;
    if (element.type !== "radio") return true;
    const group = [...document.querySelectorAll(`[type=radio][name="${element.name}"]`)];
    const chosen = group.find((each) => each.checked) ?? element;
    if (radios.has(element.name) || chosen !== element) return false;
    radios.add(element.name);
    return true;
  };
  const all = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]";
  const dialog = document.querySelector("dialog:modal");
  globalThis.walk = {
    expected: new Set([...(dialog ?? document).querySelectorAll(all)].filter(isReachable)),
    visited: new Set(), last: null, tabs: 0,
  };
}"""

# Judges the place of the focus: an empty string if it is good, "outside" beyond the last element,
# and "again" where the walk has been before.
_JUDGE = """(maxTabs) => {
  const walk = globalThis.walk, element = document.activeElement;
  const name = element?.outerHTML.slice(0, 140);
  if (!element || element === document.body || element === document.documentElement)
    return "outside";
  if (element === walk.last) {
    walk.tabs += 1;
    return walk.tabs > maxTabs ? `Tab does not leave ${name}` : "";
  }
  if (walk.visited.has(element)) return "again";
  walk.visited.add(element);
  walk.last = element;
  walk.tabs = 0;
  const shown = [element, element.closest("label")].filter((each) => each);
  const isRing = ({outlineStyle, outlineWidth, outlineColor}) =>
    outlineStyle !== "none" && parseFloat(outlineWidth) >= 1 && !/, 0\\)$/.test(outlineColor);
  if (!shown.some((each) => isRing(getComputedStyle(each)))) return `no ring around ${name}`;
  const isSeen = (each) => {
    if (!each.checkVisibility({opacityProperty: true, visibilityProperty: true})) return false;
    for (const box of each.getClientRects()) {
      const left = Math.max(0, box.left), right = Math.min(innerWidth, box.right);
      const top = Math.max(0, box.top), bottom = Math.min(innerHeight, box.bottom);
      if (right - left < 4 || bottom - top < 4) continue;
      for (const [x, y] of [[.5, .5], [.1, .2], [.9, .2], [.1, .8], [.9, .8]]) {
        const hit = document.elementFromPoint(left + (right - left) * x, top + (bottom - top) * y);
        if (each.contains(hit) || hit?.closest("label, button, a")?.contains(each)) return true;
      }
    }
    return false;
  };
  return shown.some(isSeen) ? "" : `the focus is out of sight in ${name}`;
}"""

_MISSED = """() => [...globalThis.walk.expected]
  .filter((element) => element.isConnected && !globalThis.walk.visited.has(element))
  .map((element) => `Tab never leads to ${element.outerHTML.slice(0, 140)}`)"""


async def walk(page: Page) -> list[str]:
    """Press Tab once around the page, wherever it starts; what was wrong on the way."""
    await page.evaluate(_PREPARE)
    faults: list[str] = []
    times_outside = 0
    for _ in range(MAX_STOPS):
        await page.keyboard.press("Tab")
        judged: str = await page.evaluate(_JUDGE, MAX_TABS_IN_A_FIELD)
        times_outside += judged == "outside"
        if judged == "again" or times_outside == 2:
            break
        if judged and judged != "outside":
            faults.append(judged)
        if "does not leave" in judged:
            break
    faults += await page.evaluate(_MISSED)
    return faults
