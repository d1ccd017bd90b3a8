// The dialog that pauses an endpoint. Without this script the links lead to the page with the dialog.

const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("pause"));
const form = /** @type {HTMLFormElement} */ (dialog.querySelector("form"));
const endpoint = /** @type {HTMLInputElement} */ (form.elements.namedItem("endpoint"));
const reason = /** @type {HTMLInputElement} */ (form.elements.namedItem("reason"));

function show() {
  if (dialog.open) dialog.close();
  dialog.showModal();
  (endpoint.value && !form.querySelector(".wrong") ? reason : endpoint).focus();
}

if (dialog.open) show();

document.addEventListener("click", (event) => {
  const link = /** @type {Element} */ (event.target).closest("a[data-pause]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  endpoint.value = /** @type {HTMLElement} */ (link).dataset.pause ?? "";
  reason.value = "";
  for (const field of form.querySelectorAll(".wrong")) field.classList.remove("wrong");
  for (const error of form.querySelectorAll(".error")) error.setAttribute("hidden", "");
  show();
});
