// The front end of shardscope.widget.Run: draws what Python has estimated, and hands changed settings back.
//
// Text of a script's author (names, messages) is only ever put in as text. Nothing is fetched but the frames of a page whose
// address Python was given.

/** Parts of a stage's memory, from the left of its bar: [key, name]. */
const USES = [
  ["parameters", "weights"],
  ["gradients", "gradients"],
  ["optimizer", "optimizer states"],
  ["activations", "kept for backward"],
  ["temporaries", "alive at the peak"],
  ["framework", "context and fragmentation"],
];

const VERDICTS = { fits: "Fits", tight: "Tight", out_of_memory: "Out of memory" };

/** Settings with a list to choose from: [value, name]. */
const CHOICES = {
  sequence_parallel: [["false", "off"], ["true", "on"]],
  recompute_granularity: [["none", "none"], ["selective", "selective"], ["full", "full"]],
};

const gib = (bytes) => (bytes / 2 ** 30).toFixed(2) + " GiB";

/** A duration in the unit that suits it; from two minutes on as `4 min 10 s`, `1 h 23 min`, `3 d 4 h`. */
function seconds(value) {
  if (value < 0.0995) return (value * 1e3).toPrecision(3) + " ms";
  if (Math.round(value) < 120) return value.toPrecision(3) + " s";
  const minutes = Math.round(value / 60);
  // Rounded before it is taken apart, so that the smaller unit never reads 60.
  const [size, larger, smaller, ratio] =
    Math.round(value) < 3600 ? [Math.round(value), "min", "s", 60]
    : minutes < 48 * 60 ? [minutes, "h", "min", 60]
    : [Math.round(value / 3600), "d", "h", 24];
  const rest = size % ratio;
  return `${Math.floor(size / ratio)} ${larger}` + (rest ? ` ${rest} ${smaller}` : "");
}

const percent = (share) => (share * 100).toFixed(1) + "%";

/** An element with attributes and children; strings become text. */
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== undefined && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== ""));
  return element;
}

function verdict(shown) {
  const fullest = shown.stages.reduce((most, stage) => (stage.peak > most.peak ? stage : most));
  return [
    make("p", { class: "ss-verdict", "data-verdict": shown.verdict }, VERDICTS[shown.verdict] || shown.verdict),
    make(
      "p",
      {},
      `${gib(fullest.peak)} of ${gib(shown.capacity)} on ${shown.gpus} × ${shown.accelerator}; ` +
        `a step takes ${seconds(shown.step.seconds)} (90%: ${seconds(shown.step.low)} to ${seconds(shown.step.high)}), MFU ${percent(shown.step.mfu)}`,
    ),
    shown.marks.length ? make("p", { class: "ss-mark" }, "Not in the numbers: " + shown.marks.map(named).join(", ")) : "",
  ];
}

const named = (mark) => (typeof mark === "string" ? mark : mark.name || JSON.stringify(mark));

/** A bar of parts against `most`; its text says the same. */
function bar(parts, most) {
  const line = make("span", { class: "ss-bar", "aria-hidden": "true" });
  parts.forEach(([label, value, text], place) => {
    const part = make("i", { "data-use": String(place % 6), title: `${label}: ${text}` });
    part.style.width = `${Math.max(0, Math.min(100, (100 * value) / most))}%`;
    line.append(part);
  });
  return line;
}

