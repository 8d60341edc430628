#!/usr/bin/env python3
"""Counts the parameters of every configuration in transformers.jsonl with the transformers library itself.

    python3 -m venv v && v/bin/pip install transformers==5.23.0 torch==2.15.0 pillow
    v/bin/python count.py transformers.jsonl > counted.jsonl

Each line is {"name", "class", "config", ...}; the class is built from the configuration on the meta device, where
tensors have shapes and no data. Written per line:

    parameters  all parameters of the text model and its output layer, tied ones once (in a model of one modality:
                all there are)
    active      the same less the experts that a token does not meet
    beside      parameters of other modalities and their projectors, which the figures above leave out

A line with "as" is of a type whose code is not in the library; it is counted as the type named there, which has the
same parameters. A line with "fails" is one that the library cannot build; it is written back as it is.
"""
import json
import re
import sys
import warnings

warnings.filterwarnings("ignore")
import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

OTHER = re.compile(
    r"vision|visual|image|projector|connector|audio|merger|aligner|modality(?!_router)|language_projection|speech|qformer|query_tokens|resampler"
    r"|embed_vision|\bvit|abstractor|video|vlm_|vqmodel|generation_|embed_audio|embed_tokens_extend|visual_tokenizer|vte\b"
)


def chosen_and_all(config):
    """How many experts a token meets, and of how many."""
    text = config.get_text_config()
    names = ["num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"]
    experts = next((getattr(text, n) for n in names if isinstance(getattr(text, n, None), int)), 0)
    names = ["num_experts_per_tok", "moe_topk", "top_k_experts", "moe_k", "moe_top_k"]
    chosen = next((getattr(text, n) for n in names if isinstance(getattr(text, n, None), int)), 0)
    if hasattr(text, "ffn_config") and getattr(text.ffn_config, "moe_num_experts", 0):
        experts, chosen = text.ffn_config.moe_num_experts, text.ffn_config.moe_top_k
    return chosen, experts


def count(line):
    config = dict(line["config"])
    kind = line.get("as", config["model_type"])
    if isinstance(config.get("time_step_limit"), list):
        del config["time_step_limit"]
    config = CONFIG_MAPPING[kind].from_dict(config)
    with torch.device("meta"):
        model = getattr(transformers, line["class"])(config)
    chosen, experts = chosen_and_all(config)
    sizes = {"parameters": 0, "active": 0, "beside": 0}
    for name, tensor in model.named_parameters():
        size = tensor.numel()
        if OTHER.search(name):
            sizes["beside"] += size
            continue
        sizes["parameters"] += size
        routed = "experts" in name and "shared" not in name and tensor.dim() + ("bias" in name) == 3
        rows = tensor.shape[0] if routed else 0
        if ".ffn.experts.mlp." in name:  # DBRX: all experts in one matrix
            rows = experts
        sizes["active"] += size - (size // rows * (rows - chosen) if rows and chosen else 0)
    return sizes


def main():
    for text in open(sys.argv[1], encoding="utf-8"):
        line = json.loads(text)
        if "fails" not in line:
            line.update(count(line))
        print(json.dumps(line, separators=(",", ":")))


if __name__ == "__main__":
    main()
