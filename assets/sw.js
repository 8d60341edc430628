// The page without a network, and never an old one with it.
//
// A version is complete or not there: all its files, or none, go into a store named after the page's digest. The page
// itself is asked of the network first; its files carry their digests in their names and come from the store. What
// stands beside the page is kept as it was when last visited. Nothing of the addresses that follows ? or # is kept.

// Written when the page is built (xtask/src/hooks/offline.rs): the digest of index.html, and the files that it names.
const DIGEST = "PAGE-DIGEST";
const FILES = ["PAGE-FILES"];
// How long a line that does not answer is waited for where there is a copy. Unit: millisecond.
const PATIENCE = 4000;

const folder = registration.scope;
const ours = "shardscope " + folder + " ";
const version = ours + DIGEST;

// The files without a digest in their names.
const UNNAMED = ["bridge.tsv", "defaults.txt", "inter.woff2", "models.tsv", "names.txt", "nemo-rl.txt", "rules.txt", "titan.tsv", "worker.js"];

// The files have just been loaded by the page: the browser's own cache has them. The page must be the one of this version.
const fill = async () => {
  const page = new Request(folder, { cache: "no-cache", integrity: DIGEST });
  const files = FILES.map((file) => new Request(file, { cache: UNNAMED.includes(file) ? "no-cache" : "force-cache" }));
  await (await caches.open(version)).addAll([page, ...files]);
  await skipWaiting();
};

const tidy = async () => {
  for (const name of await caches.keys()) {
    if (name.startsWith(ours) && name !== version) await caches.delete(name);
  }
};

const answer = async (event) => {
  const { url, redirect } = event.request;
  const address = url.split(/[?#]/)[0].replace(/index\.html$/, "");
  const store = await caches.open(version);
  const kept = await store.match(address);
  if (FILES.includes(address.slice(folder.length))) return kept || fetch(event.request);
  try {
    const asked = fetch(url, { cache: "no-cache", redirect });
    const late = (resolve, reject) => setTimeout(reject, PATIENCE);
    const fresh = await (kept ? Promise.race([asked, new Promise(late)]) : asked);
    if (fresh.ok && address !== folder) event.waitUntil(store.put(address, fresh.clone()));
    return fresh;
  } catch (_) {
    return kept || Response.error();
  }
};

addEventListener("install", (event) => event.waitUntil(fill()));
// The page that is open asks for the search's worker here from now on.
addEventListener("activate", (event) => event.waitUntil(tidy().then(() => clients.claim())));
addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  if (method === "GET" && url.startsWith(folder)) event.respondWith(answer(event));
});
