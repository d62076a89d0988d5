"use strict";
// Shows what waits, and opens its page of this server when it is touched. It sees no other request of the console.
self.addEventListener("push", (event) => {
  const notice = event.data.json();
  event.waitUntil(self.registration.showNotification(notice.title, { body: notice.body, tag: notice.id, data: notice.path }));
});
self.addEventListener("notificationclick", (event) => {
  const page = new URL(event.notification.data, self.location.origin);
  event.notification.close();
  event.waitUntil(self.clients.openWindow(page.origin === self.location.origin ? page.href : "/inbox"));
});
