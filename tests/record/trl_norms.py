"""Records what autograd keeps of small 4-bit models with adapters whose norms TRL leaves in fp32 beside embeddings in bf16, on a CPU.

    pip install torch==2.15.0 transformers==5.24.0 peft==0.21.2 bitsandbytes==0.50.2 accelerate==1.15.0
    pip download --no-deps trl==0.24.0 && unzip trl-0.24.0-*.whl -d trl
    python trl_norms.py trl > ../data/activations/trl_norms.jsonl

A model is loaded in bf16 with linear layers in NF4, prepared by PEFT's `prepare_model_for_kbit_training` and given adapters in fp32; TRL's own
`peft_module_casting_to_bf16` (`trl/trainer/utils.py`, the same function in every release that has it) then casts it (`casts`), or does not,
or QLoRA's program casts it (`program`).
Forward passes run under autocast, as with `--bf16`. The method is that of `record_huggingface.py`: every storage that autograd packs is
taken once, parameters and buffers left out, and counted to the layer whose forward packs it first, to `shared` where several do.
"""

import ast
import collections
import copy
import functools
import itertools
import json
import sys
import tempfile

import bitsandbytes
import peft
import torch
import transformers

RANK = 8
SHAPES = dict(
    llama=("llama", dict(hidden_size=128, intermediate_size=384, num_attention_heads=4, num_key_value_heads=2, head_dim=32)),
    mistral=("mistral", dict(hidden_size=128, intermediate_size=256, num_attention_heads=4, num_key_value_heads=4, head_dim=64, sliding_window=None)),
    qwen2=("qwen2", dict(hidden_size=192, intermediate_size=320, num_attention_heads=6, num_key_value_heads=2)),
    qwen3=("qwen3", dict(hidden_size=128, intermediate_size=256, num_attention_heads=4, num_key_value_heads=2, head_dim=64)),
)


class Drop(torch.autograd.Function):
    """Dropout with a mask of a byte each, as the CUDA kernel keeps it (the CPU's has the tensor's type)."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(torch.ones(x.shape, dtype=torch.bool))
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


# PEFT asks without naming a device, which means a GPU: under autocast it leaves casts to autocast (`peft/tuners/lora/bnb.py`).
ENABLED = torch.is_autocast_enabled
torch.is_autocast_enabled = lambda device="cpu": ENABLED(device)
torch.nn.Dropout.forward = lambda self, x: Drop.apply(x) if self.p and self.training else x


def casting(folder):
    """TRL's function, of the file that has it."""
    tree = ast.parse(open(f"{folder}/trl/trainer/utils.py").read())
    own = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "peft_module_casting_to_bf16")
    names = dict(torch=torch)
    exec(compile(ast.Module([own], []), "utils.py", "exec"), names)
    return names[own.name]


def cast_by_qlora(model):
    """What QLoRA's program does under bf16 (artidoro/qlora, `qlora.py:get_accelerate_model`): adapters too are cast."""
    for name, module in model.named_modules():
        if isinstance(module, peft.tuners.lora.LoraLayer):
            module.to(torch.bfloat16)
        if "norm" in name:
            module.to(torch.float32)
        if ("lm_head" in name or "embed_tokens" in name) and getattr(module, "weight", torch.empty(0)).dtype == torch.float32:
            module.to(torch.bfloat16)


@functools.cache
def loaded(arch, layers, words):
    kind, sizes = SHAPES[arch]
    config = transformers.AutoConfig.for_model(
        kind, num_hidden_layers=layers, vocab_size=words, max_position_embeddings=512, tie_word_embeddings=False, use_cache=False, **sizes)
    model = transformers.AutoModelForCausalLM.from_config(config).to(torch.bfloat16)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        how = transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16)
        return transformers.AutoModelForCausalLM.from_pretrained(folder, quantization_config=how, dtype=torch.bfloat16)


def built(case):
    model = copy.deepcopy(loaded(case["arch"], case["layers"], case["V"]))
    model.set_attn_implementation(case["attn"])
    model = peft.prepare_model_for_kbit_training(model, use_gradient_checkpointing=bool(case["gc"]),
                                                 gradient_checkpointing_kwargs=dict(use_reentrant=case["gc"] == "reentrant"))
    targets = "all-linear" if case["train"] == "qlora-all" else ["q_proj", "v_proj"]
    model = peft.get_peft_model(model, peft.LoraConfig(r=RANK, lora_dropout=case["lora_dropout"], target_modules=targets, task_type="CAUSAL_LM"))
    if case.get("program") == "qlora":
        cast_by_qlora(model)
    elif case["casts"]:
        CASTS(model)
    return model.train()


