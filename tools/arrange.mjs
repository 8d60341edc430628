// Names the functions of a WebAssembly file by their places in the order in which they compress best, each beside those
// most like it: 5 KB less page. `wasm-opt --reorder-functions-by-name` then puts them there.
//
// usage: node tools/arrange.mjs IN OUT
import { readFileSync, writeFileSync } from "node:fs";

// Places of the table in which runs of three bytes are counted.
const PLACES = 4096;
const [IMPORTS, CODE, FUNCTION] = [2, 10, 0];

const [source, target] = process.argv.slice(2);
const bytes = readFileSync(source);
let at = 8; // behind the magic number and the version

function number() {
  let value = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++];
    value |= (byte & 127) << shift;
    if (byte < 128) return value;
  }
}

function skipText() {
  const length = number();
  at += length;
}

function skipLimits() {
  const flags = number();
  number();
  if (flags & 1) number();
}

// Functions come first among what is numbered; how many are imported.
function importedFunctions() {
  let functions = 0;
  for (let left = number(); left > 0; left--) {
    skipText();
    skipText();
    const kind = bytes[at++];
    if (kind === FUNCTION) {
      functions++;
      number();
    } else if (kind === 1) {
      at++;
      skipLimits();
    } else if (kind === 2) {
      skipLimits();
    } else {
      at += 2;
    }
  }
  return functions;
}

function readBodies() {
  const bodies = [];
  for (let left = number(); left > 0; left--) {
    const length = number();
    bodies.push(bytes.subarray(at, at + length));
    at += length;
  }
  return bodies;
}

// How often each run of three bytes is in `body`, by its place in the table.
function runs(body) {
  const counts = new Map();
  for (let end = 3; end <= body.length; end++) {
    const run = body[end - 3] | (body[end - 2] << 8) | (body[end - 1] << 16);
    const place = (Math.imul(run, 0x9e3779b1) >>> 16) % PLACES;
    counts.set(place, (counts.get(place) ?? 0) + 1);
  }
  return counts;
}

// The same as vectors of length 1, in which what few bodies have weighs more.
function vectors(bodies) {
  const counted = bodies.map(runs);
  const having = new Float64Array(PLACES);
  for (const counts of counted) for (const place of counts.keys()) having[place]++;
  return counted.map((counts) => {
    const places = Uint16Array.from(counts.keys());
    const weights = Float64Array.from(places, (place) =>
      Math.log1p(counts.get(place)) * Math.log((bodies.length + 1) / (having[place] + 1)),
    );
    const size = Math.hypot(...weights) || 1;
    return { places, weights: weights.map((weight) => weight / size) };
  });
}

// The indices of `bodies`, the longest first, each followed by the one most like it of those left.
function arranged(bodies) {
  const all = vectors(bodies);
  const left = new Set(bodies.keys());
  let last = bodies.reduce((longest, body, index) => (body.length > bodies[longest].length ? index : longest), 0);
  const order = [];
  while (left.delete(last)) {
    order.push(last);
    const table = new Float64Array(PLACES);
    all[last].places.forEach((place, index) => (table[place] = all[last].weights[index]));
    let most = -1;
    for (const other of left) {
      const { places, weights } = all[other];
      let alike = 0;
      for (let index = 0; index < places.length; index++) alike += table[places[index]] * weights[index];
      if (alike > most) [most, last] = [alike, other];
    }
  }
  return order;
}

function leb(value) {
  const out = [];
  for (; value > 127; value >>>= 7) out.push((value & 127) | 128);
  return Buffer.from([...out, value]);
}

const withLength = (content) => Buffer.concat([leb(content.length), content]);
const text = (words) => withLength(Buffer.from(words));

// The section of names, of functions alone.
function names(order, first) {
  const places = new Array(order.length);
  order.forEach((index, place) => (places[index] = place));
  const list = places.map((place, index) =>
    Buffer.concat([leb(first + index), text(String(place).padStart(6, "0"))]),
  );
  const functions = Buffer.concat([Buffer.from([1]), withLength(Buffer.concat([leb(list.length), ...list]))]);
  return Buffer.concat([Buffer.from([0]), withLength(Buffer.concat([text("name"), functions]))]);
}

let imported = 0;
let bodies = [];
while (at < bytes.length) {
  const section = bytes[at++];
  const length = number();
  const end = at + length;
  if (section === IMPORTS) imported = importedFunctions();
  if (section === CODE) bodies = readBodies();
  at = end;
}
writeFileSync(target, Buffer.concat([bytes, names(arranged(bodies), imported)]));
