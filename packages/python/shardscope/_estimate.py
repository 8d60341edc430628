"""Estimates as plain dicts."""

from __future__ import annotations

import json
import os
from typing import Any, Iterator, Mapping, Sequence, TypedDict, Union

from ._program import call

Setting = Union[str, int, float, bool]
Script = Union[str, "os.PathLike[str]"]


class Document(TypedDict):
    """The document `shardscope/report`: bare numbers in bytes, seconds, FLOPs. `report` is None where there is no plan."""

    schema: str
    settings: dict[str, dict[str, Any]]
    questions: list[dict[str, Any]]
    diagnostics: list[dict[str, Any]]
    not_modelled: list[dict[str, Any]]
    report: dict[str, Any] | None


class Differences(TypedDict):
    """Two runs and what differs."""

    before: dict[str, Any]
    after: dict[str, Any]
    settings: list[dict[str, Any]]
    sections: list[dict[str, Any]]
    memory_causes: list[dict[str, Any]]
    time_causes: list[dict[str, Any]]


def estimate(
    *files: Script,
    text: str | None = None,
    accelerator: str | None = None,
    settings: Mapping[str, Setting] | None = None,
    environment: Mapping[str, str] | None = None,
    arguments: str | None = None,
    without: Sequence[str] = (),
) -> Document:
    """Estimates a run.

    files: paths of the launch script and the files it names, read together; or one link of the page.
    text: the script itself, in place of a file or beside them.
    accelerator: a name that `shardscope accelerators` lists.
    settings: changes by Megatron's names in snake case, e.g. {"micro_batch_size": 2}.
    environment, arguments: variables and words that the script takes from its call.
    without: settings that are not modelled and gone on without.

    Where the texts make no plan, `report` is None and `questions` and `diagnostics` say why.
    Raises ShardscopeError where a file cannot be read, or a setting or accelerator is unknown.
    """
    options = _options(accelerator, settings, environment, arguments, without)
    printed = call(["report", "--format", "json", *options, *_operands(files, text)], text, fails=[2])
    return json.loads(printed)


def check(
    *files: Script,
    text: str | None = None,
    fail_on: str = "oom",
    against: Script | None = None,
    headroom: float | None = None,
    accelerator: str | None = None,
    settings: Mapping[str, Setting] | None = None,
    environment: Mapping[str, str] | None = None,
    arguments: str | None = None,
    without: Sequence[str] = (),
) -> dict[str, Any]:
    """Whether a run passes: `passes`, `failures`, `verdict`, `peak_reserved` (bytes), `step_seconds`, `mfu` and more.

    fail_on: what fails it besides not fitting: "oom", "tight", "slower:5%" beside `against`, several with commas between;
        with "none" nothing does.
    against: the run that it may not be slower than, a file or a link, with the same changes.
    headroom: percentage of an accelerator's memory that should stay free; with less a run is tight.

    The others are those of `estimate`. Where the texts make no plan, `passes` is False and `open` says why.
    Raises ShardscopeError where a file cannot be read, or a setting or accelerator is unknown.
    """
    options = ["--fail-on", fail_on, *_options(accelerator, settings, environment, arguments, without)]
    if headroom is not None:
        options += ["--headroom", repr(headroom)]
    if against is not None:
        options.append(f"--against={os.fspath(against)}")
    printed = call(["check", "--format", "json", *options, *_operands(files, text)], text, fails=[1, 2])
    return json.loads(printed)


def compare(
    before: Script,
    after: Script | None = None,
    *,
    change: Mapping[str, Setting] | None = None,
    accelerator: str | None = None,
    settings: Mapping[str, Setting] | None = None,
    environment: Mapping[str, str] | None = None,
    arguments: str | None = None,
    without: Sequence[str] = (),
) -> Differences:
    """Two runs side by side; without `after`, `before` beside itself with `change`.

    The others are those of `estimate`, for both runs. Raises ShardscopeError where one of them makes no plan.
    """
    operands = [os.fspath(before)] + ([] if after is None else [os.fspath(after)])
    options = [f"--with={pair}" for pair in _pairs(change)]
    options += _options(accelerator, settings, environment, arguments, without)
    return json.loads(call(["compare", "--format", "json", *options, "--", *operands], None))


def link(
    *files: Script,
    text: str | None = None,
    page: str = "",
    settings_alone: bool = False,
    accelerator: str | None = None,
    settings: Mapping[str, Setting] | None = None,
    environment: Mapping[str, str] | None = None,
    arguments: str | None = None,
    without: Sequence[str] = (),
) -> str:
    """A link that opens the run in the page at the address `page`, with what `estimate` takes changed in it."""
    options = ["--page", page] + (["--settings"] if settings_alone else [])
    options += _options(accelerator, settings, environment, arguments, without)
    return call(["link", *options, *_operands(files, text)], text).strip()


def flat(document: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The numbers, words and truths of a document by their place ("report.time.mfu"): a row for `pandas.DataFrame([...])`.

    Lists are left out; `document["report"]["memory"]["ranks"]` and the like are tables of their own.
    """
    return dict(_leaves(document, prefix))


def _leaves(value: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        place = f"{prefix}.{key}" if prefix else key
        if isinstance(item, Mapping):
            yield from _leaves(item, place)
        elif not isinstance(item, list):
            yield place, item


def _pairs(values: Mapping[str, Setting] | None) -> list[str]:
    def written(value: Setting) -> str:
        return str(value).lower() if isinstance(value, bool) else str(value)

    return [f"{name}={written(value)}" for name, value in (values or {}).items()]


def _options(
    accelerator: str | None,
    settings: Mapping[str, Setting] | None,
    environment: Mapping[str, str] | None,
    arguments: str | None,
    without: Sequence[str],
) -> list[str]:
    options = [f"--accelerator={accelerator}"] if accelerator is not None else []
    options += [f"--set={pair}" for pair in _pairs(settings)]
    options += [f"--env={pair}" for pair in _pairs(environment)]
    options += [f"--args={arguments}"] if arguments is not None else []
    return options + [f"--without={name}" for name in without]


def _operands(files: Sequence[Script], text: str | None) -> list[str]:
    operands = [os.fspath(file) for file in files] + (["-"] if text is not None else [])
    if not operands:
        raise TypeError("give a file, or the script as text=")
    return ["--", *operands]
