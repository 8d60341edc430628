"""Writes tests/data/torch/pipeline_orders.jsonl: the passes of every rank, in order, of PyTorch's ZB-V and
DualPipeV (`torch/distributed/pipelining/schedules.py`). Needs torch 2.15.

usage: python pipeline_orders.py > tests/data/torch/pipeline_orders.jsonl

A pass is F, B (whole backward), I (input gradients) or W (weight gradients), the rank's chunk, and the micro-batch: F0.3.
Two passes joined by + run as one.
"""

import json
import types

import torch.distributed.pipelining.schedules as schedules

LETTERS = {
    schedules.FORWARD: "F",
    schedules.FULL_BACKWARD: "B",
    schedules.BACKWARD_INPUT: "I",
    schedules.BACKWARD_WEIGHT: "W",
}


def told(action, ranks):
    if action.sub_actions:
        return "+".join(told(each, ranks) for each in action.sub_actions)
    chunk = 0 if action.stage_index < ranks else 1
    return f"{LETTERS[action.computation_type]}{chunk}.{action.microbatch_index}"


def order(schedule, ranks, micro_batches):
    made = types.SimpleNamespace(pp_group_size=ranks, num_stages=2 * ranks, _n_microbatches=micro_batches)
    of = [schedule._calculate_single_rank_operations(made, rank) for rank in range(ranks)]
    return [" ".join(told(action, ranks) for action in actions if action is not None) for actions in of]


for name, schedule, least in [
    ("zb-v", schedules.ScheduleZBVZeroBubble, lambda ranks: 1),
    ("dualpipe-v", schedules.ScheduleDualPipeV, lambda ranks: 2 * ranks),
]:
    for ranks in [2, 3, 4, 6]:
        for micro_batches in [1, 2, 4, 7, 8, 12, 13]:
            if micro_batches >= least(ranks):
                orders = order(schedule, ranks, micro_batches)
                print(json.dumps({"kind": name, "p": ranks, "m": micro_batches, "ranks": orders}))
