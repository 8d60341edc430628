"""Runs transformers' Trainer on one GPU and records bytes and seconds: full training, adapters, quantized bases, Liger.

    pip install torch==2.11.0 transformers==5.17.0 peft==0.21.0 liger-kernel==0.8.5 bitsandbytes==0.49.0
    for group in full lora qlora; do python trainer_on_gpu.py OUT $group; done

Made the family `trainer-h200` of `../data/measured/memory.jsonl` and `../data/measured/trainer_steps.tsv` on 2026-11-26, on one
H200 of 141 GB beside 16 cores of a virtual machine ("Intel Xeon Processor"), CUDA 13.0. Weights are random; no padding mask; labels are
the inputs. Bytes are what PyTorch's allocator counts, `steady` those when a step is over; seconds are between two synchronisations, the
median of the last five steps of eight.

Two things of a process that goes on are in the figures. Liger's patches of Llama's classes and of its rotation stay: Llama models made
after the first run with Liger have its norms, gated activation and rotation, but not its loss (runs 009, 010, 026 to 029; their rows say so).
And of run 034 the fp32 embedding, 1,576,010,752 bytes, was never given back: it is taken off the three figures of runs 035 to 037.
"""

import gc, json, os, statistics, sys, tempfile, time
os.environ.setdefault("HF_HUB_OFFLINE", "1"); os.environ.setdefault("WANDB_DISABLED", "true")
import torch, transformers
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config, GPT2Config, Trainer, TrainingArguments, TrainerCallback
OUT, WHICH = sys.argv[1], sys.argv[2]
DEADLINE = time.time() + float(sys.argv[3]) if len(sys.argv) > 3 else None
out = open(os.path.join(OUT, f"hf-{WHICH}.jsonl"), "w")
rope = dict(rope_theta=500000.0)
LL = lambda h, f, n, a, g, d, tie, v=128256: LlamaConfig(hidden_size=h, intermediate_size=f, num_hidden_layers=n, num_attention_heads=a, num_key_value_heads=g, head_dim=d, vocab_size=v, max_position_embeddings=131072, tie_word_embeddings=tie)
Q3 = lambda h, f, n, a, g, d, tie: Qwen3Config(hidden_size=h, intermediate_size=f, num_hidden_layers=n, num_attention_heads=a, num_key_value_heads=g, head_dim=d, vocab_size=151936, max_position_embeddings=40960, tie_word_embeddings=tie)
MODELS = {
    "meta-llama/Llama-3.2-1B": lambda: LL(2048, 8192, 16, 32, 8, 64, True),
    "meta-llama/Llama-3.2-3B": lambda: LL(3072, 8192, 28, 24, 8, 128, True),
    "meta-llama/Llama-3.1-8B": lambda: LL(4096, 14336, 32, 32, 8, 128, False),
    "Qwen/Qwen3-0.6B": lambda: Q3(1024, 3072, 28, 16, 8, 128, True),
    "Qwen/Qwen3-4B": lambda: Q3(2560, 9728, 36, 32, 8, 128, True),
    "Qwen/Qwen2.5-0.5B": lambda: Qwen2Config(hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14, num_key_value_heads=2, vocab_size=151936, max_position_embeddings=32768, tie_word_embeddings=True),
    "openai-community/gpt2": lambda: GPT2Config(),
}
ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
# name of the run: model, weights, micro-batch, length, further arguments of the Trainer, adapters, what the model is loaded with
R = []
def run(group, model, weights, mbs, seq, lora=None, attn="sdpa", quant=None, **args):
    R.append(dict(group=group, model=model, weights=weights, mbs=mbs, seq=seq, lora=lora, attn=attn, quant=quant, args=args))
L1, L3, L8, S, Q4, H5, G2 = MODELS.keys()
# Full training: 16-bit weights, then fp32 weights under autocast as `--bf16` of the examples runs it.
for mbs, seq in ((1, 512), (1, 2048), (4, 2048), (1, 8192)):
    run("full", L1, "bf16", mbs, seq, bf16=True)
