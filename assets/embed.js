// <shard-scope view="memory" plan="/1?model=…"></shard-scope>: one panel of a plan as an element of any page.
//
// Load it with <script type="module" src="…/embed.js"></script> from where Shardscope is served. `view` is one of
// verdict, memory, time, schedule, communication, map, comparison; `plan` is what follows # in a copied link; `theme`
// is light or dark and follows the reader's system otherwise. The element is as high as its panel.

const base = new URL("./", import.meta.url);
/** More than any panel needs. Unit: CSS pixel. */
const HIGHEST = 20000;

class ShardScope extends HTMLElement {
  static observedAttributes = ["view", "plan", "theme"];

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
      const height = Number(event.data && event.data.shardscope && event.data.shardscope.height);
      if (height > 0 && height < HIGHEST) this.frame.height = String(Math.ceil(height));
    };
    addEventListener("message", this.listen);
    this.append(this.frame);
    this.show();
  }

  disconnectedCallback() {
    removeEventListener("message", this.listen);
    this.frame.remove();
    this.frame = undefined;
  }

  attributeChangedCallback() {
    if (this.frame) this.show();
  }

  show() {
    const address = new URL(base);
    address.searchParams.set("embed", this.getAttribute("view") || "verdict");
    const theme = this.getAttribute("theme");
    if (theme) address.searchParams.set("theme", theme);
    address.hash = this.getAttribute("plan") || "";
    this.frame.title = this.getAttribute("title") || "Shardscope: " + (this.getAttribute("view") || "verdict");
    if (this.frame.src !== address.href) this.frame.src = address.href;
  }
}

if (!customElements.get("shard-scope")) customElements.define("shard-scope", ShardScope);
