"use strict";
// Asks the browser for an endpoint and its keys, and sends them with the form.
const form = document.getElementById("device");
const note = document.getElementById("device-note");
async function subscribe() {
  const found = await navigator.serviceWorker.register("/channels/push/worker.js", { scope: "/channels/push/" });
  const asked = { userVisibleOnly: true, applicationServerKey: form.dataset.key };
  const { endpoint, keys } = (await found.pushManager.subscribe(asked)).toJSON();
  Object.assign(form.elements.endpoint, { value: endpoint });
  Object.assign(form.elements.p256dh, { value: keys.p256dh });
  Object.assign(form.elements.auth, { value: keys.auth });
  form.submit();
}
if (form !== null) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    note.textContent = "Asking the browser…";
    if (!("serviceWorker" in navigator && "PushManager" in window)) {
      note.textContent = "This browser takes no notices here. On an iPhone, add the console to the home screen first.";
      return;
    }
    subscribe().catch((error) => {
      note.textContent = `The browser refused: ${error.message}`;
    });
  });
}