def record(case):
    torch.manual_seed(0)
    model = built(case)
    tokens = torch.randint(0, case["V"], (case["b"], case["s"]))
    # The first forward pass casts biases, whose former storages are given to other tensors.
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        model(tokens)
    own = {p.untyped_storage().data_ptr() for p in [*model.parameters(), *model.buffers()]}
    for module in model.modules():
        state = getattr(getattr(module, "weight", None), "quant_state", None)
        if state is not None:
            own.update(t.untyped_storage().data_ptr() for t in (state.absmax, state.code))
    place, users, held, notes = [], collections.defaultdict(set), {}, {}
    layers = next(m for name, m in model.named_modules() if name.endswith("layers"))
    for index, layer in enumerate(layers):
        layer.register_forward_pre_hook(lambda *_, index=index: place.append(f"layer{index}"))
        layer.register_forward_hook(lambda *_: place.pop() and None)

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own and storage.nbytes():
            held[storage.data_ptr()] = storage
            users[storage.data_ptr()].add(place[-1] if place else "outside")
            notes.setdefault(storage.data_ptr(), [list(tensor.shape), str(tensor.dtype)[6:], storage.nbytes()])
        return tensor

    inputs = dict(input_ids=tokens, labels=tokens.clone())
    if case["padded"]:
        inputs["attention_mask"] = torch.ones_like(tokens)
        inputs["attention_mask"][:, -3:] = 0
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), torch.autocast("cpu", torch.bfloat16):
        loss = model(**inputs).loss
    kept, tensors = collections.Counter(), collections.defaultdict(list)
    for address, places in users.items():
        inside = places - {"outside"}
        where = "shared" if len(inside) > 1 else next(iter(inside or places))
        kept[where] += held[address].nbytes()
        tensors[where].append(notes[address])
    loss.backward()
    trained = [p for p in model.parameters() if p.requires_grad]
    plain = [p for p in model.parameters() if not p.requires_grad and not hasattr(p, "quant_state")]
    packed = [p for p in model.parameters() if hasattr(p, "quant_state")]
    constants = sum(p.quant_state.absmax.nbytes for p in packed)
    return dict(kept=kept, trained_param_bytes=sum(p.nbytes for p in trained), grad_bytes=sum(p.grad.nbytes for p in trained),
                frozen_param_bytes=sum(p.nbytes for p in [*plain, *packed]) + constants,
                tensors={where: tensors[where] for where in sorted(tensors) if where != "layer2"})


def cases():
    for arch, (b, s), train, casts, dropout in itertools.product(SHAPES, [(1, 64), (2, 160)], ["qlora-qv", "qlora-all"], [True, False], [0.0, 0.05]):
        for gc, attn, padded in [(None, "sdpa", False), (None, "eager", False), (None, "sdpa", True), ("checkpoint", "sdpa", False)]:
            if not casts and (attn == "eager" or padded or arch not in ("llama", "qwen3") or dropout or b == 2):
                continue
            if dropout and (gc or padded or arch != "llama" or b == 2) or b == 2 and (arch != "llama" or padded):
                continue
            if arch not in ("llama", "qwen3") and (attn == "eager" or padded):
                continue
            name = "-".join([arch, f"b{b}", train, *(["norms"] if casts else []), *(["drop"] if dropout else []), *([gc] if gc else []), attn, *(["padded"] if padded else [])])
            kind, sizes = SHAPES[arch]
            config = transformers.AutoConfig.for_model(kind, **sizes)
            yield dict(id=name, arch=arch, b=b, s=s, h=sizes["hidden_size"], a=sizes["num_attention_heads"], k=sizes["num_key_value_heads"],
                       d=sizes.get("head_dim", sizes["hidden_size"] // sizes["num_attention_heads"]), f=sizes["intermediate_size"], V=1024, layers=3,
                       train=train, casts=casts, lora_dropout=dropout, gc=gc, attn=attn, padded=padded)


def of_qlora():
    """The same of QLoRA's program, which has adapters on every linear layer."""
    for case in cases():
        if case["casts"] and case["train"] == "qlora-all" and case["attn"] == "sdpa" and not case["padded"] and case["b"] == 1 and case["arch"] in ("llama", "mistral"):
            yield {**case, "id": case["id"].replace("norms", "qlora-norms"), "program": "qlora"}


if __name__ == "__main__":
    CASTS = casting(sys.argv[1])
    only = sys.argv[2] if len(sys.argv) > 2 else ""
    versions = dict(torch=torch.__version__, transformers=transformers.__version__, peft=peft.__version__, bitsandbytes=bitsandbytes.__version__, trl="0.24.0")
    print(json.dumps(dict(what="Bytes that autograd keeps of 4-bit models prepared by PEFT, and cast by TRL, recorded on a CPU by trl_norms.py", versions=versions), separators=(",", ":")), flush=True)
    for case in [*cases(), *of_qlora()]:
        if only in case["id"]:
            print(json.dumps({**case, **record(case)}, separators=(",", ":")), flush=True)
