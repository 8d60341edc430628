"""Where the steps of transformers' Trainer go on one GPU: per operation and shapes, its kernels, their count and time; and the host's share.

    pip install torch==2.11.0 transformers==5.17.0 peft==0.21.0 bitsandbytes==0.49.0
    python profile_on_gpu.py families.json OUT [seconds] [steps,small,updates] [runs, by commas]

The runs are those of `families_on_gpu.py` and of `trainer_on_gpu.py`. Of nine steps the first has the shares of grouped products noted, the
next two warm up, five are timed as they are (`steps`; `issued` is when Python had called everything of one), and the last runs under
PyTorch's profiler. An operation is one of ATen's with its inputs' shapes and the kernel that it launched, in forward (f), backward (b) or
the optimizer (o). `small` has the same families 128 wide, where the device waits: seconds of the host, and what was launched.
"""

import collections, datetime, gc, json, os, signal, statistics, subprocess, sys, tempfile, time, traceback
from families_on_gpu import ALL, CUDA, FOUR, OUT, Data, R as FAMILIES, config_of, fresh, small
import torch, transformers, peft
from torch.profiler import ProfilerActivity as A, profile
from transformers import AutoConfig, AutoModelForCausalLM, GPT2Config, LlamaConfig, Qwen3Config, Trainer, TrainerCallback, TrainingArguments
import families_on_gpu
DEADLINE = time.time() + (float(sys.argv[3]) if len(sys.argv) > 3 else 1e9)
# Clock and power as the driver says them, every 50 ms, with the time.
CLOCKS = os.path.join(OUT, "clocks.csv")
if CUDA: clocks = subprocess.Popen(["nvidia-smi", "--query-gpu=timestamp,clocks.sm,power.draw", "--format=csv,noheader,nounits", "-lms", "50"], stdout=open(CLOCKS, "w"))
WHICH = sys.argv[4].split(",") if len(sys.argv) > 4 else ["steps", "small"]
LIMIT = 45 if CUDA else 120
out = open(os.path.join(OUT, "profile.jsonl"), "w")
sync = torch.cuda.synchronize if CUDA else (lambda: None)
DEVICE = "cuda" if CUDA else "cpu"


def emit(**said): out.write(json.dumps(said) + "\n"); out.flush()


L1 = lambda: LlamaConfig(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8, head_dim=64, vocab_size=128256, tie_word_embeddings=True, rope_theta=500000.0)
L3 = lambda: LlamaConfig(hidden_size=3072, intermediate_size=8192, num_hidden_layers=28, num_attention_heads=24, num_key_value_heads=8, head_dim=128, vocab_size=128256, tie_word_embeddings=True, rope_theta=500000.0)
L8 = lambda: LlamaConfig(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8, head_dim=128, vocab_size=128256, tie_word_embeddings=False, rope_theta=500000.0)
Q4 = lambda: Qwen3Config(hidden_size=2560, intermediate_size=9728, num_hidden_layers=36, num_attention_heads=32, num_key_value_heads=8, head_dim=128, vocab_size=151936, tie_word_embeddings=True)
Q06 = lambda: Qwen3Config(hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8, head_dim=128, vocab_size=151936, tie_word_embeddings=True)
NF4 = dict(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.bfloat16)
LORA = dict(r=16, target_modules=ALL, lora_dropout=0.05)
# Name, configuration, weights, micro-batch, length, adapters, attention, quantization, settings of the Trainer.
CASES = [
    ("trainer-h200-011", Q06, torch.bfloat16, 1, 512, None, "sdpa", None, {}),
    ("trainer-h200-012", Q06, torch.bfloat16, 8, 1024, None, "sdpa", None, {}),
    ("trainer-h200-029", L1, torch.bfloat16, 1, 512, dict(r=16, target_modules=ALL), "sdpa", None, {}),
    ("trainer-h200-022", L8, torch.bfloat16, 4, 2048, LORA, "sdpa", None, dict(gradient_checkpointing=True)),
    ("trainer-h200-026", L8, torch.bfloat16, 4, 2048, dict(r=16, target_modules=["q_proj", "v_proj"]), "sdpa", None, dict(gradient_checkpointing=True)),
    ("trainer-h200-018", Q4, torch.bfloat16, 2, 4096, None, "sdpa", None, dict(gradient_checkpointing=True)),
    ("trainer-h200-003", L1, torch.bfloat16, 4, 2048, None, "sdpa", None, {}),
    ("trainer-h200-002", L1, torch.bfloat16, 1, 2048, None, "sdpa", None, {}),
    ("trainer-h200-036", L1, torch.bfloat16, 4, 1024, dict(r=16, target_modules=ALL), "sdpa", dict(load_in_8bit=True), {}),
    ("trainer-h200-033", L3, torch.bfloat16, 4, 2048, LORA, "sdpa", NF4, dict(gradient_checkpointing=True)),
    ("trainer-h200-032", L3, torch.bfloat16, 1, 2048, LORA, "sdpa", NF4, {}),
    ("trainer-h200-021", L8, torch.bfloat16, 1, 2048, LORA, "sdpa", None, {}),
    ("trainer-h200-037", L1, torch.bfloat16, 4, 2048, None, "sdpa", None, dict(optim="adamw_8bit")),
    ("trainer-h200-017", lambda: GPT2Config(), torch.float32, 8, 1024, None, "sdpa", None, dict(bf16=False)),
]
ORDER = [16, 17, 2, 23, 6, 12, 3, 8, 5, 10, 9, 1, 14, 13, 11, 21, 22, 19, 7, 15, 20, 4, 18]


