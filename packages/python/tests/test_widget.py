"""The widget with the real anywidget, and its front end in a real Chromium. Run with the Python the package is installed into."""

import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import shardscope

try:
    from shardscope import widget
except ImportError as error:  # said, and not passed over in silence
    print(f"NOT CHECKED: {error}")
    widget = None

from test_shardscope import SCRIPT

CHROME = os.environ.get("CHROME") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome"))), None
)

# The model of a notebook, as anywidget's front end hands it to `render`, and one action of a reader.
PAGE = """<!doctype html><meta charset="utf-8"><div id="out"></div><pre id="said"></pre><script type="module">
const state = STATE;
const heard = {}, saved = [];
const model = {
  get: (name) => state[name],
  set: (name, value) => { state[name] = value; (heard["change:" + name] || []).forEach((each) => each()); saved.push({ [name]: value }); },
  on: (name, call) => (heard[name] ||= []).push(call),
  off: (name, call) => { heard[name] = (heard[name] || []).filter((each) => each !== call); },
  save_changes: () => saved.push("saved"),
};
const out = document.getElementById("out");
let told;
try {
  const widget = (await import(URL.createObjectURL(new Blob([SOURCE], { type: "text/javascript" })))).default;
  const end = widget.render({ model, el: out });
  const panel = (name) => out.querySelector(`[data-panel="${name}"]`);
  const text = (name) => panel(name)?.innerText || "";
  const drawn = Object.fromEntries([...out.querySelectorAll("[data-panel]")].map((each) => [each.dataset.panel, each.innerText]));
  const frames = [...out.querySelectorAll("iframe")].map((each) => each.src);
  const bars = [...out.querySelectorAll('[data-panel="memory"] .ss-bar')].map((each) => each.children.length);
  const problems = [...out.querySelectorAll(".ss-problems li")].map((each) => each.innerText);
  ACTION
  end();
  told = { drawn, frames, bars, problems, saved, listeners: Object.values(heard).flat().length, pwned: window.pwned === true };
} catch (error) { told = { error: String(error.stack || error) }; }
document.getElementById("said").textContent = JSON.stringify(told);
</script>"""


def embedded(value):
    return json.dumps(value).replace("</", "<\\/")


def browse(run, action=""):
    """What the front end draws of `run`, does at `action` and saves, in Chromium."""
    state = {key: run.get_state()[key] for key in ("changes", "shown", "panels", "page", "frames")}
    source = (pathlib.Path(widget.__file__).parent / "widget.js").read_text(encoding="utf-8")
    page = PAGE.replace("STATE", embedded(state), 1).replace("SOURCE", embedded(source), 1).replace("ACTION", action, 1)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "page.html")
        file.write_text(page, encoding="utf-8")
        command = [CHROME, "--headless", "--disable-gpu", "--dump-dom", "--virtual-time-budget=10000"]
        command += [f"--user-data-dir={folder}/profile", "--no-first-run", "--disable-background-networking"]
        if os.environ.get("CHROME_NO_SANDBOX") or (hasattr(os, "geteuid") and os.geteuid() == 0):
            command.append("--no-sandbox")
        done = subprocess.run([*command, file.as_uri()], capture_output=True, encoding="utf-8", timeout=120)
    said = re.search(r'<pre id="said">(.*?)</pre>', done.stdout, re.DOTALL)
    if said is None:
        raise AssertionError(f"the page says nothing: {done.stdout[-2000:]} {done.stderr[-2000:]}")
    told = json.loads(html.unescape(said.group(1)))
    if "error" in told:
        raise AssertionError(told["error"])
    return told


def from_the_front_end(run, saved):
    """Hands `run` what `model.save_changes` sends, as the kernel receives it."""
    state = {name: value for each in saved if isinstance(each, dict) for name, value in each.items()}
    run._handle_msg({"content": {"data": {"method": "update", "state": state}}, "buffers": []})


@unittest.skipIf(widget is None, "anywidget is not installed")
class Python(unittest.TestCase):
    def test_a_change_is_estimated_and_comes_back(self):
        run = widget.Run(text=SCRIPT, accelerator="H100-SXM")
        before = run.document["report"]
        self.assertEqual(run.shown["stages"][0]["peak"], before["memory"]["ranks"][0]["peak_reserved"])
        from_the_front_end(run, [{"changes": {"micro_batch_size": "2"}}])
        again = shardscope.estimate(text=SCRIPT, settings={"accelerator": "H100-SXM", "micro_batch_size": 2})
        self.assertEqual(run.document["report"], again["report"])
        self.assertEqual(run.shown["step"]["seconds"], again["report"]["time"]["step_seconds"])
        self.assertEqual(run.settings, {"accelerator": "H100-SXM", "micro_batch_size": "2"})
        self.assertEqual(run.shown["settings"]["micro_batch_size"], {"value": 2, "origin": "user"})
        # An empty value takes the change back.
        run.changes = {"micro_batch_size": ""}
        self.assertEqual(run.changes, {})
        self.assertEqual(run.document["report"], before)

    def test_what_makes_no_plan_says_why_and_is_mended(self):
        run = widget.Run(text=SCRIPT.replace("--num-layers 24", ""))
        self.assertFalse(run.shown["plan"])
        self.assertIsNone(run.document["report"])
        self.assertIn("num_layers", " ".join(run.shown["problems"]))
        run.changes = {"num_layers": "24"}
        self.assertEqual(run.document["report"]["memory"], shardscope.estimate(text=SCRIPT)["report"]["memory"])
        self.assertEqual((run.shown["problems"], run.shown["warnings"]), ([], []))
        run.changes = {"num_layers": "24", "micro_batch_size": "banana"}
        self.assertFalse(run.shown["plan"])
        self.assertIn("banana", " ".join(run.shown["problems"]))
        run.changes = {"num_layers": "24", "accelerator": "no-such-card"}
        self.assertIn("no-such-card", " ".join(run.shown["problems"]))
        with self.assertRaisesRegex(ValueError, "there is no panel maps"):
            widget.Run(text=SCRIPT, panels=["maps"])
        with self.assertRaisesRegex(ValueError, "page="):
            widget.Run(text=SCRIPT, frames=["map"])

    def test_every_knob_is_a_setting(self):
        known = shardscope.estimate(text=SCRIPT)["settings"]
        self.assertEqual([name for name in widget.KNOBS if name not in known], [])
        self.assertEqual(set(widget.Run(text=SCRIPT).shown["settings"]), set(widget.KNOBS))


