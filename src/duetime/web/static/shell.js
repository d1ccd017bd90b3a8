// The parts of the frame that need a script: switches, times, questions before an action, keys.
// Pages import `say`, `onKey` and `showTimes` from here.

const root = document.documentElement;
const YEAR_SECONDS = 31536000;
/** How far the service's clock is ahead of this machine's, in milliseconds. */
let aheadMs = 0;

/** Tell users of screen readers what happened. @param {string} words */
export function say(words) {
  const said = document.getElementById("said");
  if (said) said.textContent = words;
}

/** @param {string} iso the service's time */
export function setClock(iso) {
  aheadMs = Date.parse(iso) - Date.now();
}

const UNITS = /** @type {[number, string][]} */ ([[YEAR_SECONDS, "y"], [86400, "d"], [3600, "h"], [60, "min"], [1, "s"]]);

/** @param {number} at @param {number} now @returns {string} such as "in 5 min" */
function distance(at, now) {
  const seconds = Math.abs(at - now) / 1000;
  const [size, unit] = UNITS.find(([size]) => seconds >= size * 0.95) ?? [1, "s"];
  const count = seconds / size;
  const words = `${count < 9.95 && size > 1 ? Math.round(count * 10) / 10 : Math.round(count)} ${unit}`;
  return seconds < 1 ? "now" : at > now ? `in ${words}` : `${words} ago`;
}

/** @param {Date} at @param {boolean} isExact */
function absolute(at, isExact) {
  const isUtc = root.dataset.times === "utc", zone = isUtc ? { timeZone: "UTC" } : {};
  const day = at.toLocaleDateString("sv-SE", zone);
  const isToday = day === new Date(Date.now() + aheadMs).toLocaleDateString("sv-SE", zone);
  const date = isToday && !isExact ? "" : day + " ";
  const time = at.toLocaleTimeString("sv-SE", zone);
  const parts = isExact ? "." + String(at.getUTCMilliseconds()).padStart(3, "0") : "";
  return date + time + parts + (isUtc ? " UTC" : "");
}

/** Write all instants below `top` as the switch says. @param {ParentNode} top */
export function showTimes(top = document) {
  const now = Date.now() + aheadMs;
  for (const element of top.querySelectorAll("time[data-style]")) {
    const time = /** @type {HTMLTimeElement} */ (element), at = new Date(time.dateTime);
    const { style } = time.dataset, clock = absolute(at, style === "exact");
    const away = distance(at.getTime(), now);
    const text = style === "relative" ? away : style === "both" ? `${clock} · ${away}` : clock;
    if (time.textContent !== text) time.textContent = text;
    time.title = `${time.dateTime} · ${away}`;
  }
}

/** The zone in which this page shows times. */
export const zone = () => (root.dataset.times === "utc" ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone);

// A time without a zone is one of the zone that the page shows.
document.addEventListener("formdata", (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target), data = event.formData;
  // Addresses carry it only if they need it.
  const isNeeded = form.method === "post" || [...data.values()].some((text) => /^\s*\d{4}-/.test(String(text)));
  if (form.matches("[data-zone]") && isNeeded) data.set("zone", zone());
});

/** Name the zone of this browser at the switch of times. */
function nameZone() {
  const button = document.querySelector("[data-switch=times]");
  button?.setAttribute("title", `Times are in ${zone()}`);
}
nameZone();

for (const button of document.querySelectorAll("[data-switch]")) {
  button.addEventListener("click", () => {
    const { switch: name = "", choices = "" } = /** @type {HTMLElement} */ (button).dataset;
    const all = choices.split(" "), next = all[(all.indexOf(root.dataset[name] ?? "") + 1) % all.length];
    root.dataset[name] = next;
    document.cookie = `duetime_${name}=${next}; path=/ui; max-age=${YEAR_SECONDS}; samesite=strict`;
    showTimes();
    nameZone();
    say(`${name}: ${next}`);
  });
}
showTimes();
setInterval(showTimes, 1000);

/** A double click sends a form once: the second answer would hide the first one.
 * @param {HTMLFormElement} form @param {Event} event */
