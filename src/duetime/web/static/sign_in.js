// The button that shows the key while it is typed.
const field = /** @type {HTMLInputElement | null} */ (document.getElementById("key"));
const button = /** @type {HTMLButtonElement | null} */ (document.querySelector("[data-shows-key]"));

if (field && button) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const isShown = field.type === "text";
    field.type = isShown ? "password" : "text";
    button.textContent = isShown ? "Show" : "Hide";
    field.focus();
  });
  // A browser keeps what was typed into text, and never what was typed into a password.
  field.form?.addEventListener("submit", () => { field.type = "password"; });
}
