"""Times single kernels on one GPU: launches, streaming kernels, matrix products, fused attention, grouped products.

    pip install torch==2.11.0
    python kernels_on_gpu.py OUT

Made `../data/measured/kernels.tsv` (the lines of OUT/micro.jsonl, seconds to four digits) on 2026-11-26, on one H200 of 141 GB beside
16 cores of a virtual machine ("Intel Xeon Processor"), CUDA 13.0, driver 580. Inputs are random normal numbers, two to eight sets in
turn, so that none is in the cache; a figure is the median of five to nine groups of calls between two events. The first rows of products
are one long run of the same product, for what its power leaves of the clock (1,485 MHz of 1,980 at 690 W).
"""
import json, math, os, statistics, sys, time
import torch, torch.nn.functional as F
out = open(os.path.join(sys.argv[1], "micro.jsonl"), "w")
T0 = time.time()
def emit(**k):
    k["t"] = round(time.time() - T0, 1)
    out.write(json.dumps(k) + "\n"); out.flush()
dev = "cuda"
torch.manual_seed(0)
def bench(calls, reps=9, inner=None, warm=2):
    """Median seconds of a call; `calls` is a list rotated through so that inputs are not in L2."""
    for i in range(warm * len(calls) if len(calls) < 4 else warm):
        calls[i % len(calls)]()
    torch.cuda.synchronize()
    if inner is None:
        a, b = torch.cuda.Event(True), torch.cuda.Event(True)
        a.record(); calls[0](); b.record(); torch.cuda.synchronize()
        inner = max(1, min(50, int(2e-3 / max(a.elapsed_time(b) * 1e-3, 1e-6))))
    times = []
    for r in range(reps):
        a, b = torch.cuda.Event(True), torch.cuda.Event(True)
        a.record()
        for i in range(inner):
            calls[(r * inner + i) % len(calls)]()
        b.record(); torch.cuda.synchronize()
        times.append(a.elapsed_time(b) * 1e-3 / inner)
    return statistics.median(times)
def section(f):
    try:
        f()
    except Exception as e:
        emit(kind="error", where=f.__name__, what=repr(e)[:400])
    torch.cuda.empty_cache()
    emit(kind="section", name=f.__name__)

def launches():
    p = torch.cuda.get_device_properties(0)
    emit(kind="device", name=p.name, sms=p.multi_processor_count, memory=p.total_memory, torch=torch.__version__,
         cpu=[l for l in open("/proc/cpuinfo") if "model name" in l][0].split(":")[1].strip(), cores=os.cpu_count(),
         smi=os.popen("nvidia-smi --query-gpu=clocks.sm,clocks.max.sm,clocks.mem,power.limit,power.draw --format=csv,noheader").read().strip())
    x = torch.zeros(1, device=dev)
    for n in (1000,):
        torch.cuda.synchronize(); t = time.perf_counter()
        for _ in range(n): x.add_(1)
        host = time.perf_counter() - t
        torch.cuda.synchronize(); total = time.perf_counter() - t
        emit(kind="launch", op="add_ of one element", host=host / n, total=total / n)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        for _ in range(1000): x.add_(1)
    g.replay(); torch.cuda.synchronize(); t = time.perf_counter(); g.replay(); torch.cuda.synchronize()
    emit(kind="launch", op="add_ of one element in a graph", total=(time.perf_counter() - t) / 1000)
    lin = torch.nn.Linear(64, 64, device=dev, dtype=torch.bfloat16); y = torch.zeros(8, 64, device=dev, dtype=torch.bfloat16)
    for name, f in {"linear under no_grad": lambda: lin(y)}.items():
        with torch.no_grad():
            f(); torch.cuda.synchronize(); t = time.perf_counter()
            for _ in range(500): f()
            host = time.perf_counter() - t; torch.cuda.synchronize()
        emit(kind="launch", op=name, host=host / 500)
    t = time.perf_counter()
    for _ in range(300): lin(y).sum().backward()
    host = time.perf_counter() - t
    emit(kind="launch", op="linear, sum, backward", host=host / 300)

