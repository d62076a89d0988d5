// What the pages do beyond links and forms. Everything works without it.
"use strict";

// The server writes times in the reader's zone; it learns it here.
(() => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone && !document.cookie.split("; ").includes(`remit-zone=${encodeURIComponent(zone)}`)) {
    document.cookie = `remit-zone=${encodeURIComponent(zone)}; Path=/; Max-Age=31536000; SameSite=Strict`;
  }
})();

// Copy the text of an element; without a clipboard (plain http from another machine) select it instead.
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  const done = () => { button.textContent = "Copied"; };
  if (navigator.clipboard && window.isSecureContext) {
    navigator.clipboard.writeText(source.textContent).then(done, () => select(source));
  } else {
    select(source);
  }
});

function select(element) {
  const range = document.createRange();
  range.selectNodeContents(element);
  const selection = window.getSelection();
  selection.removeAllRanges();
  selection.addRange(range);
}
