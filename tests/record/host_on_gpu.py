"""What the host spends to issue a step: layers so small that the device waits. One JSON line a figure.

    pip install torch==2.11.0 transformers==5.17.0 peft==0.21.0 liger-kernel==0.8.5 bitsandbytes==0.49.0
    python host_on_gpu.py OUT

Made `../data/measured/host.tsv` on 2026-11-26, by two calls on two H200 of one kind, each beside 16 cores of a virtual machine
("Intel Xeon Processor"); repetitions are up to a fifth apart. Kernels are launches that the profiler saw, ends of the model among them.
"""
import gc, json, os, statistics, sys, time
os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
out = open(os.path.join(sys.argv[1], "host.jsonl"), "w")
dev = "cuda" if torch.cuda.is_available() else "cpu"
sync = torch.cuda.synchronize if dev == "cuda" else (lambda: None)
def emit(**k): out.write(json.dumps(k) + "\n"); out.flush(); print(k, flush=True)
def spent(f, n=9):
    for _ in range(3): f()
    sync(); ts = []
    for _ in range(n):
        t = time.perf_counter(); f(); sync(); ts.append(time.perf_counter() - t)
    return statistics.median(ts)
def kernels(f):
    from torch.profiler import profile, ProfilerActivity as A
    f(); sync()
    with profile(activities=[A.CPU, A.CUDA] if dev == "cuda" else [A.CPU]) as p: f(); sync()
    launches = sum(e.count for e in p.key_averages() if e.key in ("cudaLaunchKernel", "cuLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernelEx", "cudaMemcpyAsync", "cudaMemsetAsync"))
    ops = sum(e.count for e in p.key_averages() if e.key.startswith("aten::"))
    device = sum(getattr(e, "self_device_time_total", 0) for e in p.key_averages()) * 1e-6
    return launches, ops, device
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen3Config, GPT2Config
def llama(n, **k): return LlamaConfig(hidden_size=128, intermediate_size=256, num_hidden_layers=n, num_attention_heads=4, num_key_value_heads=2, head_dim=32, vocab_size=1024, **k)
def qwen3(n): return Qwen3Config(hidden_size=128, intermediate_size=256, num_hidden_layers=n, num_attention_heads=4, num_key_value_heads=2, head_dim=32, vocab_size=1024)
def gpt2(n): return GPT2Config(n_embd=128, n_head=4, n_layer=n, vocab_size=1024)
def passes(name, model, x, autocast=False, opt=True):
    trained = [p for p in model.parameters() if p.requires_grad]
    o = torch.optim.AdamW(trained, lr=1e-6, fused=True)
    def forward():
        with torch.autocast(dev, torch.bfloat16, enabled=autocast): return model(input_ids=x, labels=x).loss
    def both(): forward().backward(); 
    def step(): both(); torch.nn.utils.clip_grad_norm_(trained, 1.0); o.step(); o.zero_grad()
    f = spent(forward); fb = spent(both); s = spent(step)
    emit(name=name, parameters=len(trained), forward=f, backward=fb - f, rest=s - fb, step=s,
         **(dict(forward_kernels=kernels(forward), both_kernels=kernels(both)) if ' 8' in name else {}))
x = torch.randint(0, 1000, (1, 128), device=dev)
def build(config, dtype=torch.bfloat16, **k):
    with torch.device(dev): return AutoModelForCausalLM.from_config(config, dtype=dtype, **k)
def guard(f):
    try: f()
    except Exception as e: emit(error=repr(e)[:300])
    gc.collect(); torch.cuda.empty_cache() if dev == "cuda" else None
ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
def lora(n, **k):
    from peft import LoraConfig, get_peft_model
    passes(f"llama {n} lora {k}", get_peft_model(build(llama(n)), LoraConfig(r=8, target_modules=ALL, task_type="CAUSAL_LM", **k)), x)
guard(lambda: lora(8)); guard(lambda: lora(24)); guard(lambda: lora(24, lora_dropout=0.05)); guard(lambda: lora(24, use_dora=True))
def quantised():
    import bitsandbytes as bnb
    m = build(llama(24))
    for mod in list(m.modules()):
        for name, child in list(mod.named_children()):
            if isinstance(child, torch.nn.Linear) and name != "lm_head":
                q = bnb.nn.Linear4bit(child.in_features, child.out_features, bias=child.bias is not None, compute_dtype=torch.bfloat16, quant_type="nf4", compress_statistics=True)
                q.weight = bnb.nn.Params4bit(child.weight.data.cpu(), requires_grad=False, quant_type="nf4", compress_statistics=True)
                setattr(mod, name, q.to(dev))
    from peft import LoraConfig, get_peft_model
    passes("llama 24 qlora", get_peft_model(m, LoraConfig(r=8, target_modules=ALL, task_type="CAUSAL_LM")), x)
if dev == "cuda": guard(quantised)
def compiled():
    m = build(llama(24))
    for l in m.model.layers: l.compile()
    passes("llama 24 layers compiled", m, x)
if dev == "cuda": guard(compiled)
guard(lambda: passes("llama 24 autocast over fp32", build(llama(24), torch.float32), x, autocast=True))
def checkpointed():
    m = build(llama(24)); m.gradient_checkpointing_enable(); m.train(); passes("llama 24 checkpointed", m, x)
guard(checkpointed)
guard(lambda: passes("llama 24 bf16", build(llama(24)), x)); guard(lambda: passes("qwen3 24 bf16", build(qwen3(24)), x)); guard(lambda: passes("gpt2 24 bf16", build(gpt2(24)), x))
def liger():
    from liger_kernel.transformers import apply_liger_kernel_to_llama
    apply_liger_kernel_to_llama()
    passes("llama 24 liger", build(llama(24)), x)
if dev == "cuda": guard(liger)
