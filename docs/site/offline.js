// Keeps what the page of kernels has loaded, so that it also opens and runs without a network: a service worker. What
// the network has comes first.
const KEPT = "flashladder-page";
const BY_ITSELF = /\/clang\/Compiler\.wasm\.gz$/; // kernels.js keeps it

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

async function keep(address) {
  if (BY_ITSELF.test(new URL(address).pathname)) return;
  const found = await fetch(address);
  if (found.ok) await (await caches.open(KEPT)).put(address, found);
}

// The addresses that the page had loaded before this worker was there.
self.addEventListener("message", (event) => {
  const done = Promise.allSettled(event.data.map(keep)).then(() => event.source?.postMessage("kept"));
  event.waitUntil(done);
});

async function answer(request) {
  let found;
  try {
    found = await fetch(request);
  } catch (error) {
    found = await caches.match(request.url, { ignoreSearch: true });
    if (!found) throw error;
    return found;
  }
  if (found.ok && !BY_ITSELF.test(new URL(request.url).pathname)) {
    await (await caches.open(KEPT)).put(request.url, found.clone()).catch(() => {});
  }
  return found;
}

self.addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  if (method === "GET" && new URL(url).origin === self.location.origin) event.respondWith(answer(event.request));
});
