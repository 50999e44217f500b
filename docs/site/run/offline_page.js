// From the first visit on the page is there without a network, too, where the browser allows it.
// mark: of the document's data, where what is loaded is kept.
export async function keepForOffline(mark) {
  const worker = await navigator.serviceWorker?.register("offline.js").catch(() => null);
  if (!worker) return;
  await navigator.serviceWorker.ready;
  const loaded = performance.getEntriesByType("resource").map(({ name }) => name.split("#")[0]);
  const own = [location.href.split(/[?#]/)[0], ...loaded].filter((name) => name.startsWith(location.origin));
  navigator.serviceWorker.addEventListener("message", () => {
    document.documentElement.dataset[mark] = "1";
  });
  worker.active.postMessage([...new Set(own)]);
}