@unittest.skipIf(widget is None, "anywidget is not installed")
class FrontEnd(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if CHROME is None:
            print("NOT CHECKED: there is no Chromium for the widget's front end")
            raise unittest.SkipTest("there is no Chromium")

    def test_the_panels_show_the_plan(self):
        run = widget.Run(text=SCRIPT, accelerator="H100-SXM")
        told = browse(run)
        self.assertEqual(list(told["drawn"]), list(widget.PANELS))
        peak = max(rank["peak_reserved"] for rank in run.document["report"]["memory"]["ranks"])
        for panel in ("verdict", "memory"):
            self.assertIn(f"{peak / 2**30:.2f} GiB", told["drawn"][panel])
        self.assertIn("Fits", told["drawn"]["verdict"])
        self.assertIn("16 × H100-SXM", told["drawn"]["verdict"])
        self.assertEqual(told["bars"], [6, 6])
        for part in run.document["report"]["time"]["breakdown"]["children"]:
            self.assertEqual(part["label"] in told["drawn"]["time"], part["value"] > 0, part["label"])
        self.assertIn("nvlink", told["drawn"]["communication"])
        for one in run.document["report"]["advice"]:
            self.assertIn(one["message"], told["drawn"]["suggestions"])
        # It leaves nothing behind, and asks nobody for anything.
        self.assertEqual((told["listeners"], told["frames"], told["saved"]), (0, [], []))

    def test_an_edit_in_the_browser_is_estimated_in_python(self):
        run = widget.Run(text=SCRIPT, accelerator="H100-SXM")
        told = browse(
            run,
            """const field = out.querySelector("input[name=micro_batch_size]");
            field.value = "2"; field.dispatchEvent(new Event("change"));
            const select = out.querySelector("select[name=recompute_granularity]");
            select.value = "full"; select.dispatchEvent(new Event("change"));""",
        )
        self.assertEqual(told["saved"][-1], "saved")
        from_the_front_end(run, told["saved"])
        self.assertEqual(run.changes, {"micro_batch_size": "2", "recompute_granularity": "full"})
        changed = {"accelerator": "H100-SXM", "micro_batch_size": 2, "recompute_granularity": "full"}
        again = shardscope.estimate(text=SCRIPT, settings=changed)
        self.assertEqual(run.document["report"], again["report"])
        # Drawn again, with the change told as the reader's own; it can be taken back there.
        told = browse(run, 'out.querySelector(\'[aria-label="take back micro_batch_size"]\').click();')
        from_the_front_end(run, told["saved"])
        self.assertEqual(run.changes, {"recompute_granularity": "full"})

    def test_a_suggestion_is_applied_by_its_button(self):
        run = widget.Run(text=SCRIPT, accelerator="H100-SXM")
        first = run.document["report"]["advice"][0]
        told = browse(run, "out.querySelector('[data-panel=suggestions] button').click();")
        from_the_front_end(run, told["saved"])
        self.assertEqual(run.changes, first["change"])
        step = run.document["report"]["time"]["step_seconds"]
        self.assertAlmostEqual(step, first["expected"]["step_seconds"], places=9)

    def test_a_strangers_words_stay_words(self):
        evil = "<img src=x onerror=window.pwned=true>"
        run = widget.Run(text=SCRIPT)
        shown = dict(run.shown, problems=[evil], accelerator=evil, marks=[evil])
        shown["suggestions"] = [{"message": evil, "why": evil, "change": {}}]
        run.shown = shown
        told = browse(run, "await new Promise((done) => setTimeout(done, 50));")
        self.assertFalse(told["pwned"])
        self.assertEqual(told["problems"], [evil])
        self.assertIn(evil, told["drawn"]["suggestions"])

    def test_frames_show_the_page_at_a_given_address_with_the_changed_run(self):
        run = widget.Run(text=SCRIPT, page="http://127.0.0.1:9/below/", frames=["map", "schedule"])
        run.changes = {"tensor_model_parallel_size": "4"}
        told = browse(run)
        self.assertEqual([src.split("#")[0] for src in told["frames"]], [f"http://127.0.0.1:9/below/?embed={view}" for view in ("map", "schedule")])
        fragment = told["frames"][0].partition("#")[2]
        carried = shardscope.estimate("#" + fragment)
        self.assertEqual(carried["report"], run.document["report"])
        hostile = widget.Run(text=SCRIPT, page="javascript:window.pwned=true//", frames=["map"])
        told = browse(hostile)
        self.assertEqual((told["frames"], told["pwned"]), ([], False))


if __name__ == "__main__":
    unittest.main()
