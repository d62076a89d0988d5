"use strict";
(() => {
  const text = document.getElementById("text"), kind = document.getElementById("kind"), count = document.getElementById("count");
  if (!text) return;
  const steps = [...document.querySelectorAll("details")].map((box) => ({ box, words: box.textContent.toLowerCase() }));
  const show = () => {
    const wanted = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { box, words } of steps) {
      const fits = wanted.every((word) => words.includes(word)) && (!kind.value || box.classList.contains(kind.value));
      box.classList.toggle("hidden", !fits);
      shown += fits;
    }
    count.textContent = `${shown} of ${steps.length} steps`;
  };
  text.addEventListener("input", show);
  kind.addEventListener("change", show);
  const open = () => {
    const box = location.hash && document.getElementById(location.hash.slice(1));
    if (box instanceof HTMLDetailsElement) { box.open = true; box.classList.remove("hidden"); box.scrollIntoView(); }
  };
  addEventListener("hashchange", open);
  addEventListener("beforeprint", () => steps.forEach(({ box }) => { box.open = true; }));
  open();
  show();
})();
