"""Runs transformers' Trainer on one GPU over models of other families than Llama, records bytes and seconds: experts, windows, hybrids.

    pip install torch==2.11.0 transformers==5.17.0 peft==0.21.0
    PROFILE=1 python families_on_gpu.py families.json OUT [seconds]

Made the family `families-h200` of `../data/measured/memory.jsonl` and its steps in `../data/measured/trainer_steps.tsv` on 2026-11-27, on
one H200 of 141 GB beside 16 cores of a virtual machine ("Intel Xeon Processor"), CUDA 13.0. `families.json` has a model's name and what its
config.json says; the second column below cuts one to its first layers. Weights are random, samples as long as the length, labels the
inputs. Bytes are what PyTorch's allocator counts, `steady` those when a step is over; seconds are between two synchronisations, the median
of the last five steps of seven.
"""

import gc, json, os, statistics, sys, tempfile, time, traceback
os.environ.setdefault("HF_HUB_OFFLINE", "1"); os.environ.setdefault("WANDB_DISABLED", "true")
import torch, transformers, peft
from transformers import AutoConfig, AutoModelForCausalLM, Trainer, TrainingArguments, TrainerCallback

CONFIGS, OUT = json.load(open(sys.argv[1])), sys.argv[2]
DEADLINE = time.time() + float(sys.argv[3]) if len(sys.argv) > 3 else None
CUDA = torch.cuda.is_available()
STEPS = 7 if CUDA else 1
ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
FOUR = ALL[:4]

# model, its first layers or None for all, micro-batch, length, adapted linears, attention, settings of the Trainer
R = [
    ("allenai/OLMoE-1B-7B-0924", 8, 2, 2048, None, "sdpa", {}),
    ("allenai/OLMoE-1B-7B-0924", None, 4, 2048, None, "sdpa", dict(gradient_checkpointing=True)),
    ("allenai/OLMoE-1B-7B-0924", None, 2, 2048, FOUR, "sdpa", {}),
    ("Qwen/Qwen3-30B-A3B", 8, 2, 2048, None, "sdpa", dict(gradient_checkpointing=True)),
    ("Qwen/Qwen3-30B-A3B", 4, 2, 2048, None, "sdpa", {}),
    ("Qwen/Qwen3-30B-A3B", 24, 1, 2048, FOUR, "sdpa", dict(gradient_checkpointing=True)),
    ("mistralai/Mixtral-8x7B-v0.1", 2, 2, 4096, None, "sdpa", {}),
    ("openai/gpt-oss-20b", 8, 2, 2048, FOUR, "eager", {}),
    ("openai/gpt-oss-20b", 4, 1, 2048, None, "eager", dict(gradient_checkpointing=True)),
    ("deepseek-ai/DeepSeek-V2-Lite", 6, 2, 2048, None, "sdpa", dict(gradient_checkpointing=True)),
    ("google/gemma-3-1b-pt", None, 4, 2048, None, "sdpa", {}),
    ("google/gemma-3-1b-pt", None, 4, 2048, ALL, "sdpa", dict(gradient_checkpointing=True)),
    ("google/gemma-2-2b", None, 2, 2048, None, "eager", dict(gradient_checkpointing=True)),
    ("google/gemma-2-2b", None, 1, 2048, ALL, "eager", {}),
    ("microsoft/Phi-3-mini-4k-instruct", None, 2, 2048, None, "sdpa", {}),
    ("Qwen/Qwen2.5-7B", None, 2, 2048, None, "sdpa", dict(gradient_checkpointing=True)),
    ("Qwen/Qwen2.5-7B", None, 2, 2048, ALL, "sdpa", {}),
    ("allenai/OLMo-2-0425-1B", None, 4, 2048, None, "sdpa", {}),
    ("HuggingFaceTB/SmolLM3-3B", None, 2, 2048, None, "sdpa", dict(gradient_checkpointing=True)),
    ("ibm-granite/granite-3.1-2b-instruct", None, 2, 2048, None, "sdpa", {}),
    ("EleutherAI/pythia-1.4b", None, 4, 2048, None, "sdpa", {}),
    ("bigscience/bloom-1b7", None, 2, 2048, None, "eager", {}),
    ("Qwen/Qwen3-Next-80B-A3B-Instruct", 4, 1, 2048, None, "sdpa", {}),
    ("LiquidAI/LFM2-1.2B", None, 4, 2048, None, "sdpa", {}),
    ("Qwen/Qwen3.5-2B", None, 2, 2048, None, "sdpa", {}),
]


class Clock(TrainerCallback):
    def __init__(self): self.at, self.steady = [], 0
    def on_step_begin(self, *a, **k):
        if CUDA: torch.cuda.synchronize()
        self.begin = time.perf_counter()
    def on_step_end(self, *a, **k):
        if CUDA: torch.cuda.synchronize(); self.steady = torch.cuda.memory_allocated()
        self.at.append(round(time.perf_counter() - self.begin, 5))


class Data(torch.utils.data.Dataset):
    def __init__(self, n, seq, v): g = torch.Generator().manual_seed(0); self.x = torch.randint(0, v, (n, seq), generator=g)
    def __len__(self): return len(self.x)
    def __getitem__(self, i): return dict(input_ids=self.x[i], labels=self.x[i])


