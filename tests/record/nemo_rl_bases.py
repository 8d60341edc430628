#!/usr/bin/env python3
"""Writes crates/formats/src/rl/nemo-rl.txt: what NeMo-RL's own files set that its recipes build on.

usage: nemo_rl_bases.py CHECKOUT > nemo-rl.txt    (needs PyYAML; CHECKOUT is a work tree of NVIDIA-NeMo/RL)

A file of `examples/configs` is kept where another names it under `defaults`, and so are the files that it builds on itself.
Of each only the keys that the reader takes are kept, and only where they differ from what the file builds on.
"""

import re
import subprocess
import sys
from pathlib import Path

import yaml

READ = re.compile(
    r"policy\.(model_name|precision|train_(global|micro)_batch_size|max_total_sequence_length|quant_cfg|draft\.enabled|logprob_chunk_size)$"
    r"|policy\.dtensor_cfg\.(enabled|_v2|cpu_offload|activation_checkpointing|\w+_parallel_size|sequence_parallel|custom_parallel_plan)$"
    r"|policy\.dtensor_cfg\.lora_cfg\.(enabled|dim|alpha|dropout|target_modules)$"
    r"|policy\.megatron_cfg\.(optimizer\.|distributed_data_parallel_config\.|fp8_cfg\.)?\w+$"
    r"|policy\.megatron_cfg\.peft\.(enabled|dim|alpha|dropout|target_modules)$"
    r"|policy\.(sequence_packing|dynamic_batching)\.(enabled|train_mb_tokens)$"
    r"|policy\.generation\.(backend|top_[kp]|colocated\.(enabled|resources\.\w+))$"
    r"|policy\.generation\.vllm_cfg\.(\w+_parallel_size|gpu_memory_utilization|enforce_eager|precision)$"
    r"|cluster\.(gpus_per_node|num_nodes)$"
    r"|grpo\.num_(generations_per_prompt|prompts_per_step)$"
    r"|loss_fn\.reference_policy_kl_penalty$"
    r"|(value|teacher)\.model_name$"
    r"|value\.(precision|train_(global|micro)_batch_size|max_total_sequence_length)$"
    r"|value\.dtensor_cfg\.(enabled|cpu_offload|activation_checkpointing|lora_cfg\.enabled|\w+_parallel_size)$"
    r"|value\.(sequence_packing|dynamic_batching)\.enabled$"
    # Tells what is trained: by rewards, on samples, on pairs.
    r"|(grpo|ppo|sft|dpo|rm|distillation)\.max_num_steps$"
)
# Below `policy.megatron_cfg`, but of no weight, time or byte.
IDLE = re.compile(
    r"scheduler|checkpoint$|env_vars|force_reconvert|empty_unused|per_layer_logging|router_bias_update|pipeline_dtype"
    r"|converter_type|freeze_moe_router|mtp_loss|mtp_detach|track|use_gloo|cuda_graph_warmup|lr$|weight_decay"
    r"|adam_(beta|eps)|sgd_momentum|clip_grad"
)
# In a file that builds on nothing these say what the reader takes for granted, but where Megatron's own default differs.
GRANTED = {"false", "null", "[]"}
NEEDED = re.compile(r"grad_reduce_in_fp32|gradient_accumulation_fusion|precision_aware|use_distributed_optimizer")


def scalars(node, path=""):
    if isinstance(node, dict):
        for key, value in node.items():
            yield from scalars(value, f"{path}.{key}" if path else str(key))
    else:
        yield path, node


def text(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ",".join(map(str, value)) + "]"
    return str(value)


def main():
    root = Path(sys.argv[1])
    commit = subprocess.run(["git", "-C", root, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    files = {path.resolve(): yaml.safe_load(path.read_text()) for path in root.glob("examples/**/*.yaml")}

    def parents(path):
        names = (files.get(path) or {}).get("defaults") or []
        return [(path.parent / name).resolve() for name in ([names] if isinstance(names, str) else names)]

    def own(path):
        return dict(scalars({key: value for key, value in (files.get(path) or {}).items() if key != "defaults"}))

    def whole(path):
        values = {}
        for parent in parents(path):
            values.update(whole(parent))
        return {**values, **own(path)}

    uses = [parent for path in files for parent in parents(path)]
    kept = set()

    def keep(path):
        if path not in kept:
            kept.add(path)
            for parent in parents(path):
                keep(parent)

    for path in uses:
        if "configs" in path.parts and not path.name.startswith("eval"):
            keep(path)
    print(f"# NVIDIA-NeMo/RL at {commit}, examples: [a file] and those that it builds on, then what it sets.")
    for path in sorted(kept, key=lambda path: (len(path.parts), path.name)):
        under = {}
        for parent in parents(path):
            under.update(whole(parent))
        print(f"[{path.name}]" + "".join(f" {parent.name}" for parent in parents(path)))
        for key, value in own(path).items():
            if not READ.match(key) or IDLE.search(key) or (key in under and under[key] == value):
                continue
            if parents(path) and key.endswith("max_num_steps"):
                continue
            if parents(path) or text(value) not in GRANTED or NEEDED.search(key):
                print(key, text(value))


main()
