// @ts-check
/**
 * Search, copy buttons and requests for the docs page, which shows everything without them too.
 * Texts enter the page as text only, never as markup.
 */

const KEY_ITEM = "duetime-api-key";
const TIMEOUT_SECONDS = 60;
const MAX_SHOWN_CHARACTERS = 200_000;
const COPIED_MILLISECONDS = 2_000;

/**
 * @template {Element} T
 * @param {ParentNode} parent
 * @param {string} selector
 * @param {new () => T} type
 * @returns {T}
 */
function find(parent, selector, type) {
  const found = parent.querySelector(selector);
  if (!(found instanceof type)) throw new Error(`the page has no ${selector}`);
  return found;
}

/**
 * @param {string} selector
 * @param {ParentNode} [parent]
 * @returns {HTMLElement[]}
 */
function findAll(selector, parent = document) {
  return [...parent.querySelectorAll(selector)].filter((each) => each instanceof HTMLElement);
}

// The key stays in this tab: in the field and in the tab's own storage, which a browser may refuse.

const keyField = find(document, "#api-key", HTMLInputElement);

function restoreKey() {
  try {
    keyField.value ||= sessionStorage.getItem(KEY_ITEM) ?? "";
  } catch {
    // The field alone keeps the key then.
  }
}

function keepKey() {
  try {
    if (keyField.value) sessionStorage.setItem(KEY_ITEM, keyField.value);
    else sessionStorage.removeItem(KEY_ITEM);
  } catch {
    // As above.
  }
}

/** @returns {string} The key's UTF-8 bytes, one character each: the only text a header takes. */
function keyBytes() {
  return String.fromCharCode(...new TextEncoder().encode(keyField.value.trim()));
}

// Search

const searchField = find(document, "#search", HTMLInputElement);
const found = find(document, "#found", HTMLElement);
const menuGroups = findAll("nav details").map((element) => ({
  element: /** @type {HTMLDetailsElement} */ (element),
  isOpen: element.hasAttribute("open"),
}));
const entries = findAll("main section").map((section) => ({
  section,
  item: find(document, `nav li:has(a[href="#${section.id}"])`, HTMLLIElement),
  names: textOf(findAll("h3, .path, dt", section)),
}));

/** @param {HTMLElement[]} elements */
function textOf(elements) {
  return elements.map((each) => each.textContent).join(" ").toLowerCase();
}

/** Shows the sections with every word in title, path or fields; else, those with it anywhere. */
function search() {
  const words = searchField.value.toLowerCase().split(/\s+/).filter(Boolean);
  const searching = words.length > 0;
  const named = entries.filter(({ names }) => words.every((word) => names.includes(word)));
  const matches = named.length
    ? named
    : entries.filter(({ section }) => words.every((word) => textOf([section]).includes(word)));
  for (const entry of entries) {
    entry.section.hidden = entry.item.hidden = !matches.includes(entry);
  }
  for (const { element, isOpen } of menuGroups) {
    element.hidden = findAll("li", element).every((each) => each.hidden);
    element.open = searching || isOpen;
  }
  for (const group of findAll(".group")) {
    group.hidden = findAll("section", group).every((each) => each.hidden);
  }
  find(document, ".intro", HTMLElement).hidden = searching;
  document.documentElement.classList.toggle("searching", searching);
  const count = matches.length ? `${matches.length} of ${entries.length} match` : "Nothing matches";
  found.textContent = searching ? count : "";
}

function clearSearch() {
  searchField.value = "";
  search();
}

/** @param {KeyboardEvent} event */
function useSearchKeys(event) {
  const typing = event.target instanceof Element && event.target.closest("input,select,textarea");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    searchField.focus();
    searchField.select();
  } else if (event.key === "Escape" && event.target === searchField) {
    clearSearch();
  }
}

/** Goes to the first match. */
function openFirstMatch() {
  const first = entries.find(({ section }) => !section.hidden);
  if (first) location.hash = first.section.id;
}

