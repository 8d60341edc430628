"""What XLA's TPU compiler gives MaxText's train step, recorded without a TPU: one JSON line a case.

    pip install jax==0.10.2 libtpu==0.0.42.1 flax==0.12.8 optax==0.2.8 orbax-checkpoint==0.12.8 omegaconf pydantic chex drjax \
        ml_collections jaxtyping sympy jinja2 tqdm psutil
    pip install --no-deps aqtp qwix tokamax einshape immutabledict typeguard==2.13.3
    python maxtext_steps.py arguments PATH/TO/maxtext/src < words.txt > ../data/maxtext/arguments.jsonl
    python maxtext_steps.py steps PATH/TO/maxtext/src < words.txt > ../data/maxtext/steps.jsonl
    python maxtext_steps.py exchanges PATH/TO/maxtext/src < words.txt > ../data/maxtext/exchanges.jsonl
    python maxtext_steps.py residuals PATH/TO/maxtext/src < words.txt > ../data/maxtext/residuals.jsonl

Each line of the input is the words of one `train_compile.py` (AI-Hypercomputer/maxtext at e591f30c), as the rows repeat them. MaxText compiles ahead of time for
a named topology, which libtpu does on any host. Python 3.12, or 3.11 with `type X = Y` of two kernels written as `X = Y`.

`steps` compiles the whole step: its `memory_analysis()`, per device, or the sentence with which the compiler refuses it.
`exchanges` lists what the devices of the same program send each other, in each layer or once a step, where XLA has not cut products
into windows (over few devices).
`residuals` only traces the step: what the scan over layers hands from the forward to the backward pass, which `jax.checkpoint`'s policy
decides and no compiler, in the shapes of all devices together, without the dimension of layers.
`arguments` compiles a function of nothing that takes the same arguments in the same shardings, which takes a second: their bytes, and
each tensor as the compiler lays it out (shape on one device, order of dimensions, tile). The whole step takes them but
`targets_position`, which it never reads.
"""

import contextlib
import io
import json
import os
import re
import sys

from stand_ins import Finder
from scans import residuals

# What reads data, writes checkpoints and reports takes no part in the step; missing packages of that kind are stood in for.
ABSENT = """grain google.cloud google.api_core transformers tokenizers tiktoken pathwaysutils cloud_accelerator_diagnostics
sentencepiece huggingface_hub tensorboardX tensorboardx ml_goodput_measurement tensorflow tensorflow_datasets tensorflow_text
google_cloud_mldiagnostics datasets jax_triton triton PIL torch librosa vllm tunix decord xprof""".split()
WORDS = """compile_topology_num_slices=1 enable_checkpointing=false dataset_type=synthetic run_name=recorded
base_output_directory=/tmp/recorded""".split()


def parameters(text):
    """Type with layout and name of each argument, in order."""
    found = []
    for line in text.split("ENTRY", 1)[1].splitlines():
        match = re.match(r"\s+%\S+ = (\w+\[[\d,]*\]\S*) parameter\((\d+)\).*?op_name=\"([^\"]*)\"", line)
        if match:
            name = match.group(3).removesuffix(".value")
            keys = [key for key in re.findall(r"\w+", name) if key not in ("a", "0", "1")]
            found.append((int(match.group(2)), match.group(1), keys))
    return [(kind, keys) for _, kind, keys in sorted(found, key=lambda one: one[0])]


def sorted_out(tensors):
    """Weights by name, which Adam's moments equal tensor for tensor; the batch; counters and keys of random numbers."""
    weights, moments, batch, counters = {}, {"mu": {}, "nu": {}}, [], []
    for kind, keys in tensors:
        name = ".".join(key for key in keys if key not in ("model", "optimizer", "opt_state", "mu", "nu", "decoder"))
        moment = next((key for key in keys if key in moments), None)
        if moment:
            moments[moment][name] = kind
        elif kind.startswith("u32") or kind.startswith("s32[]"):
            counters.append(kind)
        elif kind.startswith("s32"):
            batch.append(kind)
        else:
            weights[name] = kind
    assert moments["mu"] == moments["nu"] == weights, "Adam's moments are laid out as the weights"
    return {"weights": weights, "batch": batch, "counters": counters}


