// The list of timers: rows by keyboard, and a choice of rows that stays while the list changes.
import { onKey, say } from "./shell.js";

const MOST_CHOSEN = 200;
const list = document.querySelector("[data-live=list]");
const form = /** @type {HTMLFormElement | null} */ (document.getElementById("chosen"));
/** The rows that are chosen, also those that have left the page since. @type {Set<string>} */
const chosen = new Set();

/** @returns {HTMLInputElement[]} */
const boxes = () => [...(list?.querySelectorAll("input[name=timer]") ?? [])].map((box) => /** @type {HTMLInputElement} */ (box));

function show() {
  const here = boxes(), on = here.filter((box) => chosen.has(box.value)).length;
  for (const box of here) box.checked = chosen.has(box.value);
  const all = /** @type {HTMLInputElement | null} */ (list?.querySelector("[data-pick-all]") ?? null);
  if (all) {
    all.checked = here.length > 0 && on === here.length;
    all.indeterminate = on > 0 && on < here.length;
  }
  if (!form) return;
  form.toggleAttribute("data-none", !chosen.size);
  const away = chosen.size - on;
  const words = chosen.size ? `${chosen.size} chosen${away ? ` (${away} not on this page)` : ""}` : "Choose timers to act on";
  const count = form.querySelector("[data-chosen]");
  if (count && count.textContent !== words) count.textContent = words;
  for (const button of form.querySelectorAll("button[name=action]")) button.toggleAttribute("disabled", !chosen.size);
  form.querySelector("[data-clear]")?.toggleAttribute("hidden", !chosen.size);
  const everything = form.querySelector("[data-everything]"), isMore = list?.querySelector(".pager [rel]");
  everything?.toggleAttribute("hidden", !isMore || on === 0 || on < here.length);
  if (everything) everything.textContent = `All ${list?.querySelector(".summary b")?.textContent ?? ""} that match`;
}

/** @param {string[]} keys @param {boolean} isOn */
function choose(keys, isOn) {
  for (const key of keys) {
    if (!isOn) chosen.delete(key);
    else if (chosen.size < MOST_CHOSEN) chosen.add(key);
    else say(`At most ${MOST_CHOSEN} timers can be chosen by hand: use everything that matches`);
  }
  show();
  say(`${chosen.size} chosen`);
}

/** The box that was clicked last: a click with Shift goes on from there. */
let last = "";
list?.addEventListener("click", (event) => {
  const box = /** @type {HTMLInputElement} */ (event.target);
  if (box.name !== "timer") return;
  const keys = boxes().map((each) => each.value), from = keys.indexOf(last), to = keys.indexOf(box.value);
  if (/** @type {MouseEvent} */ (event).shiftKey && from >= 0) choose(keys.slice(Math.min(from, to), Math.max(from, to) + 1), box.checked);
  last = box.value;
});
list?.addEventListener("change", (event) => {
  const box = /** @type {HTMLInputElement} */ (event.target);
  if (box.name === "timer") choose([box.value], box.checked);
  else if (box.matches("[data-pick-all]")) choose(boxes().map((each) => each.value), box.checked);
});
list?.addEventListener("live", show);
form?.querySelector("[data-clear]")?.addEventListener("click", () => choose([...chosen], false));
form?.querySelector("[data-everything]")?.addEventListener("click", (event) => {
  event.stopPropagation();
  follow(".bar .drop:not([open]) > summary");
  /** @type {HTMLElement | null} */ (document.querySelector(".bar .panel button"))?.focus();
});
form?.addEventListener("formdata", (event) => {
  event.formData.delete("timer");
  for (const key of chosen) event.formData.append("timer", key);
});

// Empty fields stay out of the address.
document.getElementById("filters")?.addEventListener("formdata", (event) => {
  const data = event.formData, columns = data.getAll("column").join();
  for (const name of [...data.keys()]) if (data.getAll(name).join("") === "") data.delete(name);
  const usual = document.querySelector("[data-columns]")?.getAttribute("data-columns");
  if (columns === usual) data.delete("column");
});

/** @returns {HTMLAnchorElement[]} */
const links = () => [...(list?.querySelectorAll("a[data-open]") ?? [])].map((link) => /** @type {HTMLAnchorElement} */ (link));
const current = () => document.activeElement?.closest("tr[data-key]")?.querySelector("a[data-open]") ?? null;

/** @param {number} step */
function move(step) {
  const all = links(), at = all.findIndex((link) => link === current());
  const next = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : at + step];
  next?.focus();
  next?.closest("tr")?.scrollIntoView({ block: "nearest" });
}

/** @param {string} selector */
const follow = (selector) => /** @type {HTMLElement | null} */ (document.querySelector(selector))?.click();

onKey("/", () => document.getElementById("id_prefix")?.focus());
onKey("j", () => move(1));
onKey("k", () => move(-1));
onKey("n", () => follow(".pager [rel=next]"));
onKey("p", () => follow(".pager [rel=prev]"));
onKey("e", () => {
  const link = /** @type {HTMLAnchorElement | null} */ (current());
  if (link) location.assign(`${link.href}?edit`);
});
onKey("x", () => {
  const box = current()?.closest("tr")?.querySelector("input[name=timer]");
  if (box instanceof HTMLInputElement) choose([box.value], !box.checked);
});
show();
