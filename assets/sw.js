// The page without a network, and never an old one with it.
//
// A version is complete or not there: all its files, or none, go into a store named after the page's digest. The page
// itself is asked of the network first; its files carry their digests in their names and come from the store. What
// stands beside the page is kept as it was when last visited. Nothing of the addresses that follows ? or # is kept.
// Where there is a copy, what comes in its place must be the site's: whole, and sent in time.

// Written when the page is built (xtask/src/hooks/offline.rs): the digest of index.html, and the files that it names.
const DIGEST = "PAGE-DIGEST";
const FILES = ["PAGE-FILES"];
// How long a line that does not answer is waited for where there is a copy. Unit: millisecond.
const PATIENCE = 4000;

const folder = registration.scope;
const ours = "shardscope " + folder + " ";
const version = ours + DIGEST;

// The files without a digest in their names.
const UNNAMED = ["bytes.js", "inter.woff2", "reader.js", "readers.txt", "reading.js", "search.js", "shardscope-reader.js", "shardscope-reader_bg.wasm", "shardscope-worker.js", "shardscope-worker_bg.wasm", "tables.txt", "worker.js"];

const kind = (response) => (response.headers.get("Content-Type") || "").split(";")[0];

// The files have just been loaded by the page: the browser's own cache has them. The page must be the one of this version.
const fill = async () => {
  const store = await caches.open(version);
  const page = new Request(folder, { cache: "no-cache", integrity: DIGEST });
  const files = FILES.map((file) => new Request(file, { cache: UNNAMED.includes(file) ? "no-cache" : "force-cache" }));
  await store.addAll([page, ...files]);
  const kinds = await Promise.all(FILES.map(async (file) => kind(await store.match(file))));
  if (kinds.includes("text/html")) {
    await caches.delete(version);
    throw new Error("not the site's files");
  }
  await skipWaiting();
};

const tidy = async () => {
  for (const name of await caches.keys()) {
    if (name.startsWith(ours) && name !== version) await caches.delete(name);
  }
};

// Whether a page is one of this site, and all of it: half of one that was uploaded ends elsewhere.
const whole = (text) => text.includes("Shardscope") && text.trimEnd().endsWith("</html>");

// Whether what was sent in the place of `kept` is a page or file of this site, with all that it needs: not a network's sign-in
// page, not what a server says when it is broken, not half of an update.
const good = async (sent, kept) => {
  if (!sent.ok || kind(sent) !== kind(kept)) return false;
  if (kind(sent) !== "text/html") return true;
  const text = await sent.clone().text();
  if (text === (await kept.clone().text())) return true;
  if (!whole(text)) return false;
  // The files of a new edition are asked for here; the page then has them from the browser's cache.
  const named = [...text.matchAll(/(?:href|src)=["']?(?:\.\/)?([\w.-]+\.(?:css|js|wasm))\b/g)];
  const there = async ([, file]) => {
    const address = new URL(file, sent.url || folder).href;
    const found = (await caches.match(address)) || (await fetch(address));
    await found.blob();
    return found.ok && kind(found) !== "text/html";
  };
  return (await Promise.all(named.map(there))).every(Boolean);
};

// What the network has; fails where a copy is better.
const ask = async (url, redirect, kept) => {
  const fresh = await fetch(url, { cache: "no-cache", redirect });
  if (!kept) return fresh;
  // Whoever is led elsewhere goes there only if the site is there.
  const sent = fresh.type === "opaqueredirect" ? await fetch(url, { cache: "no-cache" }) : fresh;
  if (!(await good(sent, kept))) throw new Error("not the site's answer");
  return fresh;
};

// What is another's is not kept: a network's sign-in page, in the place of whatever was asked for. Nor is half of a page.
const keep = async (store, address, sent) => {
  if (kind(sent) !== "text/html" || whole(await sent.clone().text())) await store.put(address, sent);
};

const answer = async (event) => {
  const { url, redirect } = event.request;
  const address = url.split(/[?#]/)[0].replace(/index\.html$/, "");
  const store = await caches.open(version);
  const kept = await store.match(address);
  if (FILES.includes(address.slice(folder.length))) return kept || fetch(event.request);
  try {
    const asked = ask(url, redirect, kept);
    const late = (resolve, reject) => setTimeout(reject, PATIENCE);
    const fresh = await (kept ? Promise.race([asked, new Promise(late)]) : asked);
    if (fresh.ok && address !== folder) event.waitUntil(keep(store, address, fresh.clone()));
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
