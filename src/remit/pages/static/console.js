// What the pages do beyond links and forms. Everything works without it.
"use strict";

// The server writes times in the reader's zone. It learns the zone here, and the first page is loaded once more for it.
(() => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const cookie = `remit-zone=${encodeURIComponent(zone)}`;
  const known = () => document.cookie.split("; ").includes(cookie);
  if (!zone || known()) return;
  document.cookie = `${cookie}; Path=/; Max-Age=31536000; SameSite=Strict`;
  if (known() && document.body.dataset.again === "yes") location.reload();
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

// A step was opened or closed in place: the focus goes there. htmx begins by itself in a timer, which on a busy machine
// comes after the page is there: a link that is followed before it loads the whole page.
(() => {
  if (window.htmx) htmx.initialize();
  let stood = "";
  document.addEventListener("htmx:after:swap", () => {
    if (document.activeElement && document.activeElement !== document.body) return;
    const title = document.getElementById("step-name");
    if (title) {
      stood = title.dataset.step;
      title.focus();
    } else if (stood) {
      document.getElementById(`s-${stood}`)?.querySelector("a")?.focus();
    }
  });
})();

// A line that is typed is counted and completed by the server.
document.addEventListener("input", ({ target }) => {
  if (!target.dataset?.hints) return;
  clearTimeout(target.waits);
  target.waits = setTimeout(async () => {
    const typed = target.value;
    const answer = await fetch(`${target.dataset.hints}?${new URLSearchParams({ q: typed })}`).catch(() => null);
    if (!answer?.ok || target.value !== typed) return;
    const fresh = document.createElement("template");
    fresh.innerHTML = await answer.text();
    target.form.querySelector("output").textContent = fresh.content.querySelector("output")?.textContent ?? "";
    target.list?.replaceChildren(...fresh.content.querySelectorAll("option"));
  }, 150);
});

// The box of a group selects its rows; without scripts the server takes the whole group.
document.addEventListener("change", ({ target }) => {
  const group = target.closest("[data-group]")?.dataset.group;
  if (group === undefined || !target.form) return;
  const boxes = [...target.form.querySelectorAll(`[data-group="${CSS.escape(group)}"] input[type=checkbox]`)];
  if (target.dataset.all !== undefined) for (const box of boxes) box.checked = target.checked;
  else for (const box of boxes) if (box.dataset.all !== undefined && !target.checked) box.checked = false;
});

// Live: one stream for the tab that is seen. What changed comes as HTML of regions; nothing that is read is moved, and
// nothing that was opened or typed is lost.

// Only pages whose links swap a part of them load htmx.
function ready(element) {
  if (window.htmx) htmx.process(element);
}

(() => {
  const state = document.getElementById("live-state");
  if (!state || !window.EventSource) return;
  const news = document.getElementById("live-news");
  const later = new Map();
  const parts = [];
  let source = null, page = "", last = "", tries = 0, timer = 0, said = 0, pressed = null;

  function say(word, text) {
    state.dataset.state = word;
    state.textContent = text;
  }

  function open() {
    close();
    page = location.pathname + location.search;
    const query = new URLSearchParams({ page });
    if (last) query.set("last", last);
    source = new EventSource(`/live?${query}`);
    source.addEventListener("open", () => { tries = 0; say("live", "Live"); });
    source.addEventListener("regions", (event) => {
      last = event.lastEventId;
      for (const [id, what] of Object.entries(JSON.parse(event.data))) {
        if (typeof what === "string") take(id, what);
        else part(id, what);
      }
    });
    source.addEventListener("error", () => {
      const refused = source.readyState === EventSource.CLOSED;
      close();
      retry(refused);
    });
  }

  function close() {
    clearTimeout(timer);
    if (source) source.close();
    source = null;
  }

  // A stream that was refused says no more than that; a plain request says why.
  async function retry(refused) {
    let status = 0;
    if (refused) {
      const query = new URLSearchParams({ page });
      status = await fetch(`/live/status?${query}`).then((answer) => answer.status, () => 0);
    }
    if (status === 401) return say("out", "Logged out: load the page again");
    if (status === 404) return say("off", "");
    const seconds = Math.min(30, 2 ** tries++) * (0.5 + Math.random());
    say("off", `Offline, as of ${new Date().toLocaleTimeString()}`);
    timer = setTimeout(open, seconds * 1000);
  }

  function take(id, html) {
    const region = document.getElementById(id);
    if (!region) return;
    if (busy(region)) { later.set(id, html); return; }
    later.delete(id);
    const fresh = document.createElement("template");
    fresh.innerHTML = html;
    if (region.dataset.live === "rows") rows(region, fresh.content, true);
    else if (region.dataset.live === "log") rows(region, fresh.content, false);
    else whole(region, fresh.content);
  }

  // Of a log come only the rows that changed.
  function part(id, what) {
    const region = document.getElementById(id);
    if (!region) return;
    if (region.contains(pressed)) { parts.push([id, what]); return; }
    const fresh = document.createElement("template");
    fresh.innerHTML = what.rows;
    for (const gone of what.gone) document.getElementById(gone)?.remove();
    for (const row of [...fresh.content.children]) {
      const old = document.getElementById(row.id);
      if (old) put(old, row);
      else region.append(row);
      ready(row);
    }
  }

  // One row instead of another; a link in it that has the focus keeps it.
  function put(old, row) {
    const address = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    for (const box of old.querySelectorAll("input:checked")) {
      const again = row.querySelector(`input[name="${box.name}"][value="${CSS.escape(box.value)}"]`);
      if (again) again.checked = true;
    }
    if (old.classList.contains("current")) row.classList.add("current");
    old.replaceWith(row);
    if (address) [...row.querySelectorAll("a")].find((one) => one.getAttribute("href") === address)?.focus({ preventScroll: true });
  }

  // Somebody types here, has a form open, or is about to let go of a button: a click on what was replaced is lost.
  function busy(region) {
    if (region.contains(pressed)) return true;
    const active = document.activeElement;
    if (region.contains(active) && active.matches("input, textarea, select")) return true;
    return Boolean(region.querySelector("details[open] form"));
  }

  function whole(region, content) {
    if (same(region, content)) return;
    const focused = region.contains(document.activeElement) ? document.activeElement.getAttribute("href") || document.activeElement.textContent : null;
    const opened = [...region.querySelectorAll("details[open] > summary")].map((one) => one.textContent);
    region.replaceChildren(...content.childNodes);
    for (const summary of region.querySelectorAll("details > summary")) {
      if (opened.includes(summary.textContent)) summary.parentElement.open = true;
    }
    if (focused !== null) {
      const again = [...region.querySelectorAll("a, button, summary")].find((one) => (one.getAttribute("href") || one.textContent) === focused);
      if (again) again.focus({ preventScroll: true });
    }
    ready(region);
  }

  // Rows are changed each for itself. New ones are added at the end of a log; in a list they wait until asked for.
  function rows(region, content, hold) {
    const fresh = [];
    const kept = new Set([...content.children].map((row) => row.id));
    if (hold) fade(region, content);
    for (const row of [...content.children]) {
      const old = row.id && document.getElementById(row.id);
      if (!old) { fresh.push(row); continue; }
      old.classList.remove("gone");
      if (!same(old, row) && !old.contains(document.activeElement)) { put(old, row); ready(row); }
    }
    if (!hold) for (const row of [...region.children]) if (!kept.has(row.id)) row.remove();
    if (!hold) { region.append(...fresh); if (fresh.length) ready(region); return; }
    if (fresh.length) announce(region, fresh);
  }

  // A row that is no longer in the list stays where it is, dimmed. Rows that only moved to the next page are left alone.
  function fade(region, content) {
    let after = region.dataset.paged === "no";
    for (const row of [...region.children].reverse()) {
      if (!row.id) continue;
      if (content.querySelector(`#${CSS.escape(row.id)}`)) after = true;
      else if (after) row.classList.add("gone");
    }
  }

  function announce(region, fresh) {
    let bar = document.getElementById(`new-${region.id}`);
    if (!bar) {
      bar = document.createElement("p");
      bar.id = `new-${region.id}`;
      bar.className = "new";
      const button = document.createElement("button");
      button.type = "button";
      button.addEventListener("click", () => {
        const top = region.firstChild;
        for (const row of bar.rows) place(region, row, top);
        ready(region);
        bar.remove();
        region.querySelector("a")?.focus();
      });
      bar.append(button);
      (region.closest("table") || region).before(bar);
    }
    bar.rows = fresh;
    bar.firstChild.textContent = `${fresh.length} new – show`;
    if (Date.now() - said > 5000) { said = Date.now(); news.textContent = `${fresh.length} new`; }
  }

  // A row of a group goes to its end, its head above it, any other row to the top.
  function place(region, row, top) {
    const group = row.dataset.group;
    const alike = group === undefined ? [] : [...region.children].filter((one) => one.dataset.group === group);
    if (!alike.length) region.insertBefore(row, top);
    else if (row.classList.contains("group")) alike[0].before(row);
    else alike.at(-1).after(row);
  }

  function same(old, fresh) {
    return plain(old) === plain(fresh);
  }

  function plain(node) {
    const copy = node.cloneNode(true);
    for (const one of [copy, ...copy.querySelectorAll("*")]) {
      if (!one.removeAttribute) continue;
      one.removeAttribute("data-htmx-powered");
      if (one.localName === "details") one.removeAttribute("open");
      one.classList.remove("gone");
      if (!one.getAttribute("class")) one.removeAttribute("class");
    }
    const box = document.createElement("template");
    box.content.append(...(copy.nodeType === Node.DOCUMENT_FRAGMENT_NODE ? copy.childNodes : node.dataset?.live !== undefined ? copy.childNodes : [copy]));
    return box.innerHTML.replace(/<!--\/?live-->/g, "").trim();
  }

  function catchUp() {
    for (const [id, html] of [...later]) take(id, html);
    for (const [id, what] of parts.splice(0)) part(id, what);
  }
  function press(event) {
    if (event.type === "pointerdown" || event.key === " ") pressed = event.target;
  }
  function release() {
    setTimeout(() => { pressed = null; catchUp(); }, 0);
  }
  for (const name of ["pointerdown", "keydown"]) document.addEventListener(name, press, true);
  for (const name of ["pointerup", "pointercancel", "keyup"]) document.addEventListener(name, release, true);
  document.addEventListener("focusout", () => setTimeout(catchUp, 0));
  document.addEventListener("toggle", catchUp, true);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { close(); say("paused", "Paused"); } else open();
  });
  document.addEventListener("htmx:after:swap", () => {
    if (source && page !== location.pathname + location.search) { last = ""; open(); }
  });
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", (event) => { if (event.persisted) open(); });
  if (!document.hidden) open();
})();