function sendOnce(form, event) {
  if (form.getAttribute("method") !== "post" || event.defaultPrevented) return;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "yes";
  setTimeout(() => delete form.dataset.sent, 1000);
}

document.addEventListener("submit", (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target), words = form.dataset.confirm;
  const dialog = /** @type {HTMLDialogElement | null} */ (document.getElementById("confirm"));
  if (!words || !dialog || form.dataset.confirmed) return sendOnce(form, event);
  event.preventDefault();
  const title = dialog.querySelector("h2"), yes = dialog.querySelector("[data-yes]");
  if (title) title.textContent = words;
  if (yes) yes.textContent = form.dataset.yes ?? "Go on";
  dialog.returnValue = "";
  dialog.addEventListener("close", () => {
    if (dialog.returnValue !== "yes") return;
    form.dataset.confirmed = "yes";
    form.requestSubmit(event.submitter);
    delete form.dataset.confirmed;
  }, { once: true });
  dialog.showModal();
});

document.addEventListener("click", async (event) => {
  const target = /** @type {Element} */ (event.target);
  const copy = target.closest("[data-copy]"), shows = target.closest("[data-shows]");
  const code = copy?.parentElement?.querySelector("code");
  if (copy && code) {
    // Browsers lend the clipboard to pages on localhost and over TLS only.
    const words = navigator.clipboard ? "Copied" : "Press Ctrl+C";
    if (navigator.clipboard) await navigator.clipboard.writeText(code.textContent ?? "");
    else getSelection()?.selectAllChildren(code);
    const label = copy.querySelector("span");
    if (label) label.textContent = words;
    say(words);
  }
  const dialog = shows && document.getElementById(/** @type {HTMLElement} */ (shows).dataset.shows ?? "");
  if (dialog instanceof HTMLDialogElement) dialog.showModal();
  const closes = target.closest("[data-closes]");
  if (closes) closes.closest("dialog")?.close();
});
/** @type {HTMLElement | null} */ (document.querySelector("[data-opened]"))?.showPopover();

// Panels below a button close by Escape and by a click elsewhere.
/** @param {(drop: HTMLDetailsElement) => boolean} isToClose */
function closeDrops(isToClose) {
  for (const element of document.querySelectorAll("details.drop[open]")) {
    const drop = /** @type {HTMLDetailsElement} */ (element);
    if (!isToClose(drop)) continue;
    if (drop.contains(document.activeElement)) drop.querySelector("summary")?.focus();
    drop.open = false;
  }
}
document.addEventListener("click", (event) => closeDrops((drop) => !drop.contains(/** @type {Node} */ (event.target))));
document.addEventListener("keydown", (event) => event.key === "Escape" && closeDrops(() => true));

// The page goes on; the outcome of the action before is news for some seconds only.
const message = document.querySelector(".message");
if (message) setTimeout(() => message.remove(), 6_000 + 60 * (message.textContent ?? "").length);

/** @type {Map<string, (event: KeyboardEvent) => void>} */
const keys = new Map();
let before = "";

/** Run a function at a key, or at two one after the other ("g t"), while nothing is being typed.
 * @param {string} key @param {(event: KeyboardEvent) => void} run */
export function onKey(key, run) {
  keys.set(key, run);
}

document.addEventListener("keydown", (event) => {
  const target = /** @type {Element} */ (event.target);
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (target.closest("input:not([type=checkbox]), textarea, select, dialog[open]")) return;
  const run = keys.get(`${before} ${event.key}`) ?? keys.get(event.key);
  before = event.key;
  if (!run) return;
  event.preventDefault();
  run(event);
});

onKey("/", () => document.getElementById("jump")?.focus());
onKey("?", () => /** @type {HTMLDialogElement | null} */ (document.getElementById("help"))?.showModal());
onKey("g o", () => location.assign("/ui"));
onKey("g t", () => location.assign("/ui/timers"));
onKey("e", () => /** @type {HTMLElement | null} */ (document.querySelector("a[data-edit]"))?.click());
onKey("c", () => /** @type {HTMLElement | null} */ (document.querySelector("a[href='/ui/create']"))?.click());
