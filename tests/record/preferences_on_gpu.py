"""Runs TRL's trainers of preferences, rewards and rollouts on one GPU and records bytes and seconds.

    pip install trl==1.16.0 datasets==5.2.0 transformers==5.17.0 peft==0.21.0 liger-kernel==0.8.5
    python preferences_on_gpu.py OUT [seconds]

Made the family `preferences-h200` of `../data/measured/memory.jsonl` on 2026-11-27, on one H200 of 141 GB. The model has the shape of Llama
3.2 1B and random weights; prompts and answers are as long as the columns below say, without padding. Bytes are what PyTorch's allocator
counts, `steady` those when a step is over. Rollouts are transformers' own (`generate`), in the trainer's process. Liger's patches of Llama's
classes and of its rotation stay in the process: models made after the first run with Liger have its norms, gated activation and rotation
(runs 006 to 018; their rows say so).
"""

import gc, json, os, statistics, sys, tempfile, time, traceback
os.environ.setdefault("HF_HUB_OFFLINE", "1"); os.environ.setdefault("WANDB_DISABLED", "true")
import torch, transformers, peft, trl
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, PreTrainedTokenizerFast, TrainerCallback

OUT = sys.argv[1]
DEADLINE = time.time() + float(sys.argv[2]) if len(sys.argv) > 2 else None
CUDA = torch.cuda.is_available()
ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
WHERE = tempfile.mkdtemp()
STEPS = 6 if CUDA else 2
out = open(os.path.join(OUT, "preferences.jsonl"), "w")


def fresh():
    gc.collect()
    if CUDA: torch.cuda.empty_cache(); torch.cuda.reset_peak_memory_stats()


def store():
    from tokenizers import Tokenizer, models, pre_tokenizers
    big = dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8, head_dim=64, vocab_size=128256)
    small = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16, vocab_size=2048)
    config = LlamaConfig(**(big if CUDA else small), max_position_embeddings=131072, tie_word_embeddings=True, pad_token_id=1003, eos_token_id=1002, bos_token_id=1001)
    with torch.device("cuda" if CUDA else "cpu"): model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(WHERE); del model; fresh()
    words = {f"w{i}": i for i in range(1000)} | {"<unk>": 1000, "<s>": 1001, "</s>": 1002, "<pad>": 1003}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>")); tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="<pad>").save_pretrained(WHERE)


class Clock(TrainerCallback):
    def __init__(self): self.at, self.steady = [], 0
    def on_step_begin(self, *a, **k):
        if CUDA: torch.cuda.synchronize()
        self.begin = time.perf_counter()
    def on_step_end(self, *a, **k):
        if CUDA: torch.cuda.synchronize(); self.steady = torch.cuda.memory_allocated()
        self.at.append(round(time.perf_counter() - self.begin, 5))


def text(i, n): return " ".join(f"w{(i * 7 + j) % 1000}" for j in range(n))


def model(head="causal"):
    kind = dict(dtype=torch.bfloat16, attn_implementation="sdpa", device_map={"": 0} if CUDA else None)
    if head == "reward":
        return transformers.AutoModelForSequenceClassification.from_pretrained(WHERE, num_labels=1, **kind)
    return AutoModelForCausalLM.from_pretrained(WHERE, **kind)


# kind, micro-batch, tokens of prompt and of answer, adapter, further settings
R = [
    ("dpo", 4, 512, 511, True, {}),
    ("dpo", 4, 512, 511, False, {}),
    ("dpo", 2, 512, 511, False, dict(gradient_checkpointing=False)),
    ("dpo", 4, 512, 511, False, dict(precompute_ref_log_probs=True)),
    ("dpo", 4, 512, 511, False, dict(use_liger_kernel=True)),
    ("kto", 4, 512, 511, True, {}),
    ("kto", 4, 512, 511, False, {}),
    ("reward", 4, 512, 511, True, {}),
    ("reward", 4, 512, 511, False, {}),
    ("grpo", 8, 256, 256, True, dict(num_generations=8)),
    ("grpo", 8, 256, 256, False, dict(num_generations=8)),
    ("grpo", 8, 256, 256, False, dict(num_generations=8, beta=0.04)),
    ("grpo", 8, 256, 256, False, dict(num_generations=8, gradient_checkpointing=False)),
    ("grpo", 8, 256, 256, False, dict(num_generations=8, gradient_accumulation_steps=2)),
    ("grpo", 8, 256, 256, False, dict(num_generations=8, use_liger_kernel=True)),
    ("rloo", 8, 256, 256, True, dict(num_generations=8)),
    ("orpo", 4, 512, 511, True, {}),
    ("cpo", 4, 512, 511, False, {}),
]