function table(head, rows) {
  return make(
    "table",
    {},
    make("thead", {}, make("tr", {}, ...head.map((cell) => make("th", { scope: "col" }, cell)))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", {}, cell))))),
  );
}

function memory(shown) {
  const most = Math.max(shown.capacity, ...shown.stages.map((stage) => stage.peak));
  const rows = shown.stages.map((stage) => [
    String(stage.rank),
    bar(USES.map(([key, name]) => [name, stage[key], gib(stage[key])]), most),
    ...USES.map(([key]) => gib(stage[key])),
    gib(stage.peak),
  ]);
  return [table(["stage", "", ...USES.map(([, name]) => name), "peak"], rows)];
}

function time(shown) {
  const parts = shown.step.parts.map((part) => [part.label, part.seconds, seconds(part.seconds)]);
  const rows = parts.map(([label, value, text]) => [label, text, percent(value / shown.step.seconds)]);
  return [bar(parts, shown.step.seconds), table(["part", "of a step", "share"], rows)];
}

function communication(shown) {
  const rows = shown.communication.map((one) => [one.name, String(one.group_size), one.link, gib(one.bytes)]);
  return rows.length
    ? [table(["dimension", "members", "link", "messages of a GPU and step"], rows)]
    : [make("p", {}, "Nothing is sent.")];
}

function suggestions(shown, change) {
  if (!shown.suggestions.length) return [make("p", {}, "No change was found that helps.")];
  const item = (one) => {
    const names = Object.keys(one.change);
    const button = make("button", { type: "button" }, "Apply");
    button.addEventListener("click", () => change(one.change));
    return make("li", {}, make("strong", {}, one.message), " ", make("span", {}, one.why), " ", names.length ? button : "");
  };
  return [make("ul", {}, ...shown.suggestions.map(item))];
}

function settings(shown, change, changes) {
  const row = ([name, one]) => {
    const value = one.value === null ? "none" : String(one.value);
    const choices = CHOICES[name];
    const field = choices
      ? make("select", { name }, ...choices.map(([of, text]) => make("option", { value: of }, text)))
      : make("input", { name, type: "text", size: "12", inputmode: typeof one.value === "number" ? "numeric" : undefined });
    field.value = value;
    field.addEventListener("change", () => change({ [name]: field.value.trim() }));
    const back = make("button", { type: "button", "aria-label": `take back ${name}` }, "↺");
    back.addEventListener("click", () => change({ [name]: "" }));
    const label = make("label", {}, make("span", {}, name.replaceAll("_", " ")), field);
    return make("li", { "data-origin": one.origin }, label, name in changes ? back : make("small", {}, one.origin));
  };
  return [make("ul", { class: "ss-settings" }, ...Object.entries(shown.settings).map(row))];
}

const DRAW = { verdict, memory, time, communication, suggestions, settings };
/** Panels that stand without a plan. */
const WITHOUT_PLAN = ["settings"];

function frame(page, view, plan) {
  const address = new URL(page, document.baseURI);
  if (address.protocol !== "https:" && address.protocol !== "http:") return "";
  address.searchParams.set("embed", view);
  address.hash = plan;
  const element = make("iframe", {
    src: address.href,
    title: `Shardscope: ${view}`,
    sandbox: "allow-scripts allow-same-origin allow-popups allow-downloads",
    width: "100%",
    height: "520",
    loading: "lazy",
  });
  return element;
}

/** Draws the widget's model into `el`; returns what takes it down. */
function render({ model, el }) {
  const root = make("div", { class: "ss-run" });
  el.append(root);

  const change = (more) => {
    model.set("changes", { ...model.get("changes"), ...more });
    model.save_changes();
  };

  const draw = () => {
    const shown = model.get("shown");
    // The field in hand keeps its place.
    const active = root.contains(document.activeElement) ? document.activeElement.getAttribute("name") : null;
    const parts = [];
    if (shown.problems && shown.problems.length) {
      parts.push(make("ul", { class: "ss-problems", role: "alert" }, ...shown.problems.map((text) => make("li", {}, text))));
    }
    if (shown.warnings && shown.warnings.length) {
      parts.push(make("ul", { class: "ss-warnings" }, ...shown.warnings.map((text) => make("li", {}, text))));
    }
    for (const name of model.get("panels")) {
      if (!shown.plan && !WITHOUT_PLAN.includes(name)) continue;
      const heading = make("h4", {}, name);
      parts.push(make("section", { "data-panel": name }, heading, ...DRAW[name](shown, change, model.get("changes"))));
    }
    if (shown.plan && model.get("page")) {
      for (const view of model.get("frames")) parts.push(frame(model.get("page"), view, shown.plan_link));
    }
    root.replaceChildren(...parts.filter((part) => part !== ""));
    if (active) root.querySelector(`[name="${CSS.escape(active)}"]`)?.focus();
  };

  // A frame tells how high its panel is (assets/embed.js).
  const heights = (event) => {
    const height = Number(event.data && event.data.shardscope && event.data.shardscope.height);
    for (const element of root.querySelectorAll("iframe")) {
      if (element.contentWindow === event.source && height > 0 && height < 20000) element.height = String(Math.ceil(height));
    }
  };
  const names = ["change:shown", "change:changes", "change:panels", "change:page", "change:frames"];
  for (const name of names) model.on(name, draw);
  addEventListener("message", heights);
  draw();
  return () => {
    for (const name of names) model.off(name, draw);
    removeEventListener("message", heights);
  };
}

export default { render };
