//! The glossary. `page` marks the terms that the page explains where they stand, `guide` those of the guide alone.

use super::terms::{Term, Theme};

macro_rules! on_page {
    (page) => {
        true
    };
    (guide) => {
        false
    };
}

macro_rules! glossary {
    ($($theme:ident $place:ident $name:literal: $short:literal, $long:literal, $source:literal,
       [$($also:literal),*], [$($see:literal),*];)*) => {
        /// Every term, in the order of the guide.
        pub static GLOSSARY: &[Term] = &[$(Term {
            theme: Theme::$theme,
            on_page: on_page!($place),
            name: $name,
            short: $short,
            long: $long,
            source: $source,
            also: &[$($also),*],
            see: &[$($see),*],
        }),*];

        /// What the page says of each term, apart from [`GLOSSARY`]: the page then need not carry the guide's longer texts.
        static MEANINGS: &[(&str, Option<&str>)] =
            &[$(($name, if on_page!($place) { Some($short) } else { None })),*];
    };
}

glossary! {
    // How a run is split.
    Split page "rank":
        "One process of the run, which drives one GPU. Ranks are numbered from 0 and fill one node after the other.",
        "One process of the run, which drives one accelerator. Ranks are numbered from 0 and fill one node after the other, as torchrun starts them. Megatron derives every parallel group from a rank's number alone, so that the number also decides which traffic stays inside a node.",
        "PyTorch documentation, torch.distributed; megatron/core/parallel_state.py:RankGenerator",
        ["global rank"], ["n0_g0", "rank order"];
    Split page "n0_g0":
        "A GPU by its place: GPU 0 of node 0. n1_g3 is the fourth GPU of the second node.",
        "A GPU by its place in the run: node and GPU on the node, both from 0. With 8 GPUs per node rank 11 is n1_g3: 11 = 1 · 8 + 3. Nodes are those of the run in the order of their ranks, not host names.",
        "Labels of Shardscope; rank order as started by torchrun",
        ["label of a GPU"], ["rank", "gpus_per_node"];
    Split guide "world size":
        "All GPUs of the run: nodes × GPUs per node.",
        "The number of ranks: nodes × GPUs per node. It must be a multiple of TP · PP · CP; the quotient is the data-parallel size.",
        "megatron/training/arguments.py:validate_args",
        [], ["rank", "data-parallel group", "world_size"];
    Split page "data-parallel group":
        "GPUs that hold the same shard of different model replicas. Each replica reads different samples; once per step the group reduces their gradients.",
        "GPUs that hold the same shard of different model replicas. Each replica reads different samples of the global batch. Before the optimizer step the group reduces its gradients, by an all-reduce or, where optimizer states are sharded, a reduce-scatter, so that all replicas take the same step. Its size is not set but follows: world size / (TP · PP · CP).",
        "Li et al. 2020 (PyTorch Distributed), section 3; megatron/core/parallel_state.py",
        ["DP", "data parallelism", "data-parallel size"], ["replica", "distributed optimizer", "all-reduce", "data_parallel_size"];
    Split guide "replica":
        "One copy of the model, sharded across TP · PP · CP GPUs.",
        "One copy of the model and the GPUs that hold it: TP · PP of them hold its weights, and with context parallelism CP such sets work on one sequence. The data-parallel size is the number of replicas.",
        "megatron/core/parallel_state.py:get_model_parallel_group",
        ["model-parallel group"], ["data-parallel group"];
    Split page "tensor parallelism":
        "Each layer's weight matrices are sharded across the GPUs of a group, which communicate activations within every layer; best kept inside a node.",
        "Each weight matrix of a layer is sharded across the GPUs of a group: the first linear layer of a pair by columns, the second by rows, so that a pair needs one reduction of activations in the forward pass and one in the backward pass. These collectives run in every layer and are mostly exposed, which is why such a group is best kept inside a node. The number of attention heads must be a multiple of its size.",
        "Shoeybi et al. 2019, section 3",
        ["TP", "tensor-parallel group", "tensor-parallel size"], ["sequence parallelism", "tensor_model_parallel_size"];
    Split guide "sequence parallelism":
        "Norms and dropouts, which tensor parallelism replicates on each GPU of its group, are sharded along the sequence: less memory for the same traffic.",
        "Tensor parallelism alone replicates norms, dropouts and the residual stream on each GPU of the group. Sequence parallelism shards them along the sequence across the same group. Each all-reduce becomes a reduce-scatter and an all-gather, which together send as much. It needs no GPUs of its own.",
        "Korthikanti et al. 2022, section 4.2.2",
        ["SP"], ["tensor parallelism", "sequence_parallel"];
    Split page "pipeline stage":
        "Consecutive layers and the GPUs that hold them. Micro-batches go from stage to stage, forward and then back.",
        "Consecutive layers and the GPUs that hold them. A micro-batch goes through the stages one after the other and back again for the backward pass; only activations at the borders are sent. While one micro-batch is on a later stage, earlier stages work on the next ones.",
        "Huang et al. 2019 (GPipe), section 2; Narayanan et al. 2021, section 2.2",
        ["PP", "pipeline parallelism", "pipeline-parallel size"], ["bubble", "virtual pipeline", "pipeline_model_parallel_size"];
    Split guide "virtual pipeline":
        "Each GPU holds several separate chunks of layers: a smaller bubble, more communication and more activations in flight.",
        "Each pipeline rank holds v separate chunks of layers, so that a micro-batch passes it v times. The bubble shrinks by a factor of v; sends between stages become v times as many, and more activations are in flight. Megatron calls the order interleaved 1F1B.",
        "Narayanan et al. 2021, section 2.2.2",
        ["VPP", "VP", "interleaved schedule", "model chunks"], ["bubble", "in flight", "virtual_pipeline_model_parallel_size", "num_layers_per_virtual_pipeline_stage"];
    Split page "context parallelism":
        "Each sequence is sharded across the GPUs of a group, which exchange keys and values in attention. It makes long sequences fit.",
        "Each sequence is sharded across the GPUs of a group, in every layer. Only attention needs the other shards: keys and values pass around a ring (p2p), are gathered (all_gather), or heads are exchanged for tokens (a2a). Each GPU takes an early and a late piece of the sequence, which balances the causal mask. Weights are replicated as across data-parallel ranks, and gradients are reduced over data and context ranks together.",
        "Megatron Core documentation, Context Parallelism; Liu et al. 2023 (Ring Attention); Jacobs et al. 2023 (DeepSpeed Ulysses)",
        ["CP", "context-parallel size"], ["context_parallel_size", "cp_comm_type"];
    Split page "expert parallelism":
        "The experts of a layer are distributed across the GPUs of a group; tokens are sent to their experts and back.",
        "The experts of an MoE layer are distributed across the GPUs of a group. Each token is sent to the GPUs that hold its experts and the results come back, in the forward and the backward pass. The group is taken from ranks that would otherwise hold copies of the same layer.",
        "Lepikhin et al. 2020 (GShard), section 3; megatron/core/transformer/moe/token_dispatcher.py",
        ["EP", "expert-parallel size"], ["dispatcher", "all-to-all", "expert_model_parallel_size"];
    Split page "expert tensor parallelism":
        "Number of GPUs that each expert's matrices are sharded across, set apart from TP of the dense layers.",
        "Each expert's matrices are sharded across ETP GPUs, which may differ from the tensor-parallel size of attention and dense layers. Unset, Megatron takes the tensor-parallel size. Experts are often narrow, and sharding them further makes inefficient GEMMs.",
        "megatron/core/parallel_state.py:initialize_model_parallel",
        ["ETP"], ["expert parallelism", "expert_tensor_parallel_size"];
    Split guide "expert data parallelism":
        "GPUs that hold the same shard of the same experts; they reduce those experts' gradients.",
        "GPUs that hold the same shard of the same experts and reduce those experts' gradients. Its size is world size / (ETP · EP · PP), smaller than the group that reduces dense gradients wherever ETP · EP exceeds TP.",
        "megatron/core/parallel_state.py:initialize_model_parallel",
        ["EDP"], ["expert parallelism", "data-parallel group", "expert_data_parallel_size"];
    Split guide "rank order":
        "Which kind of group has neighbouring ranks: by default tensor first, then context, expert, data, and pipeline last.",
        "Which ranks are neighbours: in Megatron tensor ranks are next to each other, then come context, expert and data ranks; pipeline ranks are furthest apart. As ranks fill node after node, the first kinds stay inside nodes. One flag puts the pipeline before data.",
        "megatron/core/parallel_state.py:initialize_model_parallel; megatron/training/arguments.py:use_tp_pp_dp_mapping",
        [], ["rank", "use_tp_pp_dp_mapping"];

    // Batches and schedules.
    Schedule page "micro-batch":
        "The sequences that one model replica processes at once. A step takes several and accumulates their gradients.",
        "The sequences that one model replica processes at once. Activations grow with its size, and so do the GEMMs, up to where they are efficient. A step takes several micro-batches and accumulates their gradients.",
        "Narayanan et al. 2021, section 2.2; megatron/core/num_microbatches_calculator.py",
        ["MBS"], ["gradient accumulation", "micro_batch_size"];
    Schedule guide "global batch":
        "All sequences of one step: micro-batch size × micro-batches × data-parallel size.",
        "All sequences of one optimizer step: micro-batch size × number of micro-batches × data-parallel size. A run states it, and the number of micro-batches follows.",
        "megatron/core/num_microbatches_calculator.py",
        ["GBS"], ["micro-batch", "step", "global_batch_size", "num_micro_batches"];
    Schedule guide "gradient accumulation":
        "Gradients of several micro-batches are summed before the optimizer step.",
        "Gradients of several micro-batches are summed in the gradient buffer before they are reduced over data-parallel ranks and the optimizer steps. With pipeline parallelism it is what keeps the stages busy.",
        "megatron/core/num_microbatches_calculator.py; DeepSpeed documentation, gradient_accumulation_steps",
        ["accumulation steps"], ["micro-batch", "gradients"];
    Schedule guide "step":
        "One update of the weights, from one global batch.",
        "One update of the weights: forward and backward passes of all micro-batches of a global batch, reduction of gradients, optimizer. Megatron's log calls it an iteration.",
        "megatron/training/training.py:train_step",
        ["iteration"], ["global batch"];
    Schedule page "bubble":
        "Time a pipeline stage is idle: before its first micro-batch arrives and after its last has left.",
        "Time a pipeline stage is idle: before its first micro-batch arrives and after its last has left. With p even stages, m micro-batches and v chunks per rank, interleaved 1F1B idles (p − 1)/v slots, one slot being the forward and backward of a micro-batch on a stage: a fraction (p − 1)/(v · m + p − 1) of the step. Here it is taken from the simulated schedule with the durations of the plan, for the slowest stage.",
        "Narayanan et al. 2021, section 2.2",
        ["pipeline bubble"], ["warm-up", "virtual pipeline"];
    Schedule page "warm-up":
        "A stage's forward passes before its first backward pass; they fill the pipeline. In the cool-down only backward passes are left.",
        "A stage's forward passes before its first backward pass, which fill the pipeline: under 1F1B p − 1 of them on the first of p stages and none on the last. In the steady state forward and backward passes alternate; in the cool-down only backward passes are left.",
        "Narayanan et al. 2021, section 2.2.1; megatron/core/pipeline_parallel/schedules.py",
        ["cool-down", "steady state"], ["bubble", "1F1B"];
    Schedule page "in flight":
        "Micro-batches whose forward pass a stage has done and whose backward pass it has not; it holds the activations of each.",
        "Micro-batches, or chunks of them, whose forward pass a stage has done and whose backward pass it has not: it holds the activations of each. Under 1F1B stage i of p holds at most p − i of them, counted from 0, whatever the number of micro-batches.",
        "Narayanan et al. 2021, section 2.2.1; Korthikanti et al. 2022, section 4.2.3",
        ["outstanding micro-batches"], ["activations", "pipeline stage"];
    Schedule guide "1F1B":
        "One forward, one backward: after warm-up each stage alternates them, so that few micro-batches are in flight.",
        "One forward, one backward: after its warm-up each stage alternates forward and backward passes. Its bubble is that of GPipe, but at most as many micro-batches are in flight as there are stages.",
        "Narayanan et al. 2021, section 2.2.1 (PipeDream-Flush)",
        ["one forward one backward", "PipeDream-Flush"], ["GPipe", "in flight", "pipeline_schedule"];
    Schedule guide "GPipe":
        "All forward passes of a step, then all backward passes: simple, with every micro-batch in flight at once.",
        "All forward passes of a step, then all backward passes: each stage holds the activations of every micro-batch at once.",
        "Huang et al. 2019, section 2.2",
        [], ["1F1B", "pipeline_schedule"];
    Schedule guide "zero bubble":
        "Backward passes are split in two: input gradients, which the previous stage waits for, and weight gradients, which fill the bubble.",
        "A backward pass is split in two: input gradients, which the previous stage waits for, and weight gradients, which no other stage waits for and which therefore fill the bubble. ZB-H1 holds as much as 1F1B, ZB-H2 up to about twice as much for a smaller bubble, ZB-V has the small bubble at about the memory of 1F1B, with two chunks folded into a V.",
        "Qi et al. 2023 (Zero Bubble Pipeline Parallelism)",
        ["ZB-H1", "ZB-H2", "ZB-V"], ["bubble", "V schedules", "pipeline_schedule"];
    Schedule guide "V schedules":
        "Each GPU holds an early and a late chunk, so that all hold equally much; V-half and V-min hold about half and a third.",
        "Each pipeline rank holds an early and a late chunk of the model, folded like a V, so that all ranks hold equally much. V-half keeps about half and V-min about a third of the activations of 1F1B, for more bubble.",
        "Qi et al. 2024 (Pipeline Parallelism with Controllable Memory)",
        ["V-half", "V-min"], ["zero bubble", "in flight", "pipeline_schedule"];
    Schedule guide "DualPipe":
        "Micro-batches enter the pipeline from both ends; each GPU holds two parts of the model.",
        "Micro-batches enter the pipeline from both ends at once, so that forward passes of one direction overlap with backward passes of the other and hide its communication. Each rank holds two parts of the model; DualPipeV folds it so that one copy is enough.",
        "DeepSeek-AI 2024 (DeepSeek-V3), section 3.2.1",
        ["DualPipeV"], ["bubble", "expert parallelism", "pipeline_schedule"];

    // Memory.
    Memory page "parameters":
        "The weights in the format that layers compute with. The optimizer may keep an fp32 copy.",
        "The weights of the layers on this GPU in the format in which layers use them, mostly 16 bits. With mixed precision the optimizer keeps a wider copy, which is counted with it.",
        "Micikevicius et al. 2018, section 3.1; megatron/core/optimizer/optimizer.py",
        ["weights"], ["master weights", "params_dtype"];
    Memory page "gradients":
        "The buffer in which gradients of all micro-batches of a step accumulate, one element per weight, often fp32.",
        "The buffer in which the gradients of all micro-batches of a step accumulate, one element for each weight on the GPU. Megatron takes fp32 with bf16 training unless told otherwise. It stays for the whole run, unless gradients are sharded.",
        "megatron/core/distributed/param_and_grad_buffer.py",
        ["main gradients", "gradient buffer"], ["bucket", "gradient accumulation", "grads_dtype"];
    Memory page "optimizer states":
        "What the optimizer keeps per weight between steps: with Adam two moments, with 16-bit weights also an fp32 copy of them.",
        "What the optimizer keeps for each weight from step to step: Adam two moments in fp32, 8 bytes; with 16-bit weights also a master copy in fp32, 4 bytes. A distributed optimizer divides them by the number of data-parallel ranks.",
        "Kingma and Ba 2015; Rajbhandari et al. 2020 (ZeRO), section 3.1; megatron/core/optimizer",
        ["optimizer"], ["distributed optimizer", "master weights"];
    Memory guide "master weights":
        "The optimizer's fp32 copy of 16-bit weights: small updates would be lost in 16 bits.",
        "The optimizer's own copy of 16-bit weights, in fp32: updates much smaller than a weight would be rounded away in 16 bits. After each step it is rounded to the weights that layers use.",
        "Micikevicius et al. 2018, section 3.1",
        ["main parameters"], ["optimizer states", "main_params_dtype"];
    Memory page "activations":
        "What the forward pass keeps of each micro-batch because the backward pass needs it.",
        "Tensors of the forward pass that autograd keeps because the backward pass needs them: inputs of linear layers and norms, masks, statistics. They grow with micro-batch, sequence and layers, and with the micro-batches in flight; weights are not among them.",
        "Korthikanti et al. 2022, section 4",
        ["saved tensors"], ["in flight", "recompute"];
    Memory page "temporaries":
        "Short-lived tensors at the peak: gradients of activations, gathered inputs, workspaces.",
        "Short-lived tensors at the peak: gradients of activations, inputs gathered again for the backward pass, the loss's copies of the logits, kernel workspaces. The peak is the moment at which the sum of everything is largest.",
        "Order of allocations in the framework's modules; each leaf names its file",
        ["transient memory"], ["activations", "workspace"];
    Memory page "allocated":
        "Bytes in tensors, as torch.cuda.max_memory_allocated counts them. The device shows more.",
        "Bytes of live tensors, each rounded up as PyTorch's allocator does: what torch.cuda.max_memory_allocated reports. The device shows more: what the allocator holds and does not use, the driver's context and the communicators' buffers.",
        "PyTorch documentation, CUDA semantics: memory management",
        [], ["reserved", "framework memory"];
    Memory guide "reserved":
        "What PyTorch's allocator has taken from the device: allocated blocks and those it caches.",
        "What PyTorch's allocator has taken from the device (torch.cuda.max_memory_reserved): allocated blocks, and those it keeps to hand out again. The report's peak_reserved goes on to what nvidia-smi shows: with the driver's context and the communicators' buffers.",
        "PyTorch documentation, CUDA semantics: memory management",
        [], ["allocated", "fragmentation", "framework memory"];
    Memory page "framework memory":
        "What the device holds beside torch's tensors: the driver's context, communicators' buffers, blocks the allocator keeps.",
        "What the device holds beside torch's tensors: the driver's context with the code of kernels, buffers of NCCL's communicators, blocks that the allocator keeps and does not use, DeepSpeed's flat buffers. Each is a term of its own and can be left out.",
        "c10/cuda/CUDACachingAllocator.cpp; NCCL src/include/device.h",
        ["framework"], ["driver's context", "fragmentation", "memory_left_out"];
    Memory guide "driver's context":
        "What the CUDA driver takes of a device for a process: kernels' code, stacks, its own tables.",
        "What the CUDA driver takes of a device before a process allocates anything: code of kernels, stacks, its own tables. It depends on accelerator, driver and libraries.",
        "CUDA C++ Programming Guide, context; measured values in the hardware catalog",
        ["CUDA context"], ["framework memory"];
    Memory guide "workspace":
        "Scratch memory of a library's kernel, such as cuBLAS.",
        "Scratch memory that a library's kernels use while they run, such as cuBLAS's. PyTorch keeps one per handle and stream, so that it counts as allocated from the first product on.",
        "cuBLAS documentation, cublasSetWorkspace; aten/src/ATen/cuda/CublasHandlePool.cpp",
        ["cuBLAS workspace"], ["temporaries", "memory_left_out"];
    Memory guide "fragmentation":
        "Free room in pieces too small for what is asked.",
        "Free room in pieces too small for what is asked, or in blocks of another size class: the allocator then takes more from the device, and reserved grows beyond allocated. Expandable segments lessen it.",
        "PyTorch documentation, CUDA semantics: PYTORCH_CUDA_ALLOC_CONF",
        ["allocator's slack"], ["reserved", "fits"];
    Memory page "fits":
        "Whether the peak rank stays within its GPU's memory. Tight: it does, but with so little headroom that fragmentation may cause an out-of-memory error.",
        "Whether the peak rank, at its peak, stays within what the driver shows as total memory. Tight: it does, but with so little headroom that fragmentation, which differs from run to run, may cause an out-of-memory error.",
        "Verdict of Shardscope; margins from reserved and allocated figures of published runs",
        ["OOM", "out of memory", "tight"], ["reserved", "fragmentation"];
    Memory page "GiB":
        "2^30 bytes; a GB is 10^9, 7% less. Memory is given in GiB here, bandwidth in GB/s.",
        "2^30 = 1,073,741,824 bytes; a GB is 10^9 bytes, 7% less. Memory is given in GiB here and bandwidth in GB/s, as drivers and data sheets do. An accelerator of 80 GB on paper may show 79.6 GiB or 80 GiB: the catalog has what the driver shows.",
        "IEC 80000-13:2008, clause 4",
        ["GB", "MiB"], ["allocated"];
    Memory page "recompute":
        "Activations are dropped and recomputed for the backward pass: less memory, more compute. Selective: parts of layers; full: whole layers.",
        "Activations are dropped after the forward pass and recomputed when the backward pass needs them: less memory, more compute. Selective recomputation repeats the parts of a layer that take much memory and little compute, by default core attention; full recomputation keeps only the inputs of layers and repeats one forward pass.",
        "Chen et al. 2016 (sublinear memory cost); Korthikanti et al. 2022, section 5",
        ["activation checkpointing", "recomputation"], ["activations", "HFU", "recompute_granularity", "recompute_modules"];
    Memory page "distributed optimizer":
        "Each data-parallel rank keeps and updates its own part of the optimizer states; weights are gathered afterwards. The same as ZeRO-1.",
        "Each data-parallel rank keeps and updates its own part of the optimizer states. Gradients are reduce-scattered instead of all-reduced, and updated weights are gathered: the same traffic for a fraction of the memory.",
        "Rajbhandari et al. 2020 (ZeRO), section 5; Megatron Core documentation, Distributed Optimizer",
        ["ZeRO-1"], ["ZeRO", "optimizer states", "use_distributed_optimizer"];
    Memory guide "ZeRO":
        "What data-parallel ranks share instead of each holding it. Stage 1: optimizer states; 2: also gradients; 3: also weights, gathered for each layer.",
        "What data-parallel ranks share instead of each holding all of it. Stage 1 shards optimizer states, stage 2 gradients too, stage 3 weights too, which are then gathered for each layer in the forward and again in the backward pass: half as much traffic again.",
        "Rajbhandari et al. 2020, sections 5 and 7",
        ["ZeRO-2", "ZeRO-3"], ["distributed optimizer", "FSDP", "zero_stage"];
    Memory guide "FSDP":
        "Fully sharded data parallel: weights, gradients and states sharded over data-parallel ranks, as in ZeRO-3.",
        "Fully sharded data parallel, PyTorch's and Megatron's form of ZeRO-3: each unit, mostly a layer, gathers its weights before it computes and frees them after; gradients are reduce-scattered unit by unit.",
        "Zhao et al. 2023 (PyTorch FSDP), section 3",
        ["fully sharded data parallel"], ["ZeRO", "use_torch_fsdp2", "use_megatron_fsdp"];
    Memory guide "bucket":
        "A piece of the gradient buffer that is reduced by one collective, as soon as all its gradients are ready.",
        "A piece of the gradient buffer that is reduced by one collective, as soon as the gradients of all its weights are ready. Several buckets let the reduction of the first overlap with the backward pass of the rest.",
        "Li et al. 2020 (PyTorch Distributed), section 3.2.3; megatron/core/distributed/param_and_grad_buffer.py",
        ["gradient bucket"], ["gradients", "overlap", "overlap_grad_reduce"];
    Memory guide "CPU offload":
        "Optimizer states or activations are held in the host's memory and moved to the device when needed.",
        "Optimizer states or activations are held in the host's memory and moved over PCIe or a faster host link when they are needed: room on the device for time.",
        "Ren et al. 2021 (ZeRO-Offload); megatron/core/optimizer/cpu_offloading",
        ["offloading"], ["optimizer states", "optimizer_cpu_offload"];

    // Communication.
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
        ["rail-optimised network"], ["InfiniBand"];
    Communication guide "communicator":
        "NCCL's counterpart of a group: its connections and their buffers on the device.",
        "NCCL's counterpart of a group: its connections and their buffers on the device. Each takes a few hundred MiB, and a run has one for each kind of group that a rank is in.",
        "NCCL documentation, Creating a Communicator; src/include/device.h",
        ["NCCL buffers"], ["framework memory", "collective"];

    // Arithmetic and time.
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
        ["tile quantisation"], ["wave"];
    Speed page "wave":
        "As many tiles as the accelerator has SMs run at once. A last wave of few tiles takes as long as a full one.",
        "As many tiles as the accelerator has SMs run at once, wave after wave. A last wave of few tiles takes as long as a full one: wave quantization. It matters where there are few waves, as when sharding makes GEMMs small.",
        "NVIDIA, Matrix Multiplication Background User's Guide, section Wave Quantization",
        ["wave quantisation"], ["tile"];

    // The model.
    Model guide "residual stream":
        "The tensor of tokens × hidden size to which every layer adds its result.",
        "The tensor of tokens × hidden size that runs through the model and to which attention and MLP of every layer add their results. It is what pipeline stages send and what full recomputation keeps of each layer.",
        "Vaswani et al. 2017, section 3.1 (residual connections)",
        ["hidden states"], ["sequence parallelism", "hidden_size"];
    Model guide "grouped-query attention":
        "Several query heads share one head of keys and values: smaller projections, fewer keys and values to keep and send.",
        "Several query heads share one head of keys and values, so that projections, saved activations and context-parallel communication shrink. With one shared head for all it is multi-query attention.",
        "Ainslie et al. 2023, section 2.2",
        ["GQA", "multi-query attention", "MQA"], ["num_query_groups"];
    Model guide "multi-latent attention":
        "Queries, keys and values are made from narrow latent vectors, up-projected for each head.",
        "Keys and values, and mostly queries too, are made from narrow latent vectors that are projected up for each head; a part of each head carries the position. Up-projections can be recomputed on their own.",
        "DeepSeek-AI 2024 (DeepSeek-V2), section 2.1",
        ["MLA"], ["multi_latent_attention", "kv_lora_rank", "q_lora_rank"];
    Model guide "SwiGLU":
        "An MLP with a gate: two input projections instead of one, one of them through SiLU, multiplied.",
        "A gated MLP: two input projections instead of one, one of them through SiLU, are multiplied before the output projection. It has three matrices where a plain MLP has two; models often make it 8/3 of the hidden size wide to have as many weights.",
        "Shazeer 2020 (GLU Variants Improve Transformer)",
        ["gated MLP", "GLU"], ["swiglu", "ffn_hidden_size"];
    Model guide "flash attention":
        "Attention computed block by block, so that the matrix of scores never lies in memory.",
        "Attention computed block by block with running statistics of the softmax, so that the matrix of scores never lies in memory; the backward pass computes the blocks again. What is kept grows with the sequence, not with its square.",
        "Dao et al. 2022; Dao 2023 (FlashAttention-2)",
        ["fused attention"], ["activations"];
    Model guide "MoE":
        "Mixture of experts: in place of one MLP a layer has many, of which each token uses a few.",
        "Mixture of experts: in place of one MLP a layer has many (experts), of which a router picks a few for each token. Parameters grow with the number of experts, compute per token only with those used.",
        "Shazeer et al. 2017; Fedus et al. 2022 (Switch Transformers)",
        ["mixture of experts"], ["top-k", "expert parallelism", "num_experts"];
    Model guide "top-k":
        "How many experts the router picks for each token.",
        "How many experts the router picks for each token. Each token's vector is sent to and computed by k experts.",
        "Shazeer et al. 2017, section 2.1; megatron/core/transformer/moe/router.py",
        ["router"], ["MoE", "moe_router_topk"];
    Model guide "dispatcher":
        "How tokens get to their experts: by all-to-all, each copy to where it goes, or all tokens gathered everywhere.",
        "How tokens get to their experts. alltoall sends each copy to the GPU that holds its expert; allgather gathers all tokens on each GPU of the group, which then picks; flex leaves it to DeepEP or the like, which send a token once to each GPU.",
        "megatron/core/transformer/moe/token_dispatcher.py",
        ["token dispatcher"], ["expert parallelism", "all-to-all", "moe_token_dispatcher_type"];
    Model guide "capacity factor":
        "How many tokens an expert takes at most, relative to an even share; others are dropped.",
        "How many tokens an expert takes at most, as a multiple of an even share; those above it are dropped. With padding every expert computes exactly that many. Without a factor none is dropped, and figures here assume an even load.",
        "Lepikhin et al. 2020 (GShard), section 2.2; megatron/core/transformer/moe/moe_utils.py:get_capacity",
        ["expert capacity"], ["MoE", "moe_expert_capacity_factor"];
    Model guide "shared experts":
        "Experts that every token uses, beside those the router picks.",
        "Experts that every token uses, beside those the router picks. Being the same for all they are computed where the token is, cut by tensor parallelism, and may run while tokens travel.",
        "Dai et al. 2024 (DeepSeekMoE), section 3.2",
        [], ["MoE", "moe_shared_expert_intermediate_size"];
    Model guide "vocabulary padding":
        "Rows added to the embedding so that tensor ranks divide it evenly into efficient sizes.",
        "Rows added to the embedding so that it divides evenly over tensor ranks into efficient sizes: Megatron pads to a multiple of a setting (128 by default) times the tensor-parallel size. They count as parameters and take memory.",
        "megatron/training/tokenizer/tokenizer.py:_vocab_size_with_padding",
        ["padded vocabulary"], ["make_vocab_size_divisible_by", "padded_vocab_size"];
    Model guide "tied embeddings":
        "The output layer uses the input embedding's weights; with a pipeline first and last stage hold both and add up gradients.",
        "The output layer uses the input embedding's weights. With a pipeline both the first and the last stage hold them and add up their gradients once a step, in the embedding group.",
        "Press and Wolf 2017; megatron/core/distributed/finalize_model_grads.py",
        ["shared embedding"], ["untie_embeddings_and_output_weights"];
    Model guide "multi-token prediction":
        "Additional layers that predict tokens further ahead, trained along.",
        "Additional layers at the end of the model that predict tokens further ahead and are trained along, each with its own pass through the output layer.",
        "DeepSeek-AI 2024 (DeepSeek-V3), section 2.2",
        ["MTP"], ["mtp_num_layers"];
    Model guide "bf16":
        "A 16-bit number with the range of fp32 and 8 significant bits; fp16 has 11 and far less range, so it needs loss scaling.",
        "A 16-bit floating-point number with the range of fp32 and 8 significant bits. fp16 has 11 significant bits and far less range, so that losses are scaled up against underflow. fp8 has two forms: e4m3, more precise, and e5m2, of more range; scales per tensor or block make up for what it lacks.",
        "Micikevicius et al. 2018; Kalamkar et al. 2019; Micikevicius et al. 2022 (FP8 Formats for Deep Learning)",
        ["fp16", "fp8", "mixed precision"], ["master weights", "params_dtype", "fp8"];
}

