"""Records what axolotl's autograd functions for LoRA keep in small models of transformers with PEFT's adapters, on a CPU.

    pip install torch==2.15.0 transformers==5.23.0 peft==0.21.2
    git clone https://github.com/axolotl-ai-cloud/axolotl && git -C axolotl checkout 067b021c8b87
    python axolotl_lora.py axolotl > ../data/activations/axolotl.jsonl

The functions are axolotl's (`src/axolotl/kernels/lora.py:LoRA_QKV, LoRA_O, LoRA_MLP`), put where `monkeypatch/lora_kernels.py` puts
them. What needs a GPU has a stand-in: the activation makes an empty tensor of its result's shape, and weights are not quantized.
Layout of the lines, and how tensors are counted, as in `huggingface.jsonl`; `kernels` names what is fused.
"""

import collections
import contextlib
import itertools
import json
import pathlib
import sys
import types

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM

RANK = 8


class Drop(torch.autograd.Function):
    """Dropout with a mask of a byte each, as the CUDA kernel keeps it (the CPU's has the tensor's type)."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(torch.ones(x.shape, dtype=torch.bool))
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


torch.nn.Dropout.forward = lambda self, x: Drop.apply(x) if self.p and self.training else x


def load(root):
    """axolotl's `kernels/lora.py`, with stand-ins for what needs a GPU."""
    package = types.ModuleType("kernels")
    package.__path__ = []
    sys.modules["kernels"] = package
    made = lambda gate, up: torch.empty_like(gate)
    same = lambda function: function
    for name, parts in {
        "bitsandbytes": {}, "bitsandbytes.functional": dict(QuantState=object),
        "kernels.swiglu": dict(swiglu_forward=made, swiglu_backward=None),
        "kernels.geglu": dict(geglu_forward=made, geglu_backward=None),
        "kernels.quantize": dict(dequantize=lambda weight, state=None: weight),
        "kernels.utils": dict(torch_amp_custom_fwd=same, torch_amp_custom_bwd=same),
    }.items():
        module = sys.modules[name] = types.ModuleType(name)
        vars(module).update(parts)
    path = root / "src" / "axolotl" / "kernels" / "lora.py"
    module = types.ModuleType("kernels.lora")
    module.__package__ = "kernels"
    sys.modules["kernels.lora"] = module
    exec(compile(path.read_text(), str(path), "exec"), vars(module))
    # PEFT looks for the real one.
    del sys.modules["bitsandbytes"], sys.modules["bitsandbytes.functional"]
    return module


def patch(model, case, lora):
    """Puts the functions in the layers' places. Projections are called in the order of queries, keys and values."""
    for layer in model.model.model.layers:
        attention = layer.self_attn
        if "qkv" in case["kernels"]:
            held = {}

            def queries(x, attention=attention, held=held):
                held["q"], held["k"], held["v"] = lora.apply_lora_qkv(types.SimpleNamespace(**attention._parts), x)
                return held.pop("q")

            attention._parts = {name: getattr(attention, name) for name in ["q_proj", "k_proj", "v_proj"]}
            attention._parts["training"] = True
            attention.q_proj.forward = queries
            attention.k_proj.forward = lambda x, held=held: held.pop("k")
            attention.v_proj.forward = lambda x, held=held: held.pop("v")
        if "o" in case["kernels"]:
            part = types.SimpleNamespace(o_proj=attention.o_proj, training=True)
            attention.o_proj.forward = lambda x, part=part: lora.apply_lora_o(part, x)
        if "mlp" in case["kernels"]:
            layer.mlp.forward = types.MethodType(lora.apply_lora_mlp_swiglu, layer.mlp)


def record(case, lora):
    torch.manual_seed(0)
    sizes = dict(num_hidden_layers=case["layers"], hidden_size=case["h"], intermediate_size=case["f"], num_attention_heads=case["a"],
                 num_key_value_heads=case["k"], head_dim=case["d"], vocab_size=case["V"], max_position_embeddings=2 * case["s"],
                 use_cache=False, attn_implementation="sdpa")
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(case["arch"], **sizes)).to(torch.bfloat16)
    settings = LoraConfig(r=RANK, lora_dropout=case["lora_dropout"], target_modules="all-linear", task_type="CAUSAL_LM")
    model = get_peft_model(model, settings, autocast_adapter_dtype=case["adapter_fp32"]).train()
    model.enable_input_require_grads()
    patch(model, case, lora)
    own = {p.untyped_storage().data_ptr() for p in [*model.parameters(), *model.buffers()]}
    place, users, held = [], collections.defaultdict(set), {}
    for index, layer in enumerate(model.model.model.layers):
        layer.register_forward_pre_hook(lambda *_, index=index: place.append(f"layer{index}"))
        layer.register_forward_hook(lambda *_: place.pop() and None)

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own and storage.nbytes():
            held[storage.data_ptr()] = storage
            users[storage.data_ptr()].add(place[-1] if place else "outside")
        return tensor

    tokens = torch.randint(0, case["V"], (case["b"], case["s"]))
    cast = torch.autocast("cpu", torch.bfloat16) if case["autocast"] else contextlib.nullcontext()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), cast:
        model(input_ids=tokens, labels=tokens.clone())
    kept = collections.Counter()
    for address, places in users.items():
        inside = places - {"outside"}
        kept["shared" if len(inside) > 1 else next(iter(inside or places))] += held[address].nbytes()
    return dict(kept=kept)


def cases():
    ways = itertools.product(["llama", "qwen2", "qwen3"], [(1, 64), (2, 96)], [0.0, 0.05], [True, False])
    for arch, (b, s), dropout, autocast in ways:
        for kernels in [["qkv", "o", "mlp"], ["qkv", "o"], ["mlp"]]:
            h, a, k, d, f = dict(llama=(128, 4, 2, 40, 352), qwen2=(128, 4, 4, 32, 256), qwen3=(128, 4, 2, 64, 256))[arch]
            name = "-".join([arch, f"b{b}", f"s{s}", f"drop{dropout}", "autocast" if autocast else "plain", *kernels])
            yield dict(id=name, arch=arch, dtype="bf16", b=b, s=s, h=h, a=a, k=k, d=d, f=f, V=1000, layers=3, attn="sdpa",
                       kernels=kernels, lora_dropout=dropout, adapter_fp32=autocast, autocast=autocast)


if __name__ == "__main__":
    functions = load(pathlib.Path(sys.argv[1]))
    print(json.dumps(dict(what="Bytes that autograd keeps of a model of three layers with axolotl's functions for LoRA, by axolotl_lora.py",
                          versions=dict(torch=torch.__version__, transformers="5.23.0", peft="0.21.2", axolotl="067b021c8b87")),
                     separators=(",", ":")))
    for case in cases():
        print(json.dumps({**case, **record(case, functions)}, separators=(",", ":")))
