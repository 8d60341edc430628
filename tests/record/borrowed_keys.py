"""Records what is held when backward begins where layers that borrow keys and values of earlier ones are checkpointed (Gemma 4 E2B and
E4B), one JSON line a case, on a CPU.

    pip install torch==2.15.0 transformers==5.23.0 peft==0.21.2
    python borrowed_keys.py > ../data/activations/borrowed_keys.jsonl

Every storage of floating point that is alive when the loss is there is counted once, parameters, buffers and the loss's own
tensors left out: those that Python still refers to, which a checkpoint's arguments are, and those that autograd packs outside of
checkpoints. `borrowed` says which of them the container of keys and values refers to, and `graph` whether they lead back to the
layer that made them.
"""

import gc
import json

import peft
import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.cache_utils import KVSharingDict

SHAPE = dict(num_hidden_layers=8, hidden_size=128, intermediate_size=352, vocab_size=1000, max_position_embeddings=4096,
             num_attention_heads=4, num_key_value_heads=2, head_dim=32, sliding_window=40, global_head_dim=64,
             hidden_size_per_layer_input=24, num_kv_shared_layers=4, use_double_wide_mlp=True, vocab_size_per_layer_input=1000,
             layer_types=(["sliding_attention"] * 3 + ["full_attention"]) * 2, use_cache=False)


def record(case):
    torch.manual_seed(0)
    dtype = torch.float32 if case["dtype"] == "fp32" else torch.bfloat16
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model("gemma4_text", **SHAPE, attn_implementation=case["attn"]))
    model = model.to(dtype).train()
    model.gradient_checkpointing_enable({"use_reentrant": case["reentrant"]})
    if "adapts" in case:
        model.enable_input_require_grads()
        model = peft.get_peft_model(model, peft.LoraConfig(r=8, target_modules=case["adapts"], lora_dropout=0.0))
    own = {p.untyped_storage().data_ptr() for p in [*model.parameters(), *model.buffers()]}
    packed, head = {}, []

    def pack(tensor):
        # Those of the head and the loss are counted elsewhere.
        if not head:
            packed[id(tensor)] = tensor
        return tensor

    tokens = torch.randint(0, 1000, (case["b"], case["s"]))
    inner = model.get_base_model() if "adapts" in case else model
    inner.model.register_forward_hook(lambda *_: head.append(True))
    mixed = torch.autocast("cpu", torch.bfloat16, enabled="autocast" in case)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), mixed:
        hidden = inner.model(input_ids=tokens).last_hidden_state
        loss = hidden.float().sum()
    gc.collect()
    alive, sharing = {}, {}
    for thing in gc.get_objects():
        if isinstance(thing, KVSharingDict):
            sharing |= dict(thing)
        if isinstance(thing, torch.Tensor):
            alive[id(thing)] = thing
    kept, borrowed = {}, {}
    for tensor in [*alive.values(), *packed.values()]:
        storage = tensor.untyped_storage()
        if storage.data_ptr() in own or not tensor.is_floating_point() or not storage.nbytes() or tensor is loss:
            continue
        kept[storage.data_ptr()] = (storage.nbytes(), f"{list(tensor.shape)} {str(tensor.dtype)[6:]}")
    for name, pair in sharing.items():
        for tensor in pair:
            borrowed[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
    graph = any(tensor.grad_fn is not None for pair in sharing.values() for tensor in pair)
    loss.backward()
    lent = max(index for index, kind in enumerate(SHAPE["layer_types"][:4]) if kind == "full_attention")
    keys = inner.model.layers[lent].self_attn.k_proj
    weight = getattr(keys, "weight", None)
    trained = weight is not None and weight.grad is not None
    return dict(kept=sum(size for size, _ in kept.values()), borrowed=sum(borrowed.values()), graph=graph, trained=trained), kept


if __name__ == "__main__":
    import sys
    print(json.dumps({"torch": torch.__version__, "transformers": transformers.__version__, "peft": peft.__version__, "shape": SHAPE}))
    for attn in ("sdpa", "eager"):
        for reentrant in (False, True):
            for extra in (dict(dtype="bf16"), dict(dtype="fp32"), dict(dtype="fp32", autocast="bf16"),
                          dict(dtype="bf16", adapts=["q_proj", "v_proj", "down_proj"]),
                          dict(dtype="bf16", adapts="all-linear")):
                case = dict(attn=attn, reentrant=reentrant, b=2, s=64, **extra)
                result, detail = record(case)
                print(json.dumps(dict(case, **result)))
                if "-v" in sys.argv:
                    for size, note in sorted(detail.values(), reverse=True):
                        print("   ", size, note)
