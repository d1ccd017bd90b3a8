// The form for a new timer: delays to choose from, and the zone of the browser.
import { say } from "./shell.js";

const delay = /** @type {HTMLInputElement} */ (document.getElementById("in"));
const zone = /** @type {HTMLInputElement} */ (document.getElementById("zone"));
const at = /** @type {HTMLInputElement} */ (document.getElementById("at"));
const occurrence = /** @type {HTMLSelectElement} */ (document.getElementById("occurrence"));

/** The service checks the form again. */
const changed = () => delay.dispatchEvent(new Event("input", { bubbles: true }));

for (const button of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-in]"))) {
  if (button.parentElement) button.parentElement.hidden = false;
  button.addEventListener("click", () => {
    delay.value = button.dataset.in ?? "";
    say(`In ${delay.value}`);
    changed();
  });
}

// Another local time may come once only.
for (const field of [at, zone]) field.addEventListener("input", () => (occurrence.value = ""));

const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (own && own !== "UTC") {
  document.getElementById("zones")?.prepend(new Option(`${own} (this browser)`, own));
  // A new form starts in the zone of its user.
  if (!at.defaultValue && zone.value === "UTC") zone.value = own;
}