class Clock(TrainerCallback):
    def __init__(self): self.at, self.issued, self.profile, self.shares = [], [], None, []
    def on_step_begin(self, args, state, control, **k):
        sync()
        if state.global_step == 8 and CUDA or state.global_step == args.max_steps - 1:
            self.profile = profile(activities=[A.CPU, A.CUDA] if CUDA else [A.CPU], record_shapes=True); self.profile.__enter__()
        self.begin = time.perf_counter()
    def on_step_end(self, *a, **k):
        self.issued.append(round(time.perf_counter() - self.begin, 5)); sync()
        self.at.append(round(time.perf_counter() - self.begin, 5))
        if self.profile: self.profile.__exit__(None, None, None)
        restore()


GROUPED = {name: getattr(where, name) for where, name in ((torch, "_grouped_mm"), (torch.nn.functional, "grouped_mm")) if hasattr(where, name)}


def restore():
    for where, name in ((torch, "_grouped_mm"), (torch.nn.functional, "grouped_mm")):
        if name in GROUPED: setattr(where, name, GROUPED[name])


def noting(clock):
    """Until the first step is over, notes how unequal the groups of grouped products are."""
    def noted(f):
        def call(*a, **k):
            offs = k.get("offs")
            if offs is not None and len(clock.shares) < 200: clock.shares.append(offs.detach().clone())
            return f(*a, **k)
        return call
    for where, name in ((torch, "_grouped_mm"), (torch.nn.functional, "grouped_mm")):
        if name in GROUPED: setattr(where, name, noted(GROUPED[name]))


def shares(noted):
    said = []
    for offs in noted:
        each = torch.diff(offs.cpu().long(), prepend=torch.zeros(1, dtype=torch.long)).float()
        said.append([len(each), round(each.mean().item(), 1), each.max().item(), each.min().item(), round(each.std().item(), 1)])
    return said[:12]


def table(p):
    """Rows of pass, operation, shapes, types, kernel: calls and microseconds; and totals. Reads the profiler's events as they are: PyTorch's own tables take longer than a step."""
    cpu, gpu, launches = [], [], collections.Counter()
    for e in p.profiler.kineto_results.events():
        if "CPU" not in str(e.device_type()): gpu.append(e); continue
        name = e.name()
        if name.startswith(("cuda", "cuLaunch")): launches[name] += 1
        else: cpu.append((e.start_thread_id(), e.start_ns(), -e.duration_ns(), e, name))
    cpu.sort(key=lambda one: one[:3])
    of, stack, thread = {}, [], None
    for own, start, length, e, name in cpu:
        if own != thread: stack, thread = [], own
        while stack and stack[-1][0] <= start: stack.pop()
        inside = stack[-1][1] if stack else "f"
        where = "o" if name.startswith("Optimizer.step") else "b" if name.startswith("autograd::engine") else inside
        stack.append((start - length, where))
        of[e.correlation_id()] = (where, name, e)
    rows, times, busy, first, last = collections.Counter(), collections.Counter(), 0, float("inf"), 0
    def add(corr, kernel, nanoseconds):
        where, name, e = of.get(corr, ("?", "?", None))
        key = (where, name, json.dumps(e.shapes()[:6], separators=(",", ":"))[:160] if e else "", ",".join(e.dtypes()[:4])[:60] if e else "", kernel[:110])
        rows[key] += 1; times[key] += nanoseconds
    for e in gpu:
        if e.duration_ns() and not e.name().startswith(("ProfilerStep", "gpu_", "Optimizer", "autograd", "aten")):
            add(e.linked_correlation_id(), e.name(), e.duration_ns()); busy += e.duration_ns(); first = min(first, e.start_ns()); last = max(last, e.start_ns() + e.duration_ns())
    if not CUDA:
        for *_, length, e, name in cpu: add(e.correlation_id(), name, -length)
    return dict(kernels=sum(rows.values()), ops=sum(1 for one in cpu if one[4].startswith("aten::")), busy_us=round(busy / 1e3), span_us=round((last - first) / 1e3) if last else 0, launches=dict(launches),
                rows=[[*key, rows[key], round(times[key] / 1e3, 1)] for key in sorted(rows, key=lambda key: -times[key])])


