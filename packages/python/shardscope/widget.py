"""A run in a notebook: its panels, with settings to change, whose changes come back to Python.

Needs anywidget: `pip install shardscope[widget]`. Figures come from the program in this package; nothing is fetched, unless
`page` names an address whose own panels are to be shown in frames.

>>> from shardscope.widget import Run
>>> run = Run("train.sh", accelerator="H100-SXM")
>>> run                       # shows it
>>> run.changes               # what was changed by hand: {"micro_batch_size": "2"}
>>> run.document["report"]    # of the run with these changes
"""

from __future__ import annotations

import pathlib
from typing import Any, Mapping, Sequence

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise ImportError("the widget needs anywidget: pip install 'shardscope[widget]'") from error

from ._estimate import Document, Script, Setting, _pairs, estimate, link
from ._program import ShardscopeError

_HERE = pathlib.Path(__file__).parent

#: Settings that the widget offers, by their names in the document: machines, layout, batch, recomputation, precision.
KNOBS = (
    "accelerator",
    "num_nodes",
    "gpus_per_node",
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "virtual_pipeline_model_parallel_size",
    "context_parallel_size",
    "expert_model_parallel_size",
    "sequence_parallel",
    "zero_stage",
    "micro_batch_size",
    "global_batch_size",
    "seq_length",
    "recompute_granularity",
)

#: Panels of the widget itself, in their order.
PANELS = ("verdict", "memory", "time", "communication", "suggestions", "settings")

#: Parts of a stage's memory, in bytes, from the bottom of its bar.
_USES = ("parameters", "gradients", "optimizer", "activations", "temporaries", "framework")


class Run(anywidget.AnyWidget):
    """A run, shown and edited.

    files, text, accelerator, settings, environment, arguments, without: as of `shardscope.estimate`.
    panels: which of `PANELS` are shown.
    page: address of a served Shardscope, ends with a slash; its own panels (`frames`, such as "map" or "schedule") are shown
    below, of the run as it is changed. Left out, nothing is fetched by the notebook.

    `changes` is what was changed, by setting: set it from Python, or let the reader do so. An empty value takes a change back.
    """

    _esm = _HERE / "widget.js"
    _css = _HERE / "widget.css"

    changes = traitlets.Dict(
        key_trait=traitlets.Unicode(), value_trait=traitlets.Unicode(), help="settings changed, by name"
    ).tag(sync=True)
    shown = traitlets.Dict(help="what the panels draw").tag(sync=True)
    panels = traitlets.List(traitlets.Unicode(), help="panels, in their order").tag(sync=True)
    page = traitlets.Unicode("", help="address of a served Shardscope").tag(sync=True)
    frames = traitlets.List(traitlets.Unicode(), help="panels of the page at that address").tag(sync=True)

    def __init__(
        self,
        *files: Script,
        text: str | None = None,
        accelerator: str | None = None,
        settings: Mapping[str, Setting] | None = None,
        environment: Mapping[str, str] | None = None,
        arguments: str | None = None,
        without: Sequence[str] = (),
        panels: Sequence[str] = PANELS,
        page: str = "",
        frames: Sequence[str] = (),
    ) -> None:
        unknown = [name for name in panels if name not in PANELS]
        if unknown:
            raise ValueError(f"there is no panel {unknown[0]}; there are {', '.join(PANELS)}")
        if frames and not page:
            raise ValueError("frames show panels of a served page: give its address as page=")
        given: dict[str, Setting] = dict(settings or {})
        if accelerator is not None:
            given["accelerator"] = accelerator
        self._files = files
        self._text = text
        self._given = given
        self._call: dict[str, Any] = {"environment": environment, "arguments": arguments, "without": without}
        self._framed = bool(frames)
        self._document = self._estimated({})
        super().__init__(panels=list(panels), page=page, frames=list(frames), shown=self._drawn(self._document, {}))
        self.observe(self._changed, names="changes")

    @property
    def document(self) -> Document:
        """The document of the run as it is changed, as `shardscope.estimate` returns it."""
        return self._document

    @property
    def settings(self) -> dict[str, Setting]:
        """What `shardscope.estimate` takes for the run as it is changed."""
        return {**self._given, **self.changes}

    def _estimated(self, changes: Mapping[str, str]) -> Document:
        return estimate(*self._files, text=self._text, settings={**self._given, **changes}, **self._call)

    def _changed(self, change: Mapping[str, Any]) -> None:
        kept = {name: value for name, value in change["new"].items() if value != ""}
        if kept != change["new"]:
            self.changes = kept  # which comes back here
            return
        try:
            document = self._estimated(kept)
        except ShardscopeError as error:
            # A name or value that the program refuses: the run stays, and the reader is told.
            self.shown = {**self.shown, "problems": [str(error)]}
            return
        self._document = document
        self.shown = self._drawn(document, kept)

    def _drawn(self, document: Document, changes: Mapping[str, str]) -> dict[str, Any]:
        report = document["report"]
        problems = [item["message"] for item in document["diagnostics"] if item["severity"] == "error"]
        problems += [f"not modelled: {item['name']}" for item in document["not_modelled"]]
        problems += [item["prompt"] + f" ({item['name']})" for item in document["questions"]]
        settings = document["settings"]
        known = {name: settings[name] for name in KNOBS if name in settings}
        drawn: dict[str, Any] = {
            "plan": report is not None,
            "problems": problems if report is None else [],
            "warnings": [item["message"] for item in document["diagnostics"] if item["severity"] == "warning"],
            "settings": {name: {"value": one["value"], "origin": one["origin"]} for name, one in known.items()},
        }
        if report is None:
            return drawn
        memory, time, topology = report["memory"], report["time"], report["topology"]
        drawn.update(
            verdict=memory["verdict"],
            capacity=memory["capacity"],
            marks=[*report["without"], *report["not_read"]],
            accelerator=settings["accelerator"]["value"],
            gpus=topology["world_size"],
            stages=[
                {"rank": rank["pipeline_rank"], "peak": rank["peak_reserved"], **{use: rank[use] for use in _USES}}
                for rank in memory["ranks"]
            ],
            step={
                "seconds": time["step_seconds"],
                "low": time["interval"]["low_seconds"],
                "high": time["interval"]["high_seconds"],
                "mfu": time["mfu"],
                "tokens_per_second": time["tokens_per_second"],
                "parts": [
                    {"label": part["label"], "seconds": part["value"]}
                    for part in time["breakdown"]["children"]
                    if part["value"] > 0
                ],
            },
            communication=[
                {"name": name, "group_size": one["group_size"], "link": one["link"], "bytes": _sent(one)}
                for name, one in report["communication"]["dimensions"].items()
                if one and one["operations"]
            ],
            suggestions=[
                {"message": one["message"], "why": one["why"], "change": dict(one["change"])}
                for one in report["advice"]
            ],
            plan_link=self._fragment(changes) if self._framed else "",
        )
        return drawn

    def _fragment(self, changes: Mapping[str, str]) -> str:
        made = link(*self._files, text=self._text, settings={**self._given, **changes}, **self._call)
        return made.partition("#")[2]


def _sent(dimension: Mapping[str, Any]) -> int:
    """Bytes of all messages of a step on a GPU that takes part in them. Unit: byte."""
    return sum(one["bytes_per_call"] * one["calls_per_iteration_per_gpu"] for one in dimension["operations"])


__all__ = ["KNOBS", "PANELS", "Run"]
