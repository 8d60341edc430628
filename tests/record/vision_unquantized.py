"""Records what ms-swift's list of modules in 16 bits leaves of a vision tower beside a decoder in 4 bits, on a CPU.

    pip install torch==2.15.0 transformers==5.23.0 bitsandbytes==0.50.2 accelerate
    python vision_unquantized.py > ../data/activations/vision_unquantized.tsv

The list is `get_modules_to_not_convert` of `swift/arguments/base_args/quant_args.py` with the names of `swift/model/model_arch.py` for
transformers 4.52 and later (ms-swift@3602360a5623). The models are those of vision_towers.py, saved and loaded with it. Tab separated:

  type       model_type of the whole
  decoder    linear layers of the decoder in 4 bits, of all that it has beside the output layer
  linears    those, all of them
  tower      linear layers of tower and projector in 4 bits
  params     parameters of tower and projector
  bytes      their bytes
  hooked     bytes that autograd keeps of them once `enable_input_require_grads()` was called
  plain      the same of the model in 16 bits
"""

import sys
import tempfile

import bitsandbytes
import torch
from transformers import AutoModelForImageTextToText, BitsAndBytesConfig

from vision_towers import CASES, IMAGE, TOWERS, build, inputs, kept

VISUAL = ["model.visual", "model.visual.merger"]
DEEP = ["model.visual.deepstack_merger_list"]
PARTS = ["model.vision_tower", "model.multi_modal_projector"]
SKIPPED = dict(qwen2_vl=VISUAL, qwen2_5_vl=VISUAL, qwen3_vl=VISUAL + DEEP, llava=PARTS, gemma3=PARTS)


def is_tower(name):
    return any(part in TOWERS for part in name.split("."))


def given_to(kind, config, small):
    given, _ = inputs(kind, config, small)
    torch.manual_seed(1)
    ids = torch.randint(0, 280, (1, 96))
    ids[0, 4] = 292
    ids[0, 5 : 5 + (64 if kind == "llava" else 16)] = IMAGE
    places = (ids == IMAGE).long()
    given |= dict(input_ids=ids, labels=ids)
    if kind.startswith("qwen"):
        given["mm_token_type_ids"] = places
    if kind == "gemma3":
        given["token_type_ids"] = places
    return given


def hooked(model, given):
    model.train().requires_grad_(False)
    model.enable_input_require_grads()
    return kept(model, given)[0]


def record(kind, _, text, small, __, more):
    plain, config = build(kind, text, small, more)
    given = given_to(kind, config, small)
    with tempfile.TemporaryDirectory() as folder:
        plain.save_pretrained(folder)
        four = BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_compute_dtype=torch.bfloat16, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
            llm_int8_skip_modules=[*SKIPPED[kind], "lm_head"])
        model = AutoModelForImageTextToText.from_pretrained(
            folder, quantization_config=four, dtype=torch.bfloat16, attn_implementation="sdpa", device_map="cpu")
    linears = {name: module for name, module in model.named_modules() if isinstance(module, torch.nn.Linear) and name != "lm_head"}
    quantized = {name for name, module in linears.items() if isinstance(module, bitsandbytes.nn.Linear4bit)}
    tower = [parameter for name, parameter in model.named_parameters() if is_tower(name)]
    row = [
        kind, sum(not is_tower(name) for name in quantized), sum(not is_tower(name) for name in linears), sum(map(is_tower, quantized)),
        sum(parameter.numel() for parameter in tower), sum(parameter.nbytes for parameter in tower), hooked(model, given), hooked(plain, given),
    ]
    print("\t".join(map(str, row)), flush=True)


if __name__ == "__main__":
    print("type\tdecoder\tlinears\ttower\tparams\tbytes\thooked\tplain")
    for case in SKIPPED:
        record(case, *CASES[case])