/** A link may lead to a section that the search has hidden. */
function followLink() {
  const target = document.getElementById(location.hash.slice(1));
  if (target?.closest("[hidden]")) {
    clearSearch();
    target.scrollIntoView();
  }
}

function markCurrentSection() {
  const observer = new IntersectionObserver(
    (changes) => {
      for (const { target, isIntersecting } of changes) {
        const link = find(document, `nav a[href="#${target.id}"]`, HTMLAnchorElement);
        if (isIntersecting) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    },
    { rootMargin: "-15% 0px -84% 0px" },
  );
  for (const { section } of entries) observer.observe(section);
}

// Copy

/** @param {HTMLElement} button */
async function copy(button) {
  const block = find(/** @type {Element} */ (button.parentElement), "pre", HTMLElement);
  const copied = await copyText(block);
  button.textContent = copied ? "Copied" : "Selected";
  setTimeout(() => (button.textContent = "Copy"), COPIED_MILLISECONDS);
}

/**
 * @param {HTMLElement} block
 * @returns {Promise<boolean>} Whether it worked. If not, the text is selected.
 */
async function copyText(block) {
  try {
    await navigator.clipboard.writeText(block.textContent ?? "");
    return true;
  } catch {
    // Browsers offer the clipboard on https and localhost only.
    getSelection()?.selectAllChildren(block);
    return document.execCommand("copy");
  }
}

// Requests

/** A request that cannot be made of the values in the form. The message is for the visitor. */
class Unsendable extends Error {}

/**
 * @param {HTMLFormElement} form
 * @returns {string} The path with the values of the form's fields.
 */
function pathOf(form) {
  const query = new URLSearchParams();
  let path = form.dataset.path ?? "";
  for (const field of findAll("[data-in]", form)) {
    const { name, value } = /** @type {HTMLInputElement} */ (field);
    if (field.dataset.in === "query") {
      if (value) query.append(name, value);
    } else if (value === "." || value === "..") {
      throw new Unsendable(`${name} cannot be ${value} in a path. Name the timer in the body.`);
    } else {
      path = path.replace(`{${name}}`, () => encodeURIComponent(value));
    }
  }
  const asked = query.toString();
  return asked ? `${path}?${asked}` : path;
}

/**
 * @param {HTMLFormElement} form
 * @returns {Request}
 */
function requestOf(form) {
  const body = form.querySelector("textarea");
  const headers = new Headers();
  if ("needsKey" in form.dataset && keyField.value.trim()) headers.set("X-API-Key", keyBytes());
  if (body) headers.set("Content-Type", form.dataset.media ?? "");
  return new Request(pathOf(form), {
    method: form.dataset.method,
    headers,
    body: body?.value,
    cache: "no-store",
    credentials: "omit",
    mode: "same-origin",
    redirect: "error",
    signal: AbortSignal.timeout(TIMEOUT_SECONDS * 1_000),
  });
}

/**
 * @param {HTMLFormElement} form
 * @returns {boolean} Whether the visitor agrees, or need not be asked.
 */
function mayBeSent(form) {
  if (!("asksFirst" in form.dataset) || isDryRun(form.querySelector("textarea")?.value)) return true;
  const { method, title } = form.dataset;
  return confirm(`${title}?\n\n${method} ${location.origin}${pathOf(form)}\n\nThis cannot be undone.`);
}

/** @param {string} [body] */
function isDryRun(body) {
  try {
    return JSON.parse(body ?? "").dryRun === true;
  } catch {
    return false;
  }
}

/** @param {HTMLFormElement} form */
async function send(form) {
  const button = find(form, "[type=submit]", HTMLButtonElement);
  if (button.disabled) return;
  const startedAt = performance.now();
  try {
    if (!mayBeSent(form)) return;
    button.disabled = true;
    const response = await fetch(requestOf(form));
    const text = await response.text();
    const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
    const milliseconds = Math.round(performance.now() - startedAt);
    const outcome = `${response.status} ${response.statusText} in ${milliseconds} ms`;
    show(form, { outcome, failed: !response.ok, headers, text, status: response.status });
  } catch (error) {
    show(form, { outcome: reasonOf(error), failed: true, headers: "", text: "", status: 0 });
  } finally {
    button.disabled = false;
  }
}

/**
 * @param {unknown} error
 * @returns {string}
 */
function reasonOf(error) {
  if (error instanceof Unsendable) return error.message;
  if (error instanceof URIError) return "Not sent: a value is not valid Unicode.";
  if (error instanceof DOMException && error.name === "TimeoutError") {
    return `No answer within ${TIMEOUT_SECONDS} seconds. The request may have taken effect.`;
  }
  return `No answer: ${location.origin} cannot be reached. Is the server running?`;
}

/**
 * @param {HTMLFormElement} form
 * @param {{outcome: string, failed: boolean, headers: string, text: string, status: number}} answer
 */
function show(form, { outcome, failed, headers, text, status }) {
  const line = find(form, ".outcome", HTMLElement);
  line.textContent = outcome;
  line.className = `outcome ${failed ? "bad" : "ok"}`;
  find(form, ".hint", HTMLElement).hidden = status !== 401;
  find(form, ".headers", HTMLElement).textContent = headers;
  find(form, ".headers-of-answer", HTMLElement).hidden = !headers;
  find(form, ".body", HTMLElement).textContent = readable(text);
  const body = find(form, ".body-of-answer", HTMLElement);
  body.hidden = !text;
  // As much of the answer as fits, and its first line in any case.
  body.scrollIntoView({ block: "nearest" });
  line.scrollIntoView({ block: "nearest" });
}

/** @param {string} text */
function readable(text) {
  if (text.length > MAX_SHOWN_CHARACTERS) {
    const more = (text.length - MAX_SHOWN_CHARACTERS).toLocaleString("en");
    return `${text.slice(0, MAX_SHOWN_CHARACTERS)}\n… and ${more} more characters`;
  }
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  return indented(text);
}

/**
 * Indents JSON by its text: parsed numbers could change, payloads are kept to the letter.
 * @param {string} json
 */
function indented(json) {
  const tokens = json.match(/"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{},:]|[^\s[\]{},:"]+/g) ?? [];
  let depth = 0;
  let before = "";
  return tokens
    .map((token) => {
      const closes = token === "]" || token === "}";
      const isFirst = before === "[" || before === "{";
      if (closes) depth -= 1;
      const breaks = closes ? !isFirst : isFirst || before === ",";
      const space = breaks ? `\n${"  ".repeat(depth)}` : before === ":" ? " " : "";
      if (token === "[" || token === "{") depth += 1;
      before = token;
      return space + token;
    })
    .join("");
}

// The page's events

document.addEventListener("keydown", useSearchKeys);
document.addEventListener("click", ({ target }) => {
  if (target instanceof HTMLElement && target.matches(".copy")) void copy(target);
});
document.addEventListener("change", ({ target }) => {
  if (!(target instanceof HTMLSelectElement) || !target.matches(".example") || !target.form) return;
  const example = document.getElementById(target.value);
  find(target.form, "textarea", HTMLTextAreaElement).value = example?.textContent ?? "";
});
document.addEventListener("submit", (event) => {
  event.preventDefault();
  const form = /** @type {HTMLFormElement} */ (event.target);
  if (form.contains(searchField)) openFirstMatch();
  else void send(form);
});
searchField.addEventListener("input", () => {
  search();
  scrollTo(0, 0);
});
keyField.addEventListener("input", keepKey);
addEventListener("hashchange", followLink);
restoreKey();
markCurrentSection();
document.documentElement.classList.add("js");
