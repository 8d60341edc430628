"""What XLA's TPU compiler gives levanter's train step, recorded without a TPU: one JSON line a case.

    pip install jax==0.10.2 libtpu==0.0.42.1 haliax==1.4.dev453 jmp draccus transformers fsspec braceexpand pytimeparse humanfriendly \
        safetensors tblib dataclasses-json async-lru tqdm-loggable deepdiff lenses jinja2 requests
    python levanter_steps.py steps PATH/TO/levanter/src < cases.jsonl > ../data/levanter/steps.jsonl
    python levanter_steps.py residuals PATH/TO/levanter/src < cases.jsonl > ../data/levanter/residuals.jsonl

Each line of the input is a case as the rows repeat it: a topology of libtpu (`v5e:4x4`; `v5:2x2x4` is v5p), the sections `model`, `trainer` and
`optimizer` of a settings file of levanter (stanford-crfm/levanter at 9263f81e), the size of the vocabulary, whether its hooks run in the step,
and whether samples have segments.
The step is `Trainer._jit_train_step_fn` (or without hooks), with the mesh over the topology's devices instead of over those that are there, and
attention as it is on TPUs.
"""

import json
import os
import sys
import types

from scans import residuals
from stand_ins import Finder

# What reads data, writes checkpoints and reports takes no part in the step.
ABSENT = """wandb ray datasets gcsfs pyarrow tensorstore zstandard matplotlib tokenizers lm_eval google tensorboardX trackio
librosa soundfile aqt fastapi uvicorn openai git""".split()




def main(what, source):
    os.environ.update(
        TPU_SKIP_MDS_QUERY="1", JAX_PLATFORMS="cpu", TPU_ACCELERATOR_TYPE="v5litepod-4", TPU_WORKER_HOSTNAMES="localhost"
    )
    sys.path.insert(0, source)
    sys.meta_path.insert(0, Finder(ABSENT))
    import draccus
    import equinox as eqx
    import haliax
    import haliax as hax
    import jax
    import jax.numpy as jnp
    import numpy as np
    from haliax.jax_utils import is_jax_array_like
    from haliax.partitioning import round_axis_for_partitioning
    from jax.experimental import topologies
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
    import levanter.layers.attention as attention
    import levanter.trainer as trainers
    from levanter.models.lm_model import LmConfig, LmExample, compute_next_token_loss
    from levanter.optim import OptimizerConfig
    from levanter.tracker import NoopConfig

    # Arguments are shapes here.
    haliax.partitioning.is_array = is_jax_array_like
    # JAX takes weights of a mean as booleans since 0.8; the loss mask is fp32.
    mean = jnp.mean
    jnp.mean = lambda *values, where=None, **words: mean(*values, where=None if where is None else where.astype(bool), **words)
    attention.default_attention_type = lambda: attention.AttentionBackend.SPLASH
    print(json.dumps({"levanter": "9263f81e", "haliax": "1.4.dev453", "jax": jax.__version__, "libtpu": "0.0.42.1"}), flush=True)
    for line in sys.stdin:
        case = json.loads(line)
        row = dict(case)
        kind = case["topology"].split(":")[0]
        megacore = "megacore" if kind in ("v4", "v5") else "default"
        devices = topologies.get_topology_desc(
            platform="tpu", topology_name=case["topology"], chip_config_name=megacore, chips_per_host_bounds=(2, 2, 1), num_slices=1
        ).devices
        jax.device_count = lambda *_: len(devices)
        jax.local_device_count = lambda *_: min(4, len(devices))
        jax.devices = lambda *_: devices
        config = draccus.decode(trainers.TrainerConfig, case.get("trainer", {}))
        config.tracker, config.id = NoopConfig(), "recorded"
        config._validate_and_set_defaults()
        sizes = (config.replica_axis_size, config.data_axis_size // config.replica_axis_size, config.model_axis_size)
        mesh = Mesh(np.array(devices).reshape(sizes), ("replica", "data", "model"))
        config.__dict__["device_mesh"] = mesh
        model = draccus.decode(LmConfig, case["model"])
        optimizer = draccus.decode(OptimizerConfig, {"type": "adam"} | case.get("optimizer", {})).build(config.num_train_steps)
        trainer = trainers.Trainer(config, optimizer, compute_next_token_loss, add_default_hooks=False)
        if case.get("hooks"):
            trainer.add_hook(config.watch.build(), every=config.watch.interval)
        try:
            with trainer:
                words = round_axis_for_partitioning(hax.Axis("vocab", case["vocab"]), trainer.parameter_axis_mapping)
                batch = hax.Axis(config.batch_axis, config.train_batch_size)

                def state(key):
                    made = trainers.TrainerState.init(
                        optimizer, model.build(words, key=key), key=key, is_trainable=True, mp=trainer.mp, model_averaging=None
                    )
                    return hax.shard(made, trainer.parameter_axis_mapping)

                def example(key):
                    tokens = hax.zeros((batch, model.Pos), dtype=jnp.int32)
                    # Its data sets a segment id for each token, counted by the tokens that end a document.
                    end = 0 if case.get("segments") else None
                    made = hax.vmap(lambda one: LmExample.causal(one, eos_id=end), batch)(tokens)
                    return hax.shard(made, trainer.compute_axis_mapping)

                def placed(function, mapping):
                    made = eqx.filter_eval_shape(function, jax.ShapeDtypeStruct((2,), jnp.uint32))

                    def place(leaf):
                        if isinstance(leaf, hax.NamedArray):
                            spec = hax.partitioning.pspec_for_axis(leaf.axes, mapping)
                            array = leaf.array
                            placed = jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=NamedSharding(mesh, spec))
                            return hax.NamedArray(placed, leaf.axes)
                        if isinstance(leaf, jax.ShapeDtypeStruct):
                            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=NamedSharding(mesh, PartitionSpec()))
                        return leaf

                    return jax.tree_util.tree_map(place, made, is_leaf=lambda leaf: isinstance(leaf, hax.NamedArray))

                states = placed(state, trainer.parameter_axis_mapping)
                examples = placed(example, trainer.compute_axis_mapping)
                step = trainer._jit_train_step_fn if case.get("hooks") else trainer._jit_train_step_fn_no_hook
                if what == "residuals":
                    program, _, _ = eqx.filter_make_jaxpr(step)(states, (examples,), {})
                    row["scans"] = residuals(program.jaxpr)
                else:
                    compiled = step.lower(states, (examples,), {}).compile()
                    stats = compiled.memory_analysis()
                    names = ["argument_size", "output_size", "alias_size", "temp_size", "generated_code_size"]
                    row |= {name: getattr(stats, name + "_in_bytes") for name in names}
                    row["peak_memory"] = stats.peak_memory_in_bytes
                    if os.environ.get("KEEP_HLO"):
                        open(os.environ["KEEP_HLO"], "w").write(compiled.as_text())
        except jax.errors.JaxRuntimeError as error:
            row["refused"] = str(error)
        print(json.dumps(row), flush=True)
        jax.clear_caches()


main(*sys.argv[1:])