def exchanges(text):
    """What devices send each other, without scalars: kind, tensor, whether in each layer's forward or backward pass or once, how often."""
    callers, where, found = {}, None, {}
    rows = []
    for line in text.splitlines():
        head = re.match(r"(?:ENTRY )?%([\w.\-]+) \(.*\{$", line)
        if head:
            where = head.group(1)
        for called in re.findall(r"calls=%([\w.\-]+)", line):
            callers[called] = where
        match = re.match(r"\s+(?:ROOT )?%\S+ = (.*?) (all-gather|all-reduce|all-to-all)\(", line)
        if match:
            rows.append((where, match.group(2), match.group(1)))
    out = {}
    for where, kind, types in rows:
        scatters = where.startswith("all-reduce-scatter")
        place = callers.get(where, where) if scatters else where
        for dtype, shape in re.findall(r"(bf16|f32)\[([\d,]+)\]", types):
            name = "reduce-scatter" if scatters else kind
            side = "step" if place.startswith("main") else "layer"
            key = (side, name, dtype, tuple(int(n) for n in shape.split(",") if int(n) > 1))
            out[key] = out.get(key, 0) + 1
    return [[side, name, dtype, list(shape), times] for (side, name, dtype, shape), times in sorted(out.items())]


class Traced(Exception):
    pass


def main(what, source):
    os.environ.update(
        TPU_SKIP_MDS_QUERY="1", JAX_PLATFORMS="cpu", TPU_ACCELERATOR_TYPE="v5litepod-4", TPU_WORKER_HOSTNAMES="localhost"
    )
    sys.path.insert(0, source)
    sys.meta_path.insert(0, Finder(ABSENT))
    import jax

    with contextlib.redirect_stdout(io.StringIO()):
        from maxtext.trainers.pre_train import train_compile

    kept, whole = {}, train_compile.jit_and_compile

    def arguments(_, values, words, mesh, shardings, *rest):
        with jax.set_mesh(mesh), mesh, rest[-1]:
            taken = jax.jit(lambda *a: 0, in_shardings=shardings, keep_unused=True)
            kept["compiled"] = taken.lower(*values, **words).compile()
        return kept["compiled"]

    def step(*values, **words):
        kept["compiled"] = whole(*values, **words)
        return kept["compiled"]

    def trace(function, values, words, mesh, in_shardings, out_shardings, static, donated, _, rules):
        with jax.set_mesh(mesh), mesh, rules:
            jitted = jax.jit(
                function, in_shardings=in_shardings, out_shardings=out_shardings, static_argnums=static, donate_argnums=donated
            )
            kept["residuals"] = residuals(jitted.trace(*values, **words).jaxpr.jaxpr)
        raise Traced

    train_compile.jit_and_compile = {"arguments": arguments, "residuals": trace}.get(what, step)
    print(json.dumps({"maxtext": "e591f30c", "jax": jax.__version__, "libtpu": "0.0.42.1"}))
    for line in sys.stdin:
        words = line.split()
        row = {"words": words}
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                train_compile.main(["train_compile", f"{source}/maxtext/configs/base.yml", *WORDS, *words])
            stats = kept["compiled"].memory_analysis()
            if what == "arguments":
                row["bytes"] = stats.argument_size_in_bytes
                row |= sorted_out(parameters(kept["compiled"].as_text()))
            elif what == "exchanges":
                row["exchanges"] = exchanges(kept["compiled"].as_text())
            else:
                names = ["argument_size", "output_size", "alias_size", "temp_size", "generated_code_size"]
                row |= {name: getattr(stats, name + "_in_bytes") for name in names}
                row["peak_memory"] = stats.peak_memory_in_bytes
        except Traced:
            [row["scan"]] = kept["residuals"]
        except jax.errors.JaxRuntimeError as error:
            row["refused"] = str(error)
        print(json.dumps(row), flush=True)
        jax.clear_caches()


main(*sys.argv[1:])