run("full", L1, "bf16", 4, 2048, bf16=True, gradient_checkpointing=True)
run("full", L1, "fp32", 4, 2048, bf16=True)
run("full", L1, "fp32", 1, 2048, bf16=True, gradient_checkpointing=True)
run("full", L1, "bf16", 4, 2048, bf16=True, use_liger_kernel=True)
run("full", L1, "bf16", 2, 2048, bf16=True, gradient_accumulation_steps=4)
run("full", L1, "bf16", 4, 2048, bf16=True, attn="eager")
for mbs, seq in ((1, 512), (8, 1024)):
    run("full", S, "bf16", mbs, seq, bf16=True)
run("full", S, "fp32", 4, 1024, bf16=True)
run("full", H5, "fp32", 8, 1024, bf16=True, gradient_checkpointing=True)
run("full", H5, "bf16", 4, 2048, bf16=True)
run("full", G2, "fp32", 8, 1024, bf16=True)
run("full", G2, "fp32", 8, 1024)
run("full", Q4, "bf16", 2, 4096, bf16=True, gradient_checkpointing=True)
run("full", Q4, "bf16", 2, 4096, bf16=True, gradient_checkpointing=True, optim="adafactor")
run("full", L3, "bf16", 4, 4096, bf16=True, gradient_checkpointing=True, use_liger_kernel=True)
# Adapters on a 16-bit base.
for mbs, seq, more in ((1, 2048, {}), (4, 2048, dict(gradient_checkpointing=True)), (2, 4096, {}), (1, 8192, dict(gradient_checkpointing=True)), (8, 2048, dict(gradient_checkpointing=True, use_liger_kernel=True))):
    run("lora", L8, "bf16", mbs, seq, lora=dict(r=16, target_modules=ALL, lora_dropout=0.05), bf16=True, **more)
run("lora", L8, "bf16", 4, 2048, lora=dict(r=16, target_modules=["q_proj", "v_proj"]), bf16=True, gradient_checkpointing=True)
run("lora", L1, "bf16", 4, 2048, lora=dict(r=16, target_modules=ALL), bf16=True)
run("lora", L1, "bf16", 4, 2048, lora=dict(r=64, target_modules=ALL), bf16=True)
run("lora", L1, "bf16", 1, 512, lora=dict(r=16, target_modules=ALL), bf16=True)
run("lora", Q4, "bf16", 4, 2048, lora=dict(r=16, target_modules=ALL, lora_dropout=0.05), bf16=True)
run("lora", Q4, "bf16", 2, 2048, lora=dict(r=16, target_modules=ALL, use_dora=True), bf16=True, gradient_checkpointing=True)
# Quantised bases.
NF4 = dict(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True)
for mbs, seq, more in ((1, 2048, {}), (4, 2048, dict(gradient_checkpointing=True))):
    run("qlora", L3, "nf4", mbs, seq, lora=dict(r=16, target_modules=ALL, lora_dropout=0.05), quant=NF4, bf16=True, **more)
run("qlora", L3, "nf4", 4, 2048, lora=dict(r=16, target_modules=ALL), quant=NF4, bf16=True, gradient_checkpointing=True, optim="paged_adamw_8bit")
run("qlora", L1, "nf4", 4, 1024, lora=dict(r=16, target_modules=ALL), quant=NF4, bf16=True)
run("qlora", L1, "int8", 4, 1024, lora=dict(r=16, target_modules=ALL), quant=dict(load_in_8bit=True), bf16=True)
run("qlora", L1, "bf16", 4, 2048, bf16=True, optim="adamw_8bit")

class Clock(TrainerCallback):
    def __init__(self): self.at, self.steady = [], 0
    def on_step_begin(self, *a, **k):
        torch.cuda.synchronize() if torch.cuda.is_available() else None; self.begin = time.perf_counter()
    def on_step_end(self, args, state, control, **k):
        torch.cuda.synchronize() if torch.cuda.is_available() else None
        self.at.append(time.perf_counter() - self.begin)
        if torch.cuda.is_available(): self.steady = torch.cuda.memory_allocated()

