#!/usr/bin/env python3
"""Writes configurations with keys changed at random, counted by the library, in the form of transformers.jsonl.

    v/bin/python changed.py SEED TIMES > lines.jsonl     # transformers 5.24.0

Of every model type with a causal model, and of every one that reads images beside text: TIMES configurations, of a few
keys each or of all of them. What the class refuses is left out. The engine is held against them by
`LINES_FILE=lines.jsonl cargo test --test suite architectures`.
"""
import json
import random
import signal
import sys
import warnings

warnings.filterwarnings("ignore")
import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
)

from count import count

transformers.logging.set_verbosity_error()
LAYERS = {"num_hidden_layers", "n_layer", "n_layers", "num_layers"}
LENGTHS = LAYERS | {"depth", "decoder_layers", "encoder_layers"}
HIDDEN = {"hidden_size", "n_embd", "d_model", "n_embed"}
HEADS = {"num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"}
NEVER = ("token_id", "_token", "eps", "theta", "dtype", "init", "dropout", "version", "_idx", "pdrop", "scal", "limit",
         "transformers", "chunk_size", "pad", "output_", "return_", "use_cache", "is_", "image_size", "patch", "label", "problem",
         "prefix", "suffix", "tokenizer", "architectures", "cross", "gradient", "torchscript", "pruned", "finetuning", "task", "fp32")
WHOLE = {"head_dim": [16, 32, 48, 64], "num_key_value_heads": [1, 2, 4], "q_lora_rank": [None, 24, 48], "kv_lora_rank": [32, 64],
         "sliding_window": [None, 32, 4096], "num_experts": [4, 8], "num_local_experts": [4, 8], "n_routed_experts": [8, 16],
         "n_shared_experts": [0, 1, 2], "first_k_dense_replace": [0, 1, 2]}


def change(config, dice, depth=0):
    """Some keys of `config` with other values."""
    out = {}
    keys = [k for k in config if not any(word in k for word in NEVER) and k not in ("model_type", "layer_types")]
    dice.shuffle(keys)
    for key in keys[:dice.choice([1, 2, 3, 5, 8])]:
        value = config[key]
        if key in LENGTHS:
            continue
        if isinstance(value, bool):
            out[key] = not value
        elif key in WHOLE and (value is None or isinstance(value, int)):
            out[key] = dice.choice(WHOLE[key])
        elif key in HIDDEN:
            out[key] = dice.choice([128, 192, 256, 512])
        elif key in HEADS:
            out[key] = dice.choice([2, 4, 8])
        elif isinstance(value, int) and value > 3:
            out[key] = max(1, int(value * dice.choice([0.25, 0.5, 0.5, 2])))
        elif isinstance(value, int):
            out[key] = dice.choice([0, 1, 2, 3, 4])
        elif isinstance(value, dict) and depth == 0 and "model_type" in value:
            out[key] = {"model_type": value["model_type"], **change(value, dice, 1)}
    for key in LAYERS & config.keys():
        if dice.random() < 0.8:
            out[key] = dice.choice([1, 2, 3, 4, 6, 8])
    if dice.random() < 0.3 and "layer_types" in config and config["layer_types"]:
        kinds = sorted(set(config["layer_types"]))
        layers = next((out.get(k, config[k]) for k in LAYERS if k in config), 0)
        out["layer_types"] = [dice.choice(kinds) for _ in range(layers or 0)]
    return out


def late(*_):
    raise TimeoutError


def main():
    seed, times = int(sys.argv[1]), int(sys.argv[2])
    only = sys.argv[3:]
    signal.signal(signal.SIGALRM, late)
    names = dict(MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES) | dict(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    for model_type, cls in sorted(names.items()):
        if only and model_type not in only:
            continue
        cls = cls if isinstance(cls, str) else cls[0]
        try:
            default = CONFIG_MAPPING[model_type]().to_dict()
        except Exception:
            continue
        dice = random.Random(f"{seed} {model_type}")
        done = 0
        for trial in range(3 * times):
            if done == times:
                break
            written = {"model_type": model_type, **change(default, dice)}
            if dice.random() < 0.3:
                kept = {k: v for k, v in default.items() if isinstance(v, (bool, int, float, str)) or v is None}
                kept = {k: v for k, v in kept.items() if not any(w in k for w in ("token_id", "version", "dtype", "init"))}
                written = {**kept, **written}
            line = {"name": f"{model_type}-changed-{seed}-{trial}", "kind": "changed", "class": cls, "config": written}
            signal.alarm(20)
            try:
                with warnings.catch_warnings():
                    line.update(count(line))
            except Exception:
                continue
            finally:
                signal.alarm(0)
            done += 1
            print(json.dumps(line, separators=(",", ":")), flush=True)


if __name__ == "__main__":
    main()
