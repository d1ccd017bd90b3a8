// Keeps the live parts of a page up to date by one event stream, closed while the tab is hidden.
import { setClock, showTimes } from "./shell.js";

const view = document.querySelector("meta[name=live]")?.getAttribute("content") ?? "";
const csrf = document.querySelector("meta[name=csrf]")?.getAttribute("content") ?? "";
const state = /** @type {HTMLElement | null} */ (document.querySelector("[data-live-state]"));
const trouble = /** @type {HTMLElement | null} */ (document.querySelector("[data-trouble]"));
// @ts-ignore: not every version of TypeScript knows trusted types.
const policy = globalThis.trustedTypes?.createPolicy("duetime", { createHTML: (text) => text });
/** @type {EventSource | null} */
let source = null;
/** Whether somebody has typed or ticked something here, which a new page would lose. */
let isChanged = false;
document.addEventListener("input", () => (isChanged = true));

/** @param {string} name @param {string} words */
function show(name, words) {
  if (!state) return;
  state.hidden = false;
  state.dataset.state = name;
  const text = state.querySelector("[data-words]");
  if (text) text.textContent = words;
}

/** @param {Node} node */
const keyOf = (node) =>
  node instanceof Element ? node.id || node.getAttribute("data-key") || "" : "";

/** Make `old` like `fresh`, and keep every element that stays: focus, selection, scrolling and what
 * was typed are in them. @param {Element} old @param {Element} fresh */
function morph(old, fresh) {
  for (const { name } of [...old.attributes]) {
    const keeps = name === "open";
    if (!keeps && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  if (old === document.activeElement && old.matches("textarea, select")) return;
  morphChildren(old, fresh);
}

/** @param {Element} old @param {Element | DocumentFragment} fresh */
function morphChildren(old, fresh) {
  /** @type {Map<string, Element>} */
  const kept = new Map();
  for (const child of old.children) if (keyOf(child)) kept.set(keyOf(child), child);
  let at = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const key = keyOf(child);
    const match = key ? kept.get(key) : at && !keyOf(at) && isLike(at, child) ? at : null;
    if (!match) {
      old.insertBefore(child, at);
      continue;
    }
    if (match === at) at = at.nextSibling;
    else old.insertBefore(match, at);
    if (match instanceof Element) morph(match, /** @type {Element} */ (child));
    else if (match.nodeValue !== child.nodeValue) match.nodeValue = child.nodeValue;
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

/** @param {Node} one @param {Node} other */
const isLike = (one, other) =>
  one.nodeType === other.nodeType && one.nodeName === other.nodeName;

/** @param {Record<string, string>} blocks */
function update(blocks) {
  for (const [name, html] of Object.entries(blocks)) {
    const place = document.querySelector(`[data-live="${CSS.escape(name)}"]`);
    if (!place) continue;
    const fresh = document.createElement("template");
    fresh.innerHTML = policy ? policy.createHTML(html) : html;
    for (const input of fresh.content.querySelectorAll("input[name=csrf]")) input.setAttribute("value", csrf);
    showTimes(fresh.content);
    morphChildren(place, fresh.content);
    place.dispatchEvent(new CustomEvent("live", { bubbles: true }));
  }
  if (trouble) trouble.hidden = true;
  show("on", "Live");
}

/** @param {string} words @param {string} short */
function warn(words, short) {
  if (trouble) {
    trouble.hidden = false;
    trouble.textContent = words;
  }
  show("waiting", short);
}

function open() {
  if (source || document.hidden) return;
  source = new EventSource("/ui/events?view=" + encodeURIComponent(view));
  source.addEventListener("beat", (event) => {
    setClock(JSON.parse(event.data));
    if (trouble?.hidden !== false) show("on", "Live");
  });
  source.addEventListener("blocks", (event) => update(JSON.parse(event.data)));
  source.addEventListener("trouble", (event) => {
    warn(`This page shows what was last known: ${JSON.parse(event.data)}.`, "Not up to date");
  });
  source.addEventListener("signed-out", () => {
    if (!isChanged) return location.reload();
    warn("You are signed out. Sign in in another tab, then go on here.", "Signed out");
    tryAgain();
  });
  source.addEventListener("error", () => {
    show("waiting", "Reconnecting");
    if (source?.readyState === EventSource.CLOSED) tryAgain();
  });
}

function tryAgain() {
  close();
  setTimeout(open, 10_000);
}

function close() {
  source?.close();
  source = null;
}

document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
addEventListener("pagehide", close);
addEventListener("pageshow", open);
open();
