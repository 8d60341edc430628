"""Records what autograd keeps of small models of transformers, with PEFT's adapters, on a CPU.

    pip install torch transformers peft
    python record_huggingface.py CASES.jsonl > RECORDED.jsonl

Each line of CASES.jsonl is a case as the lines of huggingface.jsonl have it (everything but `kept` and the counts is
read). Every tensor that autograd packs is taken once per storage, parameters and buffers left out, and counted to the
layer whose forward packs it first, to `shared` where several layers keep one storage, else to `outside`. The recorded
file was made with the versions in its first line, that of DoRA's adapters (`dora.jsonl`) with the same; losses by themselves and preference losses (`kind` other than
`model`) were recorded by the same hooks around the loss alone and are not made here.
"""

import collections
import contextlib
import json
import sys

import torch
from transformers import AutoConfig, AutoModelForCausalLM

LORA_RANK = 8
EXPERTS, EXPERTS_OF_A_TOKEN = 4, 2


class Drop(torch.autograd.Function):
    """Dropout with a mask of a byte each, as the CUDA kernel keeps it (the CPU's has the tensor's type)."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(torch.ones(x.shape, dtype=torch.bool))
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Norm(torch.autograd.Function):
    """LayerNorm with fp32 statistics, as the CUDA kernels keep them (the CPU's are in the tensor's type)."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        statistics = torch.empty(2, *x.shape[:-1], dtype=torch.float32)
        ctx.save_for_backward(x, statistics, weight, bias)
        return torch.nn.functional.layer_norm(x, weight.shape, weight, bias)

    @staticmethod
    def backward(ctx, gradient):
        _, _, weight, bias = ctx.saved_tensors
        return gradient, torch.zeros_like(weight), torch.zeros_like(bias)


def layer_norm(self, x):
    """Autocast on a GPU casts all operands to fp32, on a CPU none (aten/src/ATen/autocast_mode.h:AT_FORALL_FP32)."""
    operands = x, self.weight, self.bias
    if torch.is_autocast_enabled("cpu"):
        operands = (operand.float() for operand in operands)
    with torch.autocast("cpu", enabled=False):
        return Norm.apply(*operands)


torch.nn.LayerNorm.forward = layer_norm
torch.nn.Dropout.forward = lambda self, x: Drop.apply(x) if self.p and self.training else x


def config(case):
    """The configuration of a case's model."""
    sizes = dict(
        num_hidden_layers=case["layers"], hidden_size=case["h"], intermediate_size=case["f"],
        num_attention_heads=case["a"], vocab_size=case["V"], max_position_embeddings=2 * case["s"],
        use_cache=case["use_cache"], attn_implementation=case["attn"],
    )
    if case["arch"] != "gpt_neox":
        sizes.update(num_key_value_heads=case["k"], head_dim=case["d"])
    if case["arch"] == "phi3":
        # Its usual padding token is beyond so small a vocabulary.
        sizes.update(pad_token_id=0)
    if case["arch"] in ("mixtral", "qwen3_moe"):
        sizes.update(num_experts_per_tok=EXPERTS_OF_A_TOKEN, experts_implementation=case["experts"])
        sizes.update(dict(num_local_experts=EXPERTS) if case["arch"] == "mixtral" else
                     dict(num_experts=EXPERTS, moe_intermediate_size=case["f"]))
    return AutoConfig.for_model(case["arch"], **sizes)


def adapted(model, case):
    """The model with its adapters, or with what does not train frozen."""
    train = case["train"]
    if train.startswith("lora"):
        from peft import LoraConfig, get_peft_model
        fused = {"phi3": ["qkv_proj"], "gpt_neox": ["query_key_value"]}
        targets = "all-linear" if train == "lora-all" else fused.get(case["arch"], ["q_proj", "v_proj"])
        ends = ["embed_in", "embed_out"] if case["arch"] == "gpt_neox" else ["embed_tokens", "lm_head"]
        settings = LoraConfig(r=LORA_RANK, use_dora=case.get("dora", False), lora_dropout=case["lora_dropout"], target_modules=targets,
                              modules_to_save=ends if train.endswith("emb") else None, task_type="CAUSAL_LM")
        model = get_peft_model(model, settings, autocast_adapter_dtype=case["adapter_fp32"])
        if case["input_require_grads"]:
            model.enable_input_require_grads()
    elif train == "last1":
        last = f".{case['layers'] - 1}."
        for name, parameter in model.named_parameters():
            outside = "layers." not in name and "embed" not in name
            parameter.requires_grad_(last in name or outside)
    return model


def record(case):
    """The bytes kept, by layer, shared and outside."""
    torch.manual_seed(0)
    dtype = torch.float32 if case["dtype"] == "fp32" else torch.bfloat16
    model = adapted(AutoModelForCausalLM.from_config(config(case)).to(dtype), case).train()
    if case["gc"]:
        model.gradient_checkpointing_enable(dict(use_reentrant=case["gc"] == "reentrant"))
    own = {p.untyped_storage().data_ptr() for p in [*model.parameters(), *model.buffers()]}
    place, users, held = [], collections.defaultdict(set), {}
    layers = next(m for name, m in model.named_modules() if name.endswith("layers"))
    for index, layer in enumerate(layers):
        layer.register_forward_pre_hook(lambda *_, index=index: place.append(f"layer{index}"))
        layer.register_forward_hook(lambda *_: place.pop() and None)

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own and storage.nbytes():
            # The storage is held, so that its address is not given to another.
            held[storage.data_ptr()] = storage
            users[storage.data_ptr()].add(place[-1] if place else "outside")
        return tensor

    tokens = torch.randint(0, case["V"], (case["b"], case["s"]))
    inputs = dict(input_ids=tokens, labels=tokens.clone())
    if case["padded"]:
        inputs["attention_mask"] = torch.ones_like(tokens)
        inputs["attention_mask"][:, -3:] = 0
    if case["num_items"]:
        inputs["num_items_in_batch"] = torch.tensor(tokens.numel())
    cast = torch.autocast("cpu", torch.bfloat16) if case["autocast"] else contextlib.nullcontext()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), cast:
        loss = model(**inputs).loss
    kept = collections.Counter()
    for address, places in users.items():
        inside = places - {"outside"}
        where = "shared" if len(inside) > 1 else next(iter(inside or places))
        kept[where] += held[address].nbytes()
    trained = [p for p in model.parameters() if p.requires_grad]
    frozen = [p for p in model.parameters() if not p.requires_grad]
    loss.backward()
    optimizer = torch.optim.AdamW(trained)
    optimizer.step()
    moments = [state for p in trained for name, state in optimizer.state[p].items() if name != "step"]
    return dict(kept=kept, trained_params=sum(p.numel() for p in trained),
                grad_bytes=sum(p.grad.nbytes for p in trained), adamw_moment_bytes=sum(t.nbytes for t in moments),
                frozen_params=sum(p.numel() for p in frozen),
                trained_param_bytes=sum(p.nbytes for p in trained),
                frozen_param_bytes=sum(p.nbytes for p in frozen))


for line in open(sys.argv[1]):
    case = json.loads(line)
    if case.get("kind") == "model" and case["attn"] != "fa2":
        print(json.dumps({**case, **record(case)}))