def one(kind, batch, prompt, answer, adapted, more):
    steps = STEPS if kind not in ("grpo", "rloo") else (3 if CUDA else 2)
    tokenizer = AutoTokenizer.from_pretrained(WHERE)
    lora = peft.LoraConfig(r=16, target_modules=ALL, task_type="SEQ_CLS" if kind == "reward" else "CAUSAL_LM") if adapted else None
    common = dict(output_dir=tempfile.mkdtemp(), per_device_train_batch_size=batch, max_steps=steps, logging_steps=1000, save_strategy="no", report_to=[], disable_tqdm=True, **more)
    if not CUDA: common |= dict(bf16=True, use_cpu=True)
    rows = batch * more.get("gradient_accumulation_steps", 1) * steps
    clock = Clock(); fresh()
    pairs = dict(prompt=[text(i, prompt) for i in range(rows)], chosen=[" " + text(i + 3, answer) for i in range(rows)], rejected=[" " + text(i + 5, answer) for i in range(rows)])
    said = dict(processing_class=tokenizer, callbacks=[clock], peft_config=lora)
    if kind == "dpo":
        t = trl.DPOTrainer(model=model(), args=trl.DPOConfig(max_length=prompt + answer + 1, **common), train_dataset=Dataset.from_dict(pairs), **said)
    elif kind == "kto":
        flat = dict(prompt=pairs["prompt"], completion=pairs["chosen"], label=[i % 2 == 0 for i in range(rows)])
        t = trl.KTOTrainer(model=model(), args=trl.KTOConfig(max_length=prompt + answer + 1, **common), train_dataset=Dataset.from_dict(flat), **said)
    elif kind == "reward":
        t = trl.RewardTrainer(model=model("reward"), args=trl.RewardConfig(max_length=prompt + answer + 1, **common), train_dataset=Dataset.from_dict(pairs), **said)
    elif kind in ("orpo", "cpo"):
        from trl.experimental.orpo import ORPOConfig, ORPOTrainer
        from trl.experimental.cpo import CPOConfig, CPOTrainer
        c, T = (ORPOConfig, ORPOTrainer) if kind == "orpo" else (CPOConfig, CPOTrainer)
        t = T(model=model(), args=c(max_length=prompt + answer + 1, **common), train_dataset=Dataset.from_dict(pairs), **said)
    else:
        c, T = (trl.GRPOConfig, trl.GRPOTrainer) if kind == "grpo" else (trl.RLOOConfig, trl.RLOOTrainer)
        t = T(model=model(), args=c(max_completion_length=answer if CUDA else 8, **common), train_dataset=Dataset.from_dict(dict(prompt=pairs["prompt"])),
              reward_funcs=lambda completions, **k: [float(len(c) % 7) for c in completions], **said)
    before = torch.cuda.memory_allocated() if CUDA else 0; fresh(); t.train()
    what = dict(kind=kind, batch=batch, prompt=prompt, answer=answer, adapted=adapted, more=more, before=before, steady=clock.steady, steps=clock.at, median=statistics.median(clock.at[1:] or [0]))
    if CUDA:
        free, whole = torch.cuda.mem_get_info()
        what |= dict(peak=torch.cuda.max_memory_allocated(), reserved=torch.cuda.max_memory_reserved(), device_used=whole - free)
    return what


store()
out.write(json.dumps(dict(versions={m.__name__: m.__version__ for m in (torch, transformers, peft, trl)}, gpu=torch.cuda.get_device_name(0) if CUDA else "cpu")) + "\n")
for r in R:
    if DEADLINE and time.time() > DEADLINE: out.write(json.dumps(dict(run=r[:5], skipped="time")) + "\n"); continue
    begin = time.time()
    try: d = one(*r)
    except Exception as e: d = dict(run=r[:5], more=r[5], error=repr(e)[:400], at=traceback.format_exc()[-600:])
    d["wall"] = round(time.time() - begin, 1)
    out.write(json.dumps(d) + "\n"); out.flush(); print(d, flush=True)
    fresh()
    d["left"] = torch.cuda.memory_allocated() if CUDA else 0
    out.write(json.dumps(dict(left=d["left"])) + "\n"); out.flush()
