// Keys for those who like them: a list of them behind "?", and a switch that turns them off.
"use strict";

(() => {
  const dialog = document.getElementById("keys");
  const opener = document.getElementById("keys-open");
  const choice = document.getElementById("keys-on");
  if (!dialog || !opener || !dialog.showModal) return;
  const rows = ".list tbody th a, .list tbody .about > a:first-child, .steps tbody th a, .needs a:first-of-type, .board .card > a";
  let going = 0;

  opener.hidden = false;
  opener.addEventListener("click", () => dialog.showModal());
  choice.checked = localStorage.getItem("remit-keys") !== "off";
  choice.addEventListener("change", () => localStorage.setItem("remit-keys", choice.checked ? "on" : "off"));

  document.addEventListener("keydown", (event) => {
    if (!choice.checked || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || dialog.open) return;
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if (typing) {
      if (event.key === "Escape") typing.blur();
      return;
    }
    if (going && Date.now() - going < 1500) {
      going = 0;
      const page = dialog.querySelector(`a[data-key="${CSS.escape(event.key)}"]`);
      if (page) { event.preventDefault(); location.assign(page.href); }
      return;
    }
    switch (event.key) {
      case "g": going = Date.now(); break;
      case "?": event.preventDefault(); dialog.showModal(); break;
      case "/": into(event, document.getElementById("find")); break;
      case "f": into(event, document.querySelector("main input[type=search]")); break;
      case "j": step(1); break;
      case "k": step(-1); break;
      case "Escape": closeOne(); break;
      default:
    }
  });

  function into(event, field) {
    if (!field) return;
    event.preventDefault();
    if (field.closest("details")) field.closest("details").open = true;
    field.focus();
    field.select();
  }

  function step(by) {
    const all = [...document.querySelectorAll(rows)].filter((one) => one.offsetParent !== null);
    if (!all.length) return;
    const at = all.indexOf(document.activeElement);
    const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by));
    all[next].focus();
  }

  // The innermost thing that stands open: a menu, else the step that is shown whole.
  function closeOne() {
    const menu = document.activeElement.closest("details.pop[open]") || document.querySelector("details.pop[open]");
    if (menu) { menu.open = false; menu.querySelector("summary").focus(); return; }
    document.querySelector("#step .close a")?.click();
  }
})();
