//! Memory.

terms! {
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
        "Bytes of live tensors, each rounded up as PyTorch's allocator does: what torch.cuda.max_memory_allocated reports. The device shows more: what the allocator holds and does not use, the driver context and the communicator buffers.",
        "PyTorch documentation, CUDA semantics: memory management",
        [], ["reserved", "framework memory"];
    Memory guide "reserved":
        "What PyTorch's allocator has taken from the device: allocated blocks and those it caches.",
        "What PyTorch's allocator has taken from the device (torch.cuda.max_memory_reserved): allocated blocks, and those it keeps to hand out again. The report's peak_reserved goes on to what nvidia-smi shows: with the driver context and the communicator buffers.",
        "PyTorch documentation, CUDA semantics: memory management",
        [], ["allocated", "fragmentation", "framework memory"];
    Memory page "framework memory":
        "What the device holds beside torch's tensors: the driver context, communicator buffers, blocks the allocator keeps.",
        "What the device holds beside torch's tensors: the driver context with the code of kernels, buffers of NCCL's communicators, blocks that the allocator keeps and does not use, DeepSpeed's flat buffers. Each is a term of its own and can be left out.",
        "c10/cuda/CUDACachingAllocator.cpp; NCCL src/include/device.h",
        ["framework"], ["driver context", "fragmentation", "memory_left_out"];
    Memory guide "driver context":
        "What the CUDA driver takes of a device for a process: kernels' code, stacks, its own tables.",
        "What the CUDA driver takes of a device before a process allocates anything: code of kernels, stacks, its own tables. It depends on accelerator, driver and libraries.",
        "CUDA C++ Programming Guide, context; measured values in the hardware catalog",
        ["CUDA context"], ["framework memory"];
    Memory guide "workspace":
        "Scratch memory of a library's kernel, such as cuBLAS.",
        "Scratch memory that a library's kernels use while they run, such as cuBLAS's. PyTorch keeps one per handle and stream, so that it counts as allocated from the first GEMM on.",
        "cuBLAS documentation, cublasSetWorkspace; aten/src/ATen/cuda/CublasHandlePool.cpp",
        ["cuBLAS workspace"], ["temporaries", "memory_left_out"];
    Memory guide "fragmentation":
        "Free memory in pieces too small for a request.",
        "Free memory in pieces too small for a request, or in blocks of another size class: the allocator then takes more from the device, and reserved grows beyond allocated. Expandable segments reduce it.",
        "PyTorch documentation, CUDA semantics: PYTORCH_CUDA_ALLOC_CONF",
        ["allocator slack"], ["reserved", "fits"];
    Memory page "fits":
        "Whether the peak rank stays within its GPU's memory. Tight: it does, but with so little headroom that fragmentation may cause an out-of-memory error.",
        "Whether the peak rank, at its peak, stays within what the driver shows as total memory. Tight: it does, but with so little headroom, or only once PyTorch's allocator has released the blocks that it caches, that fragmentation, which differs from run to run, may cause an out-of-memory error.",
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
        "What is sharded over the data-parallel ranks instead of replicated. Stage 1: optimizer states; 2: also gradients; 3: also weights, gathered for each layer.",
        "What is sharded over the data-parallel ranks instead of replicated on each. Stage 1 shards optimizer states, stage 2 gradients too, stage 3 weights too, which are then gathered for each layer in the forward and again in the backward pass: half as much traffic again.",
        "Rajbhandari et al. 2020, sections 5 and 7",
        ["ZeRO-2", "ZeRO-3"], ["distributed optimizer", "FSDP", "zero_stage"];
    Memory guide "FSDP":
        "Fully sharded data parallel: weights, gradients and states sharded over data-parallel ranks, as in ZeRO-3.",
        "Fully sharded data parallel, PyTorch's and Megatron's form of ZeRO-3: each unit, mostly a layer, gathers its weights before it computes and frees them after; gradients are reduce-scattered unit by unit.",
        "Zhao et al. 2023 (PyTorch FSDP), section 3",
        ["fully sharded data parallel"], ["ZeRO", "use_torch_fsdp2", "use_megatron_fsdp"];
    Memory guide "bucket":
        "A piece of the gradient buffer that is reduced by one collective, as soon as all its gradients are ready.",
        "A piece of the gradient buffer that is reduced by one collective, as soon as the gradients of all its weights are ready. Several buckets let the reduction of the first overlap with the backward pass of the rest. PyTorch's DDP closes one once it holds 25 MiB (the first at 1 MiB), and fills them in the order in which gradients were ready or, where it looks for unused parameters, in that in which modules register their tensors.",
        "Li et al. 2020 (PyTorch Distributed), section 3.2.3; megatron/core/distributed/param_and_grad_buffer.py",
        ["gradient bucket"], ["gradients", "overlap", "overlap_grad_reduce", "ddp_find_unused_parameters", "ddp_bucket_cap_mb"];
    Memory guide "CPU offload":
        "Optimizer states or activations are held in the host's memory and moved to the device when needed.",
        "Optimizer states or activations are held in the host's memory and moved over PCIe or a faster host link when they are needed: room on the device for time.",
        "Ren et al. 2021 (ZeRO-Offload); megatron/core/optimizer/cpu_offloading",
        ["offloading"], ["optimizer states", "optimizer_cpu_offload"];
}