/// What `name` means, in a sentence or two; for the terms that the page explains.
#[must_use]
pub fn meaning(name: &str) -> Option<&'static str> {
    MEANINGS.iter().find(|(term, _)| *term == name).and_then(|(_, short)| *short)
}

#[cfg(test)]
mod tests {
    use super::{GLOSSARY, meaning};
    use crate::terms::{Term, anchor};
    use shardscope_plan::Field;

    #[test]
    fn every_term_is_short_where_it_must_be_and_has_a_source() {
        for term in GLOSSARY {
            let length = term.short.chars().count();
            assert!(length <= Term::SHORT, "{}: {length} characters", term.name);
            assert!(
                term.short.len() > 20 && term.long.len() > 40 && !term.source.is_empty(),
                "{}",
                term.name
            );
            for text in [term.short, term.long] {
                assert!(text.ends_with('.') && !text.contains("  ") && !text.contains('\t'), "{text}");
            }
            assert_eq!(meaning(term.name), term.on_page.then_some(term.short), "{}", term.name);
        }
    }

    #[test]
    fn no_word_has_two_meanings_and_every_reference_leads_somewhere() {
        let mut words: Vec<String> = Vec::new();
        for term in GLOSSARY {
            words.push(term.name.to_ascii_lowercase());
            words.extend(term.also.iter().map(|word| word.to_ascii_lowercase()));
            for see in term.see {
                let known = GLOSSARY.iter().any(|other| other.name == *see && other.name != term.name)
                    || Field::ALL.iter().any(|field| field.name() == *see);
                assert!(known, "{}: {see}", term.name);
            }
        }
        let mut once = words.clone();
        once.sort();
        once.dedup();
        words.sort();
        assert_eq!(once, words);
    }

    #[test]
    fn anchors_are_words_of_an_address() {
        assert_eq!(anchor("GiB (and GB)"), "gib-and-gb");
        assert_eq!(anchor("n0_g0"), "n0_g0");
        assert_eq!(meaning("no such word"), None);
    }
}
