"""Records which linear layers a 4-bit checkpoint leaves in 16 bits for a list of `llm_int8_skip_modules`, and the bytes it holds, on a CPU.

    pip install torch==2.15.0 transformers==5.23.0 bitsandbytes==0.50.2 accelerate==1.15.0
    python whole_linears.py > ../data/activations/whole_linears.jsonl

A small model is saved in bf16 and loaded by `from_pretrained` with a `BitsAndBytesConfig`. `packed` are the bytes of 4-bit weights,
`constants` those of their blocks (the constants of 64 weights each, which are quantized in their turn, the constants of these and
their mean), `plain` everything else. Tables of the format's values, which all layers have alike, are not counted.
"""

import json
import tempfile

import bitsandbytes
import torch
import transformers

SHAPES = dict(
    grouped=dict(hidden_size=256, intermediate_size=640, num_attention_heads=8, num_key_value_heads=2, head_dim=32),
    wide=dict(hidden_size=128, intermediate_size=384, num_attention_heads=4, num_key_value_heads=4, head_dim=64),
)
OUTSIDE = ["lm_head", "multi_modal_projector", "merger", "modality_projection"]
LISTS = dict(
    none=None,
    outside=OUTSIDE,
    mlps=[*OUTSIDE, "model.layers.1.mlp", "model.layers.3.mlp"],
    mixed=[*OUTSIDE, "model.layers.0.self_attn", "model.layers.1.mlp", "model.layers.1.self_attn", "model.layers.10.mlp.down_proj"],
    whole_layer=[*OUTSIDE, "model.layers.1"],
    by_suffix=["lm_head", "o_proj", "model.layers.2.self_attn.q_proj", "model.layers.2.self_attn.v_proj"],
)


def record(shape, skipped):
    config = transformers.LlamaConfig(num_hidden_layers=12, vocab_size=512, tie_word_embeddings=False, **shape)
    model = transformers.LlamaForCausalLM(config).to(torch.bfloat16)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        how = transformers.BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, llm_int8_skip_modules=skipped,
            bnb_4bit_compute_dtype=torch.bfloat16,
        )
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, quantization_config=how, dtype=torch.bfloat16)
    out = dict(packed=0, constants=0, plain=0, whole=[])
    for name, module in model.named_modules():
        if type(module) is torch.nn.Linear and name != "lm_head":
            out["whole"].append(name)
    for parameter in model.parameters():
        state = getattr(parameter, "quant_state", None)
        out["plain" if state is None else "packed"] += parameter.nbytes
        if state is not None:
            out["constants"] += state.absmax.nbytes + state.state2.absmax.nbytes + state.offset.nbytes
    return out


if __name__ == "__main__":
    versions = dict(torch=torch.__version__.split("+")[0], transformers=transformers.__version__, bitsandbytes=bitsandbytes.__version__)
    what = "Linear layers left whole by llm_int8_skip_modules, and bytes held, recorded on a CPU by whole_linears.py"
    print(json.dumps(dict(what=what, versions=versions), separators=(",", ":")))
    for shape, sizes in SHAPES.items():
        for name, skipped in LISTS.items():
            case = dict(id=f"{shape}-{name}", shape=sizes, skipped=skipped or "none")
            print(json.dumps({**case, **record(sizes, skipped)}, separators=(",", ":")))