class Data(torch.utils.data.Dataset):
    def __init__(self, n, seq, v): g = torch.Generator().manual_seed(0); self.x = torch.randint(0, v, (n, seq), generator=g)
    def __len__(self): return len(self.x)
    def __getitem__(self, i): return dict(input_ids=self.x[i], labels=self.x[i])

saved = {}
def build(r):
    config = MODELS[r["model"]]()
    dtype = torch.float32 if r["weights"] == "fp32" else torch.bfloat16
    where = "cuda" if torch.cuda.is_available() else "cpu"
    if r["quant"]:
        if r["model"] not in saved:
            with torch.device(where): m = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
            saved[r["model"]] = tempfile.mkdtemp(); m.save_pretrained(saved[r["model"]]); del m; gc.collect(); torch.cuda.empty_cache()
        from transformers import BitsAndBytesConfig
        q = BitsAndBytesConfig(**r["quant"], **({"bnb_4bit_compute_dtype": torch.bfloat16} if "load_in_4bit" in r["quant"] else {}))
        model = AutoModelForCausalLM.from_pretrained(saved[r["model"]], quantization_config=q, dtype=torch.bfloat16, device_map={"": 0})
        from peft import prepare_model_for_kbit_training
        model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=r["args"].get("gradient_checkpointing", False))
    else:
        with torch.device(where): model = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation=r["attn"])
    if r["lora"]:
        from peft import LoraConfig, get_peft_model
        if r["args"].get("gradient_checkpointing"): model.enable_input_require_grads()
        model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **r["lora"]))
    return model, config

def one(r):
    cuda = torch.cuda.is_available()
    model, config = build(r)
    accumulate = r["args"].get("gradient_accumulation_steps", 1)
    steps = int(os.environ.get("STEPS", 8))
    clock = Clock()
    args = TrainingArguments(output_dir=tempfile.mkdtemp(), per_device_train_batch_size=r["mbs"], max_steps=steps, logging_steps=1000, save_strategy="no", report_to=[], disable_tqdm=True, **r["args"])
    data = Data(r["mbs"] * accumulate * steps, r["seq"], config.vocab_size)
    if cuda: gc.collect(); torch.cuda.empty_cache(); torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated() if cuda else 0
    trainer = Trainer(model=model, args=args, train_dataset=data, callbacks=[clock])
    trainer.train()
    d = dict(r, total=sum(p.numel() for p in model.parameters()), trained=sum(p.numel() for p in model.parameters() if p.requires_grad),
        before=before, steady=clock.steady, steps=[round(t, 5) for t in clock.at], median=statistics.median(clock.at[3:]) if len(clock.at) > 3 else None)
    if cuda:
        free, whole = torch.cuda.mem_get_info()
        d.update(peak=torch.cuda.max_memory_allocated(), reserved=torch.cuda.max_memory_reserved(), device_used=whole - free)
    return d

import peft
out.write(json.dumps(dict(group="versions", torch=torch.__version__, transformers=transformers.__version__, peft=peft.__version__, gpu=torch.cuda.get_device_name(0) if torch.cuda.is_available() else "cpu")) + "\n")
for r in R:
    if r["group"] != WHICH: continue
    if DEADLINE and time.time() > DEADLINE: out.write(json.dumps(dict(r, skipped="time")) + "\n"); continue
    try: d = one(r)
    except Exception as e: d = dict(r, error=repr(e)[:500])
    out.write(json.dumps(d) + "\n"); out.flush()
    print(WHICH, r["model"], r["weights"], r["mbs"], r["seq"], d.get("error") or (d.get("peak"), d.get("reserved"), d.get("median")), flush=True)
    gc.collect()
    if torch.cuda.is_available(): torch.cuda.empty_cache()
