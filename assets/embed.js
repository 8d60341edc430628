// <shard-scope view="memory" plan="/1?model=…"></shard-scope>: one panel of a plan as an element of any page.
//
// Load it with <script type="module" src="…/embed.js"></script> from where Shardscope is served, which must send
// Access-Control-Allow-Origin where that is another host. `view` is one of verdict, overview, suggestions, memory, time,
// schedule, communication, map, layers, gemms, search, settings, comparison, analysis-tool; `plan` is what follows # in a
// copied link; `gpu` (n0_g3) and `color` (stage, memory, traffic, tensor, data, …) are what the map shows; `theme` is
// light or dark, and otherwise as the page around is painted: with its switch, where it has one, or the reader's system.
// The element is as high as its panel.

const base = new URL("./", import.meta.url);
/** More than any panel needs. Unit: CSS pixel. */
const HIGHEST = 20000;

/** The luminance below which what is behind the element counts as dark. Unit: eighth bit of sRGB. */
const DARK = 128;

/** light or dark, as what lies behind `element` is painted; nothing where that is as the reader's system has it. */
function painted(element) {
  for (let behind = element; behind; behind = behind.parentElement) {
    const colour = getComputedStyle(behind).backgroundColor;
    const [red, green, blue, opacity = 1] = (/^rgba?\((.*)\)$/.exec(colour)?.[1] || "").split(/[ ,/]+/).map(Number);
    if (blue >= 0 && opacity > 0.5) return 0.299 * red + 0.587 * green + 0.114 * blue < DARK ? "dark" : "light";
  }
  // Nothing is painted: what shows is the browser's own canvas, which is white unless the page asks for another scheme.
  const scheme = getComputedStyle(document.documentElement).colorScheme;
  if (!/\bdark\b/.test(scheme)) return "light";
  return /\blight\b/.test(scheme) ? "" : "dark";
}

class ShardScope extends HTMLElement {
  static observedAttributes = ["view", "plan", "theme", "gpu", "color"];

  connectedCallback() {
    this.frame = document.createElement("iframe");
    this.frame.setAttribute("sandbox", "allow-scripts allow-same-origin allow-popups allow-downloads");
    this.frame.loading = "lazy";
    this.frame.width = "100%";
    this.frame.height = "520";
    this.frame.style.border = "0";
    this.style.display = "block";
    this.listen = (event) => {
      if (event.source !== this.frame.contentWindow || event.origin !== base.origin) return;
      const height = event.data?.shardscope?.height;
      if (typeof height === "number" && height > 0 && height < HIGHEST) this.frame.height = String(Math.ceil(height));
    };
    addEventListener("message", this.listen);
    // The switches of documentation sites set a class or an attribute of the page or its body.
    this.watch = new MutationObserver(() => this.show());
    for (const place of [document.documentElement, document.body]) this.watch.observe(place, { attributes: true });
    this.append(this.frame);
    this.show();
  }

  disconnectedCallback() {
    removeEventListener("message", this.listen);
    this.watch.disconnect();
    this.frame.remove();
    this.frame = undefined;
  }

  attributeChangedCallback() {
    if (this.frame) this.show();
  }

  show() {
    const address = new URL(base);
    address.searchParams.set("embed", this.getAttribute("view") || "verdict");
    const theme = this.getAttribute("theme") || painted(this);
    if (theme) address.searchParams.set("theme", theme);
    for (const name of ["gpu", "color"]) {
      if (this.hasAttribute(name)) address.searchParams.set(name, this.getAttribute(name));
    }
    address.hash = this.getAttribute("plan") || "";
    this.frame.title = this.getAttribute("title") || "Shardscope: " + (this.getAttribute("view") || "verdict");
    if (this.frame.src !== address.href) this.frame.src = address.href;
  }
}

if (!customElements.get("shard-scope")) customElements.define("shard-scope", ShardScope);