def fresh():
    gc.collect()
    if CUDA: torch.cuda.empty_cache(); torch.cuda.reset_peak_memory_stats()


def small(said):
    """The same kind in miniature, to try the script where there is no GPU."""
    cut = dict(hidden_size=64, intermediate_size=96, moe_intermediate_size=32, num_attention_heads=4, num_key_value_heads=2, head_dim=16, vocab_size=1024, num_experts=8, num_local_experts=8, n_routed_experts=8,
               kv_lora_rank=16, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=16, shared_expert_intermediate_size=32, pad_token_id=0, n_embed=64, n_head=4, num_experts_per_tok=2,
               mamba_n_heads=8, mamba_d_head=16, mamba_d_state=16, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16, linear_value_head_dim=16, mamba_expand=2)
    return {k: cut.get(k, v) for k, v in said.items()}


def config_of(name, layers):
    said = dict(CONFIGS[name])
    if "text_config" in said and name.startswith("Qwen/Qwen3.5"): said = dict(said["text_config"])
    if not CUDA: said = small(said); layers = min(layers or 4, 4)
    key = "n_layer" if "n_layer" in said and "num_hidden_layers" not in said else "num_hidden_layers"
    if layers:
        said[key] = layers
        for k in ("layer_types", "layers_block_type", "mlp_layer_types"):
            if k in said: said[k] = said[k][:layers]
        if "no_rope_layers" in said: said["no_rope_layers"] = said["no_rope_layers"][:layers]
    return AutoConfig.for_model(**said)


def one(name, layers, batch, length, adapted, attention, more):
    if not CUDA: batch, length = 1, 64
    config = config_of(name, layers)
    with torch.device("cuda" if CUDA else "cpu"): model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation=attention)
    total = sum(p.numel() for p in model.parameters())
    if adapted:
        if more.get("gradient_checkpointing"): model.enable_input_require_grads()
        model = peft.get_peft_model(model, peft.LoraConfig(r=16, target_modules=adapted, task_type="CAUSAL_LM"))
    clock = Clock()
    args = TrainingArguments(output_dir=tempfile.mkdtemp(), per_device_train_batch_size=batch, max_steps=STEPS, logging_steps=1000, save_strategy="no", report_to=[], disable_tqdm=True, bf16=True, use_cpu=not CUDA, **more)
    data = Data(batch * STEPS, length, config.vocab_size)
    fresh(); before = torch.cuda.memory_allocated() if CUDA else 0
    trainer = Trainer(model=model, args=args, train_dataset=data, callbacks=[clock]); trainer.train()
    d = dict(model=name, layers=layers, batch=batch, length=length, adapted=adapted, attention=attention, more=more, total=total, trained=sum(p.numel() for p in model.parameters() if p.requires_grad),
             experts=getattr(config, "_experts_implementation", None), implementation=config._attn_implementation, before=before, steady=clock.steady, steps=clock.at, median=statistics.median(clock.at[2:] or [0]))
    if CUDA:
        free, whole = torch.cuda.mem_get_info()
        d |= dict(peak=torch.cuda.max_memory_allocated(), reserved=torch.cuda.max_memory_reserved(), device_used=whole - free)
        if os.environ.get("PROFILE"): d |= profiled(trainer)
    return d


def profiled(trainer):
    """Kernels of one micro-batch forward and backward, apart from what was measured."""
    try:
        from torch.profiler import profile, ProfilerActivity as A
        x = next(iter(trainer.get_train_dataloader())); x = {k: v.cuda() for k, v in x.items()}
        with profile(activities=[A.CUDA]) as p: trainer.training_step(trainer.model_wrapped, x); torch.cuda.synchronize()
        events = [e for e in p.key_averages() if e.self_device_time_total]
        return dict(device_seconds=sum(e.self_device_time_total for e in events) * 1e-6, kernels=sum(e.count for e in events),
                    longest=[[e.key[:90], e.count, round(e.self_device_time_total * 1e-6, 6)] for e in sorted(events, key=lambda e: -e.self_device_time_total)[:14]])
    except Exception as e: return dict(profile_error=repr(e)[:200])


if __name__ == "__main__":
    out = open(os.path.join(OUT, "families.jsonl"), "w")
    out.write(json.dumps(dict(versions={m.__name__: m.__version__ for m in (torch, transformers, peft)}, gpu=torch.cuda.get_device_name(0) if CUDA else "cpu")) + "\n")
    for r in R:
        if DEADLINE and time.time() > DEADLINE: out.write(json.dumps(dict(run=r, skipped="time")) + "\n"); continue
        begin = time.time()
        try: d = one(*r)
        except Exception as e: d = dict(run=r, error=repr(e)[:400], at=traceback.format_exc()[-500:])
        d["wall"] = round(time.time() - begin, 1)
        fresh(); d["left"] = torch.cuda.memory_allocated() if CUDA else 0
        out.write(json.dumps(d) + "\n"); out.flush(); print({k: v for k, v in d.items() if k != "longest"}, flush=True)
