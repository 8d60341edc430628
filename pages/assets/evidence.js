// Filters and sorts the rows of evidence.html, keeps its pictures and statistics with them, and keeps the choice in the address.

const form = document.querySelector(".filters");
const choices = ["source", "hardware", "architecture", "software"];

// Each section: its rows and points, in the order in which they were written, and the lines of its statistics.
const sections = [...document.querySelectorAll(".kind")].map((section) => {
  const frames = [...section.querySelectorAll(".scatter .points")].map((frame) => frame.children);
  const rows = [...section.querySelectorAll(".rows tbody tr")].map((row, index) => ({
    row,
    points: frames.map((frame) => frame[index]),
    words: row.textContent.toLowerCase(),
    error: Number(row.dataset.e),
    shown: true,
  }));
  return { section, rows, lines: [...section.querySelectorAll("[data-of]")] };
});

// Filters

function asked() {
  const data = new FormData(form);
  const words = String(data.get("words")).toLowerCase().split(/\s+/).filter(Boolean);
  return { of: choices.map((name) => [name, data.get(name)]).filter(([, value]) => value), words };
}

function filter() {
  const { of, words } = asked();
  const counts = [];
  for (const { section, rows, lines } of sections) {
    for (const one of rows) {
      one.shown = of.every(([name, value]) => one.row.dataset[name] === value) && words.every((word) => one.words.includes(word));
      one.row.hidden = !one.shown;
      for (const point of one.points) point.classList.toggle("off", !one.shown);
    }
    for (const line of lines) count(line, rows);
    const shown = rows.filter((one) => one.shown).length;
    const what = section.id === "time" ? "step times" : "memory figures";
    counts.push(`${shown} of ${rows.length} ${what}`);
  }
  form.querySelector(".shown").textContent = counts.join(", ");
  point(null);
}

// The statistics of a line, as the page was written with them: see figures.rs.
function count(line, rows) {
  const key = line.dataset.of;
  const counts = (one) => {
    if (key[0] === "g") return one.row.dataset.g.split(" ").includes(key.slice(1));
    if (key[0] === "f") return one.row.dataset.source === key.slice(1);
    return true;
  };
  const errors = rows.filter((one) => one.shown && counts(one)).map((one) => one.error);
  const cells = [...line.cells].slice(1);
  const said = figures(errors);
  cells.forEach((cell, index) => { cell.textContent = said[index]; });
  line.hidden = errors.length === 0 && key !== "all";
}

function figures(errors) {
  const n = errors.length;
  if (n === 0) return ["0", "–", "–", "–", "–", "–", "–", "–"];
  const up = (a, b) => a - b;
  const sizes = errors.map(Math.abs).sort(up);
  const percent = (share) => `${(100 * share).toFixed(1)}%`;
  // The share first, as the engine has it: 23 of 40 are 57.49… % so and 57.5 % otherwise.
  const within = (limit) => `${(100 * (sizes.filter((size) => size <= limit).length / n)).toFixed(0)}%`;
  const bias = middle([...errors].sort(up));
  return [
    String(n),
    percent(middle(sizes)),
    percent(sizes.reduce((sum, size) => sum + size, 0) / n),
    percent(sizes[Math.floor(n * 9 / 10)]),
    within(0.05),
    within(0.1),
    within(0.15),
    (bias < 0 ? "" : "+") + percent(bias),
  ];
}

