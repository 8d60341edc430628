"""Records what autograd keeps of small models of transformers with NeMo Automodel's adapters and its loss, on a CPU.

    pip install torch transformers
    git clone https://github.com/NVIDIA-NeMo/Automodel && git -C Automodel checkout 36044ad3d1
    python automodel_layers.py Automodel > automodel.jsonl

The classes `LinearLoRA`, `TritonLinearLoRA` and `MaskedCrossEntropy` are taken from their files alone, so that nothing that
needs a GPU is imported; where a tensor parallel plan is absent, `tp_linear_forward` is `F.linear`. The adapters are those
without `use_memory_efficient_lora`. Counted as in `record_huggingface.py`, whose keys the lines have.
"""

import ast
import collections
import json
import math
import pathlib
import sys

import torch
import torch.nn.functional as F
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

RANK = 8
LAYERS = 3


def classes(path, names, **known):
    """Those classes of a file, without its imports."""
    tree = ast.parse((pathlib.Path(sys.argv[1]) / path).read_text())
    wanted = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name in names]
    space = dict(torch=torch, nn=torch.nn, F=F, math=math, DTensor=type("DTensor", (), {}), **known)
    exec(compile(ast.Module(wanted, []), path, "exec"), space)
    return space


LORA = classes("nemo_automodel/components/_peft/lora.py", ("LinearLoRA", "TritonLinearLoRA"), HAS_TE=False,
               tp_linear_forward=lambda x, weight, bias, mm_for_2d_compile: F.linear(x, weight, bias))
LOSS = classes("nemo_automodel/components/loss/masked_ce.py", ("MaskedCrossEntropy",))["MaskedCrossEntropy"]()


def adapt(model, case):
    """The model with Automodel's adapters beside `*_proj`."""
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for parent in list(model.modules()):
        for name, module in list(parent.named_children()):
            if isinstance(module, torch.nn.Linear) and name.endswith("_proj"):
                adapted = LORA[case["adapter"]](module, dim=RANK, use_memory_efficient_lora=False)
                setattr(parent, name, adapted)
    return model


def record(case):
    """The bytes kept, by layer, shared and outside."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(
        case["arch"], num_hidden_layers=LAYERS, hidden_size=case["h"], intermediate_size=case["f"],
        num_attention_heads=case["a"], num_key_value_heads=case["k"], head_dim=case["d"], vocab_size=case["V"],
        max_position_embeddings=2 * case["s"], use_cache=False, attn_implementation="sdpa")
    model = AutoModelForCausalLM.from_config(config).to(torch.bfloat16).train()
    if case["train"] != "full":
        model = adapt(model, case)
    own = {p.untyped_storage().data_ptr() for p in [*model.parameters(), *model.buffers()]}
    place, users, held = [], collections.defaultdict(set), {}
    for index, layer in enumerate(model.model.layers):
        layer.register_forward_pre_hook(lambda *_, index=index: place.append(f"layer{index}"))
        layer.register_forward_hook(lambda *_: place.pop() and None)

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own and storage.nbytes():
            held[storage.data_ptr()] = storage
            users[storage.data_ptr()].add(place[-1] if place else "outside")
        return tensor

    tokens = torch.randint(0, case["V"], (case["b"], case["s"]))
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = LOSS(model(input_ids=tokens).logits, tokens.clone(), num_label_tokens=tokens.numel())
    kept = collections.Counter()
    for address, places in users.items():
        inside = places - {"outside"}
        where = "shared" if len(inside) > 1 else next(iter(inside or places))
        kept[where] += held[address].nbytes()
    loss.backward()
    trained = [p for p in model.parameters() if p.requires_grad]
    frozen = [p for p in model.parameters() if not p.requires_grad]
    optimizer = torch.optim.AdamW(trained)
    optimizer.step()
    moments = [state for p in trained for name, state in optimizer.state[p].items() if name != "step"]
    return dict(kept=kept, trained_params=sum(p.numel() for p in trained),
                grad_bytes=sum(p.grad.nbytes for p in trained), adamw_moment_bytes=sum(t.nbytes for t in moments),
                frozen_params=sum(p.numel() for p in frozen), trained_param_bytes=sum(p.nbytes for p in trained),
                frozen_param_bytes=sum(p.nbytes for p in frozen))


print(json.dumps({"what": "Bytes that autograd keeps of models of transformers with NeMo Automodel's adapters and loss",
                  "versions": {"automodel": "36044ad3d1", "torch": torch.__version__,
                               "transformers": transformers.__version__}}))
for arch in ("llama", "qwen2", "qwen3"):
    for b, s in ((1, 64), (2, 96)):
        for train, adapter in (("full", None), ("lora-all", "LinearLoRA"), ("lora-all", "TritonLinearLoRA")):
            case = dict(
                id=f"automodel-{arch}-b{b}-s{s}-{adapter or train}", kind="model", layers=LAYERS, arch=arch, dtype="bf16", b=b,
                s=s, h=128, a=4, k=2, d=32, f=352, V=1000, attn="sdpa", train=train, adapter=adapter, gc=None,
                input_require_grads=False, lora_dropout=0.0, adapter_fp32=False, autocast=False, padded=False,
                num_items=True, use_cache=False, experts=None, loss=None)
            print(json.dumps({**case, **record(case)}))
