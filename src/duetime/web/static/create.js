// The form for a new timer: the service checks it while it is typed.
import { say } from "./shell.js";

const PAUSE_MS = 250;
const form = /** @type {HTMLFormElement} */ (document.getElementById("create"));
const sentence = /** @type {HTMLElement} */ (document.getElementById("sentence"));
const twice = /** @type {HTMLElement} */ (document.getElementById("twice"));
const zone = /** @type {HTMLInputElement} */ (document.getElementById("zone"));
/** Fields that the user has touched: only they are told what is wrong. @type {Set<string>} */
const touched = new Set(
  [...form.querySelectorAll(".error:not([hidden])")].map((error) => error.id.replace(/-error$/, "")),
);
/** @type {number | undefined} */
let timer;
let asked = 0;

/** @typedef {{problems: Record<string, string>, choices: [string, string] | null,
 *   sentence: string | null, defaults: Record<string, string>}} Checked */

/** Ask the service, and show its answer unless a later one was asked for meanwhile. */
async function check() {
  const number = ++asked;
  /** @type {Checked | undefined} */
  let checked;
  try {
    const answer = await fetch("/ui/create/check", {
      method: "POST",
      headers: { accept: "application/json" },
      body: new URLSearchParams(/** @type {any} */ (new FormData(form))),
    });
    if (answer.ok) checked = await answer.json();
    else if (number === asked) tell(`Not checked: ${(await answer.json()).message}.`, false);
  } catch {
    if (number === asked) tell("The service cannot be reached. What you typed is still here.", false);
  }
  if (checked && number === asked) show(checked);
}

/** @param {Checked} checked */
function show({ problems, choices, sentence: words, defaults }) {
  for (const error of form.querySelectorAll("[id$=-error]")) {
    const name = error.id.replace(/-error$/, ""), control = document.getElementById(name);
    const problem = name === "form" || touched.has(name) ? problems[name] : undefined;
    if (error.textContent !== (problem ?? "")) error.textContent = problem ?? "";
    /** @type {HTMLElement} */ (error).hidden = !problem;
    error.closest(".field")?.classList.toggle("wrong", Boolean(problem));
    if (problem) control?.setAttribute("aria-invalid", "true");
    else control?.removeAttribute("aria-invalid");
  }
  if (choices) {
    const [, first, second] = /** @type {NodeListOf<HTMLOptionElement>} */ (twice.querySelectorAll("option"));
    [first.textContent, second.textContent] = choices;
    twice.hidden = false;
  }
  for (const [name, text] of Object.entries(defaults)) {
    /** @type {HTMLInputElement} */ (document.getElementById(name)).placeholder = text;
  }
  const names = Object.keys(problems).map(labelOf).join(", ");
  tell(words ?? (touched.size ? `Missing or wrong: ${names}.` : "Fill in the form: this line then says what will happen."), Boolean(words));
}

/** @param {string} name */
const labelOf = (name) => form.querySelector(`label[for="${name}"]`)?.textContent ?? name;

/** @param {string} words @param {boolean} isGood */
function tell(words, isGood) {
  sentence.textContent = words;
  sentence.parentElement?.classList.toggle("good", isGood);
}

/** @param {number} pauseMs */
function checkSoon(pauseMs) {
  clearTimeout(timer);
  timer = setTimeout(check, pauseMs);
}

form.addEventListener("input", (event) => {
  touched.add(/** @type {HTMLInputElement} */ (event.target).name);
  checkSoon(PAUSE_MS);
});
form.addEventListener("change", (event) => {
  const { name } = /** @type {HTMLInputElement} */ (event.target);
  touched.add(name);
  // Another local time may come once only.
  if (name === "at" || name === "zone") {
    twice.hidden = true;
    /** @type {HTMLSelectElement} */ (document.getElementById("occurrence")).value = "";
  }
  checkSoon(0);
});

for (const place of form.querySelectorAll("[data-quick]")) {
  /** @type {HTMLElement} */ (place).hidden = false;
  place.addEventListener("click", (event) => {
    const { in: delay } = /** @type {HTMLElement} */ (event.target).dataset;
    if (!delay) return;
    /** @type {HTMLInputElement} */ (document.getElementById("in")).value = delay;
    say(`In ${delay}`);
    checkSoon(0);
  });
}

const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (own && own !== "UTC") {
  document.getElementById("zones")?.prepend(new Option(`${own} (this browser)`, own));
  // A new form starts in the zone of its user.
  if (zone.value === zone.defaultValue && !form.querySelector("#at[value]:not([value=''])")) zone.value = own;
}
check();
