"""What the tools around a run print, for crates/measured: python run_tools.py FOLDER.

Recorded with Python 3.11, torch 2.15.0, transformers 5.23.0 and accelerate 1.15.0 on a CPU:

- trainer.log, trainer_state.json: a run of transformers' Trainer, 24 steps of a small model, its evaluation among them;
- profiler.txt, profiler.json: torch.profiler's table and trace of three steps;
- memory_summary.txt, memory_stats.txt: torch's own printing of statistics that are set here, as a CPU has none;
- snapshot.pickle, snapshot.json: a snapshot in the form of torch.cuda.memory._snapshot of a simulated caching allocator (2 MiB
  segments, blocks of 512 bytes, two devices), pickled as _dump_snapshot does. truth.json has the peaks that the simulation counted.
"""

import contextlib
import io
import json
import pathlib
import pickle
import random
import sys
import unittest.mock

import torch
import torch.cuda.memory as cuda_memory
from torch.profiler import ProfilerActivity, profile, schedule

FOLDER = pathlib.Path(sys.argv[1])
TRUTH = {}


def trainer():
    from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

    sizes = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, vocab_size=128)
    rows = [{"input_ids": [each] * 32, "labels": [each] * 32} for each in range(96)]
    arguments = TrainingArguments(
        "unused", per_device_train_batch_size=4, max_steps=24, logging_steps=4, eval_strategy="steps", eval_steps=12,
        save_strategy="no", report_to=[], use_cpu=True,
    )
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        model = LlamaForCausalLM(LlamaConfig(**sizes))
        run = Trainer(model=model, args=arguments, train_dataset=rows, eval_dataset=rows[:8])
        run.train()
    (FOLDER / "trainer.log").write_text(said.getvalue(), newline="")
    run.state.save_to_json(FOLDER / "trainer_state.json")
    last = run.state.log_history[-1]
    TRUTH["trainer"] = {"steps": run.state.global_step, "train_runtime": last["train_runtime"]}


def profiler():
    layer = torch.nn.Linear(256, 256)
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=3)) as running:
        for _ in range(5):
            layer(torch.ones(64, 256)).sum().backward()
            running.step()
    (FOLDER / "profiler.txt").write_text(running.key_averages().table(sort_by="cpu_time_total", row_limit=8))
    running.export_chrome_trace(str(FOLDER / "profiler.json"))
    trace = json.loads((FOLDER / "profiler.json").read_text())
    events = trace["traceEvents"]
    # Without the machine's name, and with the steps and the first few of the others alone.
    del trace["host_name"]
    trace["traceEvents"] = [each for place, each in enumerate(events) if place < 12 or "ProfilerStep" in each.get("name", "")]
    (FOLDER / "profiler.json").write_text(json.dumps(trace) + "\n")
    steps = [event["dur"] for event in events if event.get("name", "").startswith("ProfilerStep")]
    TRUTH["profiler"] = {"steps_us": sorted(steps)}


def statistics():
    from collections import defaultdict

    peak = {"allocated_bytes.all.peak": 61_234_567_890, "reserved_bytes.all.peak": 70_345_678_901}
    peak |= {"num_ooms": 0, "num_alloc_retries": 0}
    stats = defaultdict(int, peak)
    with unittest.mock.patch.object(cuda_memory, "memory_stats", lambda device=None: stats), unittest.mock.patch.object(
        cuda_memory, "_get_device_index", lambda device, optional=True: 0
    ):
        (FOLDER / "memory_summary.txt").write_text(cuda_memory.memory_summary())
    (FOLDER / "memory_stats.txt").write_text(f"memory: {peak}\n")
    TRUTH["statistics"] = {"allocated": peak["allocated_bytes.all.peak"], "reserved": peak["reserved_bytes.all.peak"]}


def snapshot():
    draw = random.Random(20)
    block, segment = 512, 2 << 20
    segments, traces, truth = [], [], []
    for device in range(2):
        live, trace, reserved, allocated, most_reserved, most_allocated = {}, [], 0, 0, 0, 0

        def tell(action, addr, size):
            trace.append({"action": action, "addr": addr, "size": size, "stream": 0, "time_us": len(trace), "frames": []})

        for turn in range(160):
            # Half of what is asked for goes again; in the last third more goes than comes.
            if live and draw.random() < (0.5 if turn < 110 else 0.8):
                addr = draw.choice(sorted(live))
                asked, size = live.pop(addr)
                tell("free_requested", addr, asked)
                tell("free_completed", addr, asked)
                allocated -= size
            else:
                asked = draw.randrange(1, 200_000)
                size = -(-asked // block) * block
                while allocated + size > reserved:
                    tell("segment_alloc", 0x7F0000000000 + reserved, segment)
                    reserved += segment
                addr = 0x7F0000000000 + draw.randrange(1 << 40)
                live[addr] = (asked, size)
                tell("alloc", addr, asked)
                allocated += size
            most_reserved, most_allocated = max(most_reserved, reserved), max(most_allocated, allocated)
        # empty_cache gives back what is free as a whole.
        while reserved - segment >= allocated:
            reserved -= segment
            tell("segment_free", 0x7F0000000000 + reserved, segment)
        tell("snapshot", 0, 0)
        left = allocated
        for place in range(reserved // segment):
            held = min(left, segment)
            left -= held
            segments.append({
                "device": device, "address": 0x7F0000000000 + place * segment, "total_size": segment, "allocated_size": held,
                "active_size": held, "requested_size": held, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0),
                "is_expandable": False, "frames": [], "blocks": [],
            })
        traces.append(trace)
        truth.append({"reserved": most_reserved, "allocated": most_allocated, "end": [reserved, allocated]})
    whole = {"segments": segments, "device_traces": traces, "allocator_settings": {"expandable_segments": False}, "external_annotations": []}
    with open(FOLDER / "snapshot.pickle", "wb") as file:
        pickle.dump(whole, file)
    with open(FOLDER / "snapshot-2.pickle", "wb") as file:
        pickle.dump({**whole, "device_traces": []}, file, protocol=2)
    (FOLDER / "snapshot.json").write_text(json.dumps(whole))
    TRUTH["snapshot"] = truth


FOLDER.mkdir(parents=True, exist_ok=True)
trainer(), profiler(), statistics(), snapshot()
(FOLDER / "truth.json").write_text(json.dumps(TRUTH, indent=1) + "\n")