function middle(sorted) {
  const half = Math.floor(sorted.length / 2);
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

// The address: ?source=…&words=…&sort=time.7.descending

function write() {
  const query = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (value) query.set(name, value);
  const sorted = document.querySelector("[aria-sort]");
  if (sorted) query.set("sort", `${sorted.closest(".kind").id}.${sorted.cellIndex}.${sorted.getAttribute("aria-sort")}`);
  const text = query.toString();
  history.replaceState(null, "", (text ? `?${text}` : location.pathname) + location.hash);
}

function read() {
  const query = new URLSearchParams(location.search);
  for (const name of [...choices, "words"]) {
    const field = form.elements[name];
    field.value = query.get(name) || "";
    if (field.selectedIndex === -1) field.value = "";
  }
  const [kind, column, order] = (query.get("sort") || "").split(".");
  const head = document.querySelector(`#${kind === "memory" ? "memory" : "time"} .rows thead`).rows[0].cells[Number(column)];
  if (order && head) sort(head, order);
}

// Sorting

function sort(head, order) {
  for (const other of document.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", order);
  const body = head.closest("table").tBodies[0];
  const sign = order === "descending" ? -1 : 1;
  const numeric = head.classList.contains("number");
  const error = head.textContent.startsWith("Error");
  const value = (row) => {
    if (error) return Math.abs(Number(row.dataset.e));
    const text = row.cells[head.cellIndex].firstChild.textContent;
    return numeric ? Number(text) : text;
  };
  const keyed = [...body.rows].map((row) => [value(row), row]);
  const compare = new Intl.Collator("en", { numeric: true }).compare;
  keyed.sort(([a], [b]) => sign * (numeric ? a - b : compare(a, b)));
  body.append(...keyed.map(([, row]) => row));
}

for (const head of document.querySelectorAll(".rows thead th")) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...head.childNodes);
  if (button.textContent.startsWith("Error")) button.title = "By the size of the error";
  head.append(button);
  button.addEventListener("click", () => {
    // Numbers begin with the greatest, words with the first.
    const [first, second] = head.classList.contains("number") ? ["descending", "ascending"] : ["ascending", "descending"];
    sort(head, head.getAttribute("aria-sort") === first ? second : first);
    write();
  });
}

// Pictures: the pointer or the arrow keys name a run, a click or Enter shows its row.

let here = null;

function point(one, section) {
  for (const circle of document.querySelectorAll(".scatter .here")) circle.setAttribute("visibility", "hidden");
  for (const text of document.querySelectorAll(".readout")) text.textContent = "";
  here = one;
  if (!one) return;
  const chart = section.querySelector(".chart");
  chart.querySelectorAll(".here").forEach((circle, frame) => {
    circle.setAttribute("cx", one.points[frame].getAttribute("x"));
    circle.setAttribute("cy", one.points[frame].getAttribute("y"));
    circle.setAttribute("visibility", "visible");
  });
  const cells = [...one.row.cells].map((cell) => cell.firstChild.textContent);
  const unit = section.id === "time" ? "s" : "GiB";
  const line = document.createElement("small");
  const what = one.row.cells[1].querySelector("small");
  line.textContent = [cells[4], cells[5], cells[6], what ? what.textContent : ""].filter(Boolean).join(", ");
  chart.querySelector(".readout").append(`${cells[0]}: ${cells[1]} ${unit} measured, ${cells[2]} predicted, ${cells[3]}%`, line);
}

function show(one) {
  for (const row of document.querySelectorAll("tr.picked")) row.classList.remove("picked");
  one.row.classList.add("picked");
  one.row.scrollIntoView({ block: "center" });
  one.row.querySelector("a").focus({ preventScroll: true });
}

for (const { section, rows } of sections) {
  const chart = section.querySelector(".chart");
  chart.tabIndex = 0;
  chart.setAttribute("aria-label", "Picture of the runs. The arrow keys go from one to the next by what was measured, Enter goes to its row.");
  const byPoint = new Map(rows.flatMap((one) => one.points.map((point) => [point, one])));
  chart.addEventListener("pointerover", (event) => {
    const one = byPoint.get(event.target);
    if (one) point(one, section);
  });
  chart.addEventListener("click", (event) => {
    const one = byPoint.get(event.target);
    if (one) show(one);
  });
  chart.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (event.key === "Enter" && here && rows.includes(here)) {
      event.preventDefault();
      show(here);
    } else if (step) {
      event.preventDefault();
      const along = rows.filter((one) => one.shown).sort((a, b) => a.points[0].getAttribute("x") - b.points[0].getAttribute("x"));
      const at = along.indexOf(here);
      const next = at < 0 ? 0 : Math.min(Math.max(at + step, 0), along.length - 1);
      point(along[next], section);
    }
  });
}

form.addEventListener("input", () => { filter(); write(); });
form.addEventListener("reset", () => setTimeout(() => { filter(); write(); }));
form.addEventListener("submit", (event) => event.preventDefault());
form.hidden = false;
read();
filter();
