"""Records what autograd keeps of small models of NeMo Automodel's own modules, and of its memory-efficient LoRA, on a CPU.

    pip install torch transformers
    git clone https://github.com/NVIDIA-NeMo/Automodel && git -C Automodel checkout 36044ad3d1
    PYTHONPATH=Automodel python automodel_own.py | grep '^{' > automodel_own.jsonl

`own` says whether the modules are Automodel's (its registry has them for these architectures) or transformers'. Norms of its
Llama and Qwen2 are compiled, as on a GPU. Adapters are put in by `apply_lora_to_linear_modules` with its defaults, beside
`*_proj` (in some with dropout of their results, which runs as on a GPU: `native_dropout` and its mask; or with `match_all_linear`: beside the output layer too), while the model has no memory yet: so it is on several GPUs
(`is_meta_device`), and MLPs are not joined then (`lora_mlp.py:_fusible`); `joined` has memory first, as on one. Counted as in `record_huggingface.py`, whose keys the lines have.
"""

import collections
import json
import sys

# Its kernels are for GPUs; without triton the same functions run PyTorch's products.
sys.modules["triton"] = None

import torch
import transformers
from nemo_automodel.components._peft.lora import PeftConfig, apply_lora_to_linear_modules
from nemo_automodel.components.loss.masked_ce import MaskedCrossEntropy
from nemo_automodel.components.models.llama.model import LlamaForCausalLM
from nemo_automodel.components.models.qwen2.model import Qwen2ForCausalLM
from nemo_automodel.components.models.qwen3.model import Qwen3ForCausalLM
from transformers import AutoConfig, AutoModelForCausalLM

# What `at::dropout` calls for tensors on a GPU (`aten/src/ATen/native/Dropout.cpp`).
torch.nn.functional.dropout = lambda x, p, training: torch.native_dropout(x, p, training)[0]

RANK = 8
LAYERS = 3
OWN = {"llama": LlamaForCausalLM, "qwen2": Qwen2ForCausalLM, "qwen3": Qwen3ForCausalLM}
LOSS = MaskedCrossEntropy()


def record(case):
    """The bytes kept, by layer, shared and outside."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(
        case["arch"], num_hidden_layers=LAYERS, hidden_size=case["h"], intermediate_size=case["f"],
        num_attention_heads=case["a"], num_key_value_heads=case["k"], head_dim=case["d"], vocab_size=case["V"],
        max_position_embeddings=2 * case["s"], use_cache=False, attn_implementation="sdpa", dtype="bfloat16",
        tie_word_embeddings=False, architectures=[OWN[case["arch"]].__name__])
    with torch.device("cpu" if case["adapter"] == "joined" else "meta"):
        model = OWN[case["arch"]](config) if case["own"] else AutoModelForCausalLM.from_config(config)
        model = model.to(torch.bfloat16).train()
        if case["train"] != "full":
            targets = dict(match_all_linear=True) if case["train"] == "lora-linear" else dict(target_modules=["*_proj"])
            efficient = case["adapter"] is not None
            adapters = PeftConfig(**targets, dim=RANK, dropout=case["lora_dropout"], use_memory_efficient_lora=efficient)
            apply_lora_to_linear_modules(model, adapters)
    if case["adapter"] != "joined":
        model = model.to_empty(device="cpu")
    for tensor in [*model.parameters(), *model.buffers()]:
        torch.nn.init.uniform_(tensor, 0.0, 0.01)
    tokens = torch.randint(0, case["V"], (case["b"], case["s"]))
    # What is compiled or cached for good is there before anything is counted.
    model(input_ids=tokens).logits.sum().backward()
    model.zero_grad()
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


print(json.dumps({"what": "Bytes that autograd keeps of NeMo Automodel's own modules and adapters",
                  "versions": {"automodel": "36044ad3d1", "torch": torch.__version__,
                               "transformers": transformers.__version__}}))
for arch in OWN:
    for own in (True, False):
        for b, s in ((1, 64), (2, 96)):
            # transformers' modules in full are in automodel.jsonl.
            kinds = [("full", None)] if own else []
            kinds += [("lora-all", "efficient"), ("lora-linear", "efficient")] + ([("lora-all", "joined")] if own else [])
            kinds = [(*kind, 0.0) for kind in kinds]
            if arch == "llama":
                kinds += [("lora-all", "efficient", 0.1), ("lora-all", None, 0.1)]
            for train, adapter, drop in kinds:
                name = "-".join(["automodel", "own" if own else "plain", arch, f"b{b}", f"s{s}", train])
                case = dict(
                    id=name + ("-joined" if adapter == "joined" else "") + (f"-drop-{adapter}" if drop else ""), kind="model", layers=LAYERS, own=own, arch=arch,
                    dtype="bf16", b=b, s=s, h=128, a=4, k=2, d=32, f=352, V=1000, attn="sdpa", train=train, adapter=adapter, gc=None,
                    input_require_grads=False, lora_dropout=drop, drops_result=drop > 0, adapter_fp32=False, autocast=False, padded=False, num_items=True,
                    use_cache=False, experts=None, loss=None)
                print(json.dumps({**case, **record(case)}), flush=True)