saved = {}
def build(config, dtype, adapters, attention, quant, checkpointed):
    if quant:
        from transformers import BitsAndBytesConfig
        key = (config.hidden_size, config.num_hidden_layers)
        if key not in saved:
            with torch.device(DEVICE): m = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
            saved[key] = tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None); m.save_pretrained(saved[key]); del m; fresh()
        model = AutoModelForCausalLM.from_pretrained(saved[key], quantization_config=BitsAndBytesConfig(**quant), dtype=torch.bfloat16, device_map={"": 0 if CUDA else "cpu"})
        model = peft.prepare_model_for_kbit_training(model, use_gradient_checkpointing=checkpointed)
    else:
        with torch.device(DEVICE): model = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation=attention)
    if adapters:
        if checkpointed: model.enable_input_require_grads()
        model = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **adapters))
    return model


def step(name, config, dtype, batch, length, adapters, attention, quant, more):
    if not CUDA: batch, length = 1, 64
    model = build(config, dtype, adapters, attention, quant, more.get("gradient_checkpointing", False))
    clock, count = Clock(), 9 if CUDA else 2
    args = TrainingArguments(**{**dict(output_dir=tempfile.mkdtemp(), per_device_train_batch_size=batch, max_steps=count, logging_steps=1000, save_strategy="no", report_to=[], disable_tqdm=True, bf16=True, use_cpu=not CUDA), **more})
    fresh(); noting(clock)
    begun = str(datetime.datetime.now())
    trainer = Trainer(model=model, args=args, train_dataset=Data(batch * count, length, config.vocab_size), callbacks=[clock])
    passes, inside = trainer.training_step, []
    def timed(*a, **k):
        sync(); begin = time.perf_counter(); loss = passes(*a, **k); issued = time.perf_counter(); sync()
        inside.append([round(t, 5) for t in (begin - clock.begin, issued - begin, time.perf_counter() - begin)])
        return loss
    trainer.training_step = timed; trainer.train()
    told = dict(name=name, begun=begun, ended=str(datetime.datetime.now()), batch=batch, length=length, steps=clock.at, passes=inside, issued=clock.issued, median=statistics.median(clock.at[3:8] or clock.at),
                host=statistics.median(clock.issued[3:8] or clock.issued), shares=shares(clock.shares), parameters=len([p for p in model.parameters() if p.requires_grad]))
    if CUDA: told |= dict(peak=torch.cuda.max_memory_allocated(), reserved=torch.cuda.max_memory_reserved())
    begin = time.time(); told |= table(clock.profile); told["parsing"] = round(time.time() - begin, 1)
    return told


def spent(f, n=15 if CUDA else 1):
    for _ in range(3 if CUDA else 1): f()
    sync(); ts = []
    for _ in range(n):
        begin = time.perf_counter(); f(); sync(); ts.append(time.perf_counter() - begin)
    return statistics.median(ts)


SMALL = ["allenai/OLMoE-1B-7B-0924", "Qwen/Qwen3-30B-A3B", "mistralai/Mixtral-8x7B-v0.1", "openai/gpt-oss-20b", "deepseek-ai/DeepSeek-V2-Lite", "google/gemma-3-1b-pt", "google/gemma-2-2b",
         "microsoft/Phi-3-mini-4k-instruct", "EleutherAI/pythia-1.4b", "bigscience/bloom-1b7", "Qwen/Qwen3-Next-80B-A3B-Instruct", "Qwen/Qwen2.5-7B"]