def stream():
    for log in range(18, 32, 1):
        n = 1 << log  # bytes of one tensor
        sets = max(1, min(8, (1 << 28) // n))
        a = [torch.randn(n // 2, device=dev, dtype=torch.bfloat16) for _ in range(sets)]
        b = [torch.empty_like(v) for v in a]
        emit(kind="stream", op="copy", bytes=2 * n, s=bench([lambda i=i: b[i].copy_(a[i]) for i in range(sets)]))
        if log >= 20:
            emit(kind="stream", op="add", bytes=3 * n, s=bench([lambda i=i: torch.add(a[i], b[i], out=b[i]) for i in range(sets)]))
            f = [v.float() for v in a[:max(1, sets // 2)]]
            emit(kind="stream", op="cast bf16 to fp32", bytes=3 * n, s=bench([lambda i=i: f[i].copy_(a[i]) for i in range(len(f))]))
        del a, b
        if log >= 20: del f
    torch.cuda.empty_cache()
    for tokens in (1024, 4096, 16384):
        for h in (2048, 4096, 8192):
            x = [torch.randn(tokens, h, device=dev, dtype=torch.bfloat16) for _ in range(4)]
            w = torch.ones(h, device=dev, dtype=torch.bfloat16)
            n = tokens * h * 2
            def hf(v):
                y = v.float(); y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6); return w * y.to(torch.bfloat16)
            emit(kind="norm", op="rms eager", tokens=tokens, h=h, bytes=2 * n, s=bench([lambda v=v: hf(v) for v in x]))
            emit(kind="norm", op="rms_norm", tokens=tokens, h=h, bytes=2 * n, s=bench([lambda v=v: F.rms_norm(v, (h,), w, 1e-6) for v in x]))
            emit(kind="norm", op="layer_norm", tokens=tokens, h=h, bytes=2 * n, s=bench([lambda v=v: F.layer_norm(v, (h,), w, w) for v in x]))
            emit(kind="act", op="silu", tokens=tokens, h=h, bytes=2 * n, s=bench([lambda v=v: F.silu(v) for v in x]))
            emit(kind="act", op="gelu", tokens=tokens, h=h, bytes=2 * n, s=bench([lambda v=v: F.gelu(v, approximate="tanh") for v in x]))
            emit(kind="act", op="mul", tokens=tokens, h=h, bytes=3 * n, s=bench([lambda i=i: x[i] * x[(i + 1) % 4] for i in range(4)]))
            for v in x: v.requires_grad_(True)
            ww = w.clone().requires_grad_(True)
            ys = [F.rms_norm(v, (h,), ww, 1e-6) for v in x]; g = torch.randn_like(ys[0])
            emit(kind="norm", op="rms_norm backward", tokens=tokens, h=h, bytes=3 * n,
                 s=bench([lambda i=i: torch.autograd.grad(ys[i], (x[i], ww), g, retain_graph=True) for i in range(4)]))
            ys = [F.layer_norm(v, (h,), ww, ww) for v in x]
            emit(kind="norm", op="layer_norm backward", tokens=tokens, h=h, bytes=3 * n,
                 s=bench([lambda i=i: torch.autograd.grad(ys[i], (x[i], ww), g, retain_graph=True) for i in range(4)]))
    for tokens in (1024, 4096):
        v = 128256
        x = torch.randn(tokens, v, device=dev, dtype=torch.bfloat16); y = torch.randint(0, v, (tokens,), device=dev)
        f = x.float().requires_grad_(True)
        emit(kind="loss", op="cast", tokens=tokens, v=v, s=bench([lambda: x.float()]))
        emit(kind="loss", op="cross_entropy forward", tokens=tokens, v=v, s=bench([lambda: F.cross_entropy(f, y)]))
        loss = F.cross_entropy(f, y)
        emit(kind="loss", op="cross_entropy backward", tokens=tokens, v=v, s=bench([lambda: torch.autograd.grad(loss, f, retain_graph=True)]))
        s = torch.randn(32, tokens, tokens, device=dev, dtype=torch.bfloat16)
        emit(kind="softmax", op="bf16", elements=s.numel(), s=bench([lambda: torch.softmax(s, -1)]))
        emit(kind="softmax", op="fp32 inside", elements=s.numel(), s=bench([lambda: torch.softmax(s, -1, dtype=torch.float32).to(torch.bfloat16)]))
        del x, f, loss, s
    for dtype in (torch.bfloat16, torch.float32):
        ps = [torch.nn.Parameter(torch.randn(4096, 4096, device=dev, dtype=dtype)) for _ in range(32)]
        for p in ps: p.grad = torch.randn_like(p)
        for kind in ({"fused": True}, {"foreach": True}):
            o = torch.optim.AdamW(ps, lr=1e-5, **kind); o.step()
            emit(kind="adam", op=str(dtype) + " " + next(iter(kind)), n=32 << 24, s=bench([o.step], reps=5))
            del o
        emit(kind="clip", op=str(dtype), n=32 << 24, s=bench([lambda: torch.nn.utils.clip_grad_norm_(ps, 1.0)], reps=5))
        del ps; torch.cuda.empty_cache()

def products():
    # One long run first: what power leaves of the clock.
    a, b = torch.randn(8192, 8192, device=dev, dtype=torch.bfloat16), torch.randn(8192, 8192, device=dev, dtype=torch.bfloat16)
    for _ in range(6):
        t = time.perf_counter()
        for _ in range(300): a @ b
        torch.cuda.synchronize(); dt = (time.perf_counter() - t) / 300
        emit(kind="sustained", n=8192, s=dt, tflops=2 * 8192**3 / dt / 1e12,
             smi=os.popen("nvidia-smi --query-gpu=clocks.sm,power.draw,temperature.gpu --format=csv,noheader").read().strip())
    del a, b
    # Weight [n, k] of a linear layer: forward x w^T, input gradient g w, weight gradient g^T x.
    for h in (1024, 2048, 4096, 5120, 8192):
        for (n, k) in {(h, h), (h * 7 // 2 // 128 * 128, h), (h, h * 7 // 2 // 128 * 128), (h // 4, h)}:
            w = [torch.randn(n, k, device=dev, dtype=torch.bfloat16) for _ in range(2)]
            for m in (128, 512, 1024, 2048, 4096, 8192, 16384):
                if m * max(n, k) > 2**29: continue
                x = [torch.randn(m, k, device=dev, dtype=torch.bfloat16) for _ in range(2)]
                g = [torch.randn(m, n, device=dev, dtype=torch.bfloat16) for _ in range(2)]
                for name, f in (("forward", lambda i: x[i] @ w[i].t()), ("input", lambda i: g[i] @ w[i]), ("weight", lambda i: g[i].t() @ x[i])):
                    emit(kind="gemm", op=name, m=m, n=n, k=k, s=bench([lambda i=i: f(i) for i in range(2)], reps=5))
    for (n, k) in ((128256, 4096), (128256, 2048), (32000, 4096), (50257, 1600), (151936, 1024)):
        w = torch.randn(n, k, device=dev, dtype=torch.bfloat16)
        for m in (1024, 4096):
            x = torch.randn(m, k, device=dev, dtype=torch.bfloat16); g = torch.randn(m, n, device=dev, dtype=torch.bfloat16)
            for name, f in (("forward", lambda: x @ w.t()), ("input", lambda: g @ w), ("weight", lambda: g.t() @ x)):
                emit(kind="gemm", op=name, m=m, n=n, k=k, s=bench([f], reps=5))
    for m in (2048, 8192):
        x = torch.randn(m, 4096, device=dev); w = torch.randn(4096, 4096, device=dev)
        emit(kind="gemm32", op="fp32", m=m, n=4096, k=4096, s=bench([lambda: x @ w], reps=3))
        torch.backends.cuda.matmul.allow_tf32 = True
        emit(kind="gemm32", op="tf32", m=m, n=4096, k=4096, s=bench([lambda: x @ w], reps=3))
        torch.backends.cuda.matmul.allow_tf32 = False

def lora():
    for r in (8, 16, 64):
        for (m, k, n) in ((4096, 4096, 4096), (4096, 4096, 14336), (16384, 4096, 4096)):
            x = torch.randn(m, k, device=dev, dtype=torch.bfloat16); a = torch.randn(r, k, device=dev, dtype=torch.bfloat16)
            b = torch.randn(n, r, device=dev, dtype=torch.bfloat16); u = x @ a.t(); g = torch.randn(m, n, device=dev, dtype=torch.bfloat16)
            for name, f in (("A forward", lambda: x @ a.t()), ("B forward", lambda: u @ b.t()), ("B input", lambda: g @ b), ("B weight", lambda: g.t() @ u), ("A weight", lambda: u.t() @ x), ("A input", lambda: u @ a)):
                emit(kind="lora", op=name, m=m, n=n, k=k, r=r, s=bench([f], reps=5))

def fp8():
    e4, e5 = torch.float8_e4m3fn, torch.float8_e5m2
    one = torch.ones((), device=dev)
    for (n, k) in ((4096, 4096), (14336, 4096), (4096, 14336), (8192, 8192), (28672, 8192)):
        for m in (1024, 4096, 8192, 16384):
            x = torch.randn(m, k, device=dev).to(e4); w = torch.randn(n, k, device=dev).to(e4)
            for fast in (True, False):
                emit(kind="fp8", op="tensorwise fast" if fast else "tensorwise", m=m, n=n, k=k,
                     s=bench([lambda: torch._scaled_mm(x, w.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=fast)], reps=5))
            sa, sb = torch.ones(m, 1, device=dev), torch.ones(1, n, device=dev)
            emit(kind="fp8", op="rowwise", m=m, n=n, k=k,
                 s=bench([lambda: torch._scaled_mm(x, w.t(), sa, sb, out_dtype=torch.bfloat16, use_fast_accum=True)], reps=5))
    x = torch.randn(8192, 8192, device=dev).to(e4); w = torch.randn(8192, 8192, device=dev).to(e4)
    for _ in range(3):
        t = time.perf_counter()
        for _ in range(400): torch._scaled_mm(x, w.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=False)
        torch.cuda.synchronize(); dt = (time.perf_counter() - t) / 400
        emit(kind="sustained8", n=8192, s=dt, tflops=2 * 8192**3 / dt / 1e12)

def attention():
    from torch.nn.attention import sdpa_kernel, SDPBackend as B
    for d, heads in ((64, 32), (128, 32), (128, 16), (256, 16)):
        for seq in (512, 1024, 2048, 4096, 8192, 16384, 32768):
            batch = max(1, 16384 // seq)
            if seq == 32768 and d == 256: continue
            q, k, v = (torch.randn(batch, heads, seq, d, device=dev, dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
            for name, backend in (("flash2", B.FLASH_ATTENTION), ("cudnn", B.CUDNN_ATTENTION), ("efficient", B.EFFICIENT_ATTENTION)):
                if name == "efficient" and (seq > 8192 or d == 256): continue
                try:
                    with sdpa_kernel(backend):
                        f = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)
                        with torch.no_grad(): s = bench([f], reps=5)
                        y = f(); g = torch.randn_like(y)
                        b = bench([lambda: torch.autograd.grad(y, (q, k, v), g, retain_graph=True)], reps=5)
                    emit(kind="attention", op=name, batch=batch, heads=heads, seq=seq, d=d, forward=s, backward=b)
                except Exception as e:
                    emit(kind="error", where=f"attention {name} {seq} {d}", what=repr(e)[:200])
            del q, k, v

def grouped():
    f = getattr(torch, "_grouped_mm", None) or F.grouped_mm
    for (h, ffn) in ((2048, 768), (4096, 1536), (4096, 14336), (7168, 2048)):
        for experts in (4, 8, 32, 128):
            if experts * h * ffn > 2**31: continue
            w = torch.randn(experts, ffn, h, device=dev, dtype=torch.bfloat16)
            for each in (64, 256, 1024, 4096):
                m = experts * each
                if m > 262144 or m * max(h, ffn) > 2**31: continue
                x = torch.randn(m, h, device=dev, dtype=torch.bfloat16); g = torch.randn(m, ffn, device=dev, dtype=torch.bfloat16)
                even = torch.arange(1, experts + 1, device=dev, dtype=torch.int32) * each
                emit(kind="grouped", op="forward", experts=experts, each=each, n=ffn, k=h, s=bench([lambda: f(x, w.transpose(1, 2), offs=even)], reps=5))
                emit(kind="grouped", op="input", experts=experts, each=each, n=ffn, k=h, s=bench([lambda: f(g, w, offs=even)], reps=5))
                emit(kind="grouped", op="weight", experts=experts, each=each, n=ffn, k=h, s=bench([lambda: f(g.t(), x, offs=even)], reps=5))
                if experts <= 32:
                    emit(kind="grouped", op="loop", experts=experts, each=each, n=ffn, k=h,
                         s=bench([lambda: [x[i * each:(i + 1) * each] @ w[i].t() for i in range(experts)]], reps=5))
                if each >= 256:
                    # One expert gets twice its share, the others what is left.
                    part = torch.full((experts,), (m - 2 * each) // (experts - 1), device=dev); part[0] = m - (experts - 1) * int(part[1])
                    uneven = part.cumsum(0).to(torch.int32)
                    emit(kind="grouped", op="forward uneven", experts=experts, each=each, n=ffn, k=h, s=bench([lambda: f(x, w.transpose(1, 2), offs=uneven)], reps=5))

which = sys.argv[2].split(",") if len(sys.argv) > 2 else ["launches", "stream", "products", "lora", "attention", "grouped", "fp8"]
for name in which: section(globals()[name])
