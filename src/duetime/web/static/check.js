// Checks a form while somebody types: the service says what is wrong with each field. Without this
// script the form is checked when it is sent.
import { say, zone } from "./shell.js";

const PAUSE_MS = 300;
const INDENT = "  ";

/** @typedef {{errors?: Record<string, string>, says?: Record<string, string>,
 *   formatted?: Record<string, string>, message?: string}} Answer */

/** @param {HTMLFormElement} form @param {boolean} isSending @returns {Promise<Answer | null>} */
async function ask(form, isSending) {
  const body = new URLSearchParams();
  for (const [name, value] of new FormData(form)) body.append(name, String(value));
  if (isSending) body.append("sending", "yes");
  const headers = { accept: "application/json" };
  try {
    const reply = await fetch(form.dataset.check ?? "", { method: "POST", body, headers });
    return await reply.json();
  } catch {
    return null; // Nobody answers now. The form is checked when it is sent.
  }
}

/** @param {Element} control @param {string} part @param {string} words */
function tell(control, part, words) {
  const place = document.getElementById(`${control.id}-${part}`);
  if (!place) return;
  if (place.textContent !== words) place.textContent = words;
  place.hidden = !words;
}

/** @param {HTMLFormElement} form @param {Answer} answer */
function show(form, answer) {
  for (const control of form.querySelectorAll("[name]:not([type=hidden])")) {
    const name = control.getAttribute("name") ?? "", error = answer.errors?.[name] ?? "";
    tell(control, "error", error);
    tell(control, "says", answer.says?.[name] ?? "");
    control.setAttribute("aria-invalid", String(Boolean(error)));
    control.closest(".field")?.classList.toggle("wrong", Boolean(error));
  }
  const trouble = form.querySelector("[data-form-trouble]");
  if (trouble instanceof HTMLElement) {
    trouble.textContent = answer.message ?? "";
    trouble.hidden = !answer.message;
  }
}

/** Go on with the indentation of the line above. @param {KeyboardEvent} event */
function indent(event) {
  const area = event.target;
  if (!(area instanceof HTMLTextAreaElement) || event.key !== "Enter" || event.isComposing) return;
  const { value, selectionStart: at, selectionEnd: end } = area;
  const line = value.slice(value.lastIndexOf("\n", at - 1) + 1, at);
  const deeper = /[[{]\s*$/.test(line) ? INDENT : "";
  event.preventDefault();
  area.setRangeText("\n" + (/^[ \t]*/.exec(line)?.[0] ?? "") + deeper, at, end, "end");
  area.dispatchEvent(new Event("input", { bubbles: true }));
}

/** An instant in the zone that the page shows, with its offset and all of its decimals. @param {string} iso */
function local(iso) {
  const at = new Date(iso), minutes = -at.getTimezoneOffset(), size = Math.abs(minutes);
  if (zone() === "UTC" || Number.isNaN(at.getTime())) return iso;
  const offset = [size / 60, size % 60].map((part) => String(Math.floor(part)).padStart(2, "0")).join(":");
  return at.toLocaleString("sv-SE") + (/\.\d+/.exec(iso)?.[0] ?? "") + (minutes < 0 ? "-" : "+") + offset;
}

for (const field of document.querySelectorAll("input[data-instant]")) {
  if (field instanceof HTMLInputElement && /^\d{4}-\S+Z$/.test(field.value)) field.value = local(field.value);
}

/** @param {HTMLFormElement} form */
function watch(form) {
  let timeout = 0, asked = 0, isSending = false;
  const check = async (isSending = false) => {
    const number = ++asked, answer = await ask(form, isSending);
    if (!answer || number !== asked) return null;
    show(form, answer);
    return answer;
  };
  form.addEventListener("input", () => {
    clearTimeout(timeout);
    timeout = setTimeout(() => check(), PAUSE_MS);
  });
  // A form with a mistake stays: the page that would answer it cannot be gone back to.
  form.addEventListener("submit", async (event) => {
    if (form.dataset.checked) return;
    event.preventDefault();
    if (isSending) return;
    isSending = true;
    clearTimeout(timeout);
    const answer = await check(true);
    isSending = false;
    if (Object.keys(answer?.errors ?? {}).length) {
      const wrong = /** @type {HTMLElement | null} */ (form.querySelector("[aria-invalid=true], [data-form-trouble]:not([hidden])"));
      wrong?.closest("details")?.setAttribute("open", "");
      wrong?.scrollIntoView({ block: "nearest" });
      wrong?.focus();
      return;
    }
    form.dataset.checked = "yes";
    form.requestSubmit(event.submitter);
    delete form.dataset.checked;
  });
  form.addEventListener("keydown", (event) => {
    if (/** @type {Element} */ (event.target).matches("[data-json]")) indent(event);
  });
  for (const button of form.querySelectorAll("[data-format]")) {
    if (button instanceof HTMLElement) button.hidden = false;
    button.addEventListener("click", async () => {
      const name = button.getAttribute("data-format") ?? "", answer = await check();
      const area = form.elements.namedItem(name), text = answer?.formatted?.[name];
      if (area instanceof HTMLTextAreaElement && text !== undefined) area.value = text;
      say(text === undefined ? "Not valid JSON" : "Formatted");
    });
  }
}

for (const form of document.querySelectorAll("form[data-check]")) {
  if (form instanceof HTMLFormElement) watch(form);
}