def little(name, layers, checkpointed):
    """A family 128 wide or less: all that counts is the host."""
    said = small(families_on_gpu.CONFIGS[name])
    if "phi" in name.lower(): said["pad_token_id"] = 0
    if families_on_gpu.CONFIGS[name].get("num_key_value_heads") == families_on_gpu.CONFIGS[name].get("num_attention_heads") and "num_key_value_heads" in said: said["num_key_value_heads"] = said["num_attention_heads"]
    said["n_layer" if "n_layer" in said and "num_hidden_layers" not in said else "num_hidden_layers"] = layers
    for k in ("layer_types", "layers_block_type", "mlp_layer_types", "no_rope_layers"):
        if k in said: said[k] = (said[k] * layers)[:layers]
    config = AutoConfig.for_model(**said)
    with torch.device(DEVICE): model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation="eager" if name.startswith(("openai", "google/gemma-2", "bigscience")) else "sdpa")
    model.train()
    if checkpointed: model.gradient_checkpointing_enable()
    trained = [p for p in model.parameters() if p.requires_grad]
    o = torch.optim.AdamW(trained, lr=1e-6, fused=True)
    x = torch.randint(0, 1000, (1, 128), device=DEVICE)
    def forward():
        with torch.autocast(DEVICE, torch.bfloat16): return model(input_ids=x, labels=x, use_cache=False).loss
    def both(): forward().backward()
    def whole(): both(); torch.nn.utils.clip_grad_norm_(trained, 1.0); o.step(); o.zero_grad()
    f, fb, s = spent(forward), spent(both), spent(whole)
    def launched(f):
        with profile(activities=[A.CPU, A.CUDA] if CUDA else [A.CPU]) as p: f(); sync()
        told = table(p); return [told["kernels"], told["ops"], told["launches"], told["busy_us"] * 1e-6]
    return dict(small=name, layers=layers, checkpointed=checkpointed, parameters=len(trained), forward=f, backward=fb - f, rest=s - fb, step=s, forward_launched=launched(forward), both_launched=launched(both), step_launched=launched(whole))


def updates():
    """What clipping, the fused AdamW and setting gradients to none cost the host by the number of tensors."""
    for count in (50, 100, 200, 400, 800):
        ps = [torch.nn.Parameter(torch.randn(128, device=DEVICE, dtype=torch.bfloat16)) for _ in range(count)]
        o = torch.optim.AdamW(ps, lr=1e-6, fused=True)
        def grads():
            for p in ps: p.grad = torch.ones_like(p)
        times = [[], [], []]
        for _ in range(18):
            grads(); sync()
            for i, f in enumerate((lambda: torch.nn.utils.clip_grad_norm_(ps, 1.0), o.step, o.zero_grad)):
                begin = time.perf_counter(); f(); sync(); times[i].append(time.perf_counter() - begin)
        emit(updates=count, clip=statistics.median(times[0][3:]), step=statistics.median(times[1][3:]), zero=statistics.median(times[2][3:]))


class Late(Exception): pass


def late(*_): raise Late()


signal.signal(signal.SIGALRM, late)


def guarded(what, f):
    begin = time.time()
    if begin > DEADLINE: emit(skipped=what); return print("skipped", what, flush=True)
    try: signal.alarm(LIMIT); told = f()
    except BaseException as e: told = dict(failed=what, error=repr(e)[:400], at=traceback.format_exc()[-600:])
    finally: signal.alarm(0); restore()
    told["wall"] = round(time.time() - begin, 1)
    fresh(); emit(**told); print({k: v for k, v in told.items() if k not in ("rows", "launches", "shares")}, flush=True)


def steps():
    todo = [(f"families-h200-{i:03}", lambda r=FAMILIES[i - 1], i=i: step(f"families-h200-{i:03}", config_of(r[0], r[1]), torch.bfloat16, r[2], r[3], dict(r=16, target_modules=r[4]) if r[4] else None, r[5], None, r[6])) for i in ORDER]
    def of(c):
        config = c[1]()
        if not CUDA:
            for k, v in dict(num_hidden_layers=2, hidden_size=64, intermediate_size=96, head_dim=16, num_attention_heads=4, num_key_value_heads=2, vocab_size=1024).items(): setattr(config, k, v)
        return step(c[0], config, *c[2:])
    own = [(c[0], lambda c=c: of(c)) for c in CASES]
    asked = sys.argv[5].split(",") if len(sys.argv) > 5 else []
    for pair in own + todo:
        if not asked or pair[0] in asked: guarded(*pair)


def little_ones():
    layers = 8 if CUDA else 2
    for name in SMALL: guarded(f"small {name}", lambda name=name: little(name, layers, False))
    for name in (SMALL[0], SMALL[5]): guarded(f"small {name} checkpointed", lambda name=name: little(name, layers, True))


emit(versions={m.__name__: m.__version__ for m in (torch, transformers, peft)}, gpu=torch.cuda.get_device_name(0) if CUDA else "cpu")
if "updates" in WHICH: updates()
if "small" in WHICH: little_ones()
if "steps" in WHICH: steps()
if CUDA: clocks.kill()
