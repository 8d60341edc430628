//! Communication, arithmetic and time.

terms! {
    Communication page "collective":
        "Communication in which all GPUs of a group take part, such as an all-reduce. All must call it in the same order.",
        "Communication in which all ranks of a group take part. Libraries such as NCCL run it as a ring, a tree or in the switch. All ranks must call it in the same order, and each waits for the slowest.",
        "NCCL documentation, Collective Operations",
        [], ["all-reduce", "all-gather", "reduce-scatter", "all-to-all"];
    Communication page "all-reduce":
        "Every GPU of a group contributes a tensor and receives the sum of all.",
        "Every rank of a group contributes a tensor and receives the sum of all. A ring over n ranks sends 2(n − 1)/n of it from each: a reduce-scatter and an all-gather one after the other.",
        "NCCL documentation, Collective Operations; nccl-tests, PERFORMANCE.md",
        [], ["reduce-scatter", "all-gather", "wire"];
    Communication page "all-gather":
        "Every GPU of a group contributes its shard and receives all shards.",
        "Every rank of a group contributes its shard and receives all shards. A ring over n ranks sends (n − 1)/n of the gathered tensor from each.",
        "NCCL documentation, Collective Operations; nccl-tests, PERFORMANCE.md",
        [], ["reduce-scatter", "wire"];
    Communication page "reduce-scatter":
        "Every GPU of a group contributes a tensor and receives its shard of the sum.",
        "Every rank of a group contributes a tensor and receives its own shard of the sum. A ring over n ranks sends (n − 1)/n of the tensor from each.",
        "NCCL documentation, Collective Operations; nccl-tests, PERFORMANCE.md",
        [], ["all-gather", "wire"];
    Communication page "all-to-all":
        "Every GPU of a group sends a different piece to each of the others: how tokens reach their experts.",
        "Every rank of a group sends a different piece to each of the others: how tokens reach their experts, and how heads are exchanged for tokens in attention. Of what a rank gives, (n − 1)/n leaves it.",
        "NCCL documentation, Point-to-point Operations; nccl-tests, PERFORMANCE.md",
        [], ["expert parallelism", "wire"];
    Communication page "point-to-point":
        "One GPU sends to one other: how activations and their gradients pass between pipeline stages.",
        "One rank sends to one other: how activations and their gradients pass between neighbouring pipeline stages, and how keys and values go round in context parallelism.",
        "NCCL documentation, Point-to-point Operations; megatron/core/pipeline_parallel/p2p_communication.py",
        ["send and receive", "p2p"], ["pipeline stage", "context parallelism"];
    Communication page "wire":
        "What a GPU sends for a collective run as a ring: an all-reduce over n GPUs sends 2(n−1)/n of its payload from each.",
        "What each rank sends for one collective, which differs from its payload: a ring all-reduce over n ranks sends 2(n − 1)/n of it from each, an all-gather or reduce-scatter (n − 1)/n. Trees send as much in fewer steps; in-switch reduction needs about half.",
        "nccl-tests, PERFORMANCE.md; NVIDIA SHARP documentation",
        ["bytes on the wire", "ring", "tree", "in-switch"], ["collective", "bus bandwidth"];
    Communication guide "bus bandwidth":
        "Bytes that each GPU's link carries per second during a collective, whatever the size of the group; busbw in nccl-tests.",
        "The rate of a collective as seen by each rank's link: bytes on the wire of a ring divided by the time, which makes groups of different sizes comparable with the hardware's bandwidth. nccl-tests print it as busbw, and the message's size over the time as algbw.",
        "nccl-tests, PERFORMANCE.md",
        ["busbw"], ["wire", "measured_fast_bus_gbps", "measured_network_bus_gbps"];
    Communication page "overlap":
        "Communication that runs while the GPU computes is overlapped; only the exposed part, which it has to wait for, costs time.",
        "Communication that runs while the GPU computes is overlapped; only the exposed part, which it has to wait for, costs time. Both share memory bandwidth and SMs, so that overlap is not free.",
        "Narayanan et al. 2021, section 4; overlap flags of megatron/training/arguments.py",
        ["exposed time", "hidden"], ["bucket", "overlap_grad_reduce", "overlap_param_gather", "tp_comm_overlap"];
    Communication guide "NVLink":
        "The fast link between GPUs of a node (of a rack with NVL72), several times as fast as the network.",
        "NVIDIA's link between the GPUs of a node, or of a rack with NVL72, several times as fast per GPU as the network between nodes. Here the GPUs it joins are the fast-link domain; xGMI, HCCS and ICI take its place on other accelerators.",
        "NVIDIA data sheets; stas00/ml-engineering, network chapter; figures in the hardware catalog",
        ["fast-link domain", "NVSwitch"], ["InfiniBand"];
    Communication guide "InfiniBand":
        "A network between nodes, mostly with one adapter per GPU; RoCE is Ethernet used in the same way.",
        "A network between nodes with direct access to the memory of GPUs, mostly with one adapter per GPU: HDR 25, NDR 50, XDR 100 GB/s in each direction. RoCE is Ethernet used in the same way.",
        "stas00/ml-engineering, network chapter; figures in the hardware catalog",
        ["HDR", "NDR", "RoCE"], ["NVLink", "rail"];
    Communication guide "rail":
        "The GPUs of the same place on every node with their own switches: traffic among them does not meet the others'.",
        "The network adapters of the same place on every node, joined by their own switches. Groups of GPUs of the same place on their nodes, as data-parallel groups often are, then send without meeting the traffic of other rails.",
        "NVIDIA DGX SuperPOD reference architecture; NCCL documentation, NCCL_CROSS_NIC",
        ["rail-optimized network"], ["InfiniBand"];
    Communication guide "communicator":
        "NCCL's counterpart of a group: its connections and their buffers on the device.",
        "NCCL's counterpart of a group: its connections and their buffers on the device. Each takes a few hundred MiB, and a run has one for each kind of group that a rank is in.",
        "NCCL documentation, Creating a Communicator; src/include/device.h",
        ["NCCL buffers"], ["framework memory", "collective"];
    Speed page "step time":
        "Time of one step. Its bounds: if all communication that can overlap did so at no cost, and if none did.",
        "Time from one update of the weights to the next, without evaluation and checkpoints. The estimate stands between two bounds: all communication that can overlap does so at no cost, and none overlaps. The estimate follows what the run's flags let overlap.",
        "Shardscope's step-time model (estimate/time)",
        ["lower bound", "upper bound"], ["overlap", "step"];
    Speed guide "TFLOP/s":
        "10^12 floating-point operations per second; a multiplication with its addition counts as two.",
        "10^12 floating-point operations per second; a multiplication with its addition counts as two. Data sheets give a dense peak and, where zeros can be skipped, a sparse one of twice as much: shares here are of the dense one.",
        "NVIDIA data sheets; figures in the hardware catalog",
        ["TFLOPS", "FLOPs", "dense peak"], ["MFU"];
    Speed page "model FLOPs":
        "FLOPs that a step needs: every GEMM once forward and twice backward, without recomputation.",
        "FLOPs that a step needs whatever the framework does: every GEMM once in the forward pass and twice in the backward pass, without recomputation. Conventions differ in whether attention counts in full or only the half that a causal mask leaves; the page lists each.",
        "Chowdhery et al. 2022 (PaLM), appendix B; Korthikanti et al. 2022, appendix A",
        [], ["hardware FLOPs", "MFU"];
    Speed page "hardware FLOPs":
        "FLOPs that the device executes: model FLOPs plus recomputation.",
        "FLOPs that the device executes: model FLOPs plus the forward passes that recomputation repeats.",
        "Korthikanti et al. 2022, section 5",
        [], ["model FLOPs", "recompute", "HFU"];
    Speed page "MFU":
        "Model FLOPs per second as a share of the accelerator's dense peak. Recomputation does not count.",
        "Model FLOPs utilisation: model FLOPs of a step over its time, as a share of the accelerators' dense peak. Recomputation does not count, so that it measures training progress. Two figures compare only if both count FLOPs alike and divide by the same peak.",
        "Chowdhery et al. 2022 (PaLM), appendix B",
        ["model FLOPs utilisation"], ["HFU", "model FLOPs"];
    Speed page "HFU":
        "MFU with recomputation counted: how busy the accelerator is, not how fast training progresses.",
        "Hardware FLOPs utilisation: as MFU, with recomputation counted. It tells how busy the accelerators are, not how fast training progresses.",
        "Chowdhery et al. 2022 (PaLM), appendix B; Korthikanti et al. 2022, section 6",
        ["hardware FLOPs utilisation"], ["MFU", "hardware FLOPs"];
    Speed page "FLOP/byte":
        "FLOPs per byte moved. Below the accelerator's ratio of peak FLOP/s to bandwidth a kernel is memory-bound, above it compute-bound.",
        "Arithmetic intensity: operations per byte moved between memory and multiprocessors. An accelerator's peak divided by its memory bandwidth is its ridge: below it a kernel is memory-bound, above it compute-bound. Plotted over intensity the two limits form a roofline.",
        "Williams et al. 2009 (Roofline)",
        ["arithmetic intensity", "roofline", "ridge", "memory-bound", "compute-bound"], ["tile", "TFLOP/s"];
    Speed page "tile":
        "A GEMM is computed in tiles of its output. A tile that overhangs the edge is computed whole and partly wasted.",
        "A GEMM is computed in tiles of its output, one per SM at a time. A tile that overhangs the edge of the output is computed whole and partly wasted: tile quantization. Sizes that are multiples of 128 or 256 avoid it.",
        "NVIDIA, Matrix Multiplication Background User's Guide, section Tile Quantization",
        ["tile quantization"], ["wave"];
    Speed page "wave":
        "As many tiles as the accelerator has SMs run at once. A last wave of few tiles takes as long as a full one.",
        "As many tiles as the accelerator has SMs run at once, wave after wave. A last wave of few tiles takes as long as a full one: wave quantization. It matters where there are few waves, as when sharding makes GEMMs small.",
        "NVIDIA, Matrix Multiplication Background User's Guide, section Wave Quantization",
        ["wave quantization"], ["tile"];
}
