//! How a run is split, its batches and schedules.

terms! {
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
        "Each GPU holds an early and a late chunk, so that all hold the same; V-half and V-min hold about half and a third.",
        "Each pipeline rank holds an early and a late chunk of the model, folded like a V, so that all ranks hold the same. V-half keeps about half and V-min about a third of the activations of 1F1B, for more bubble.",
        "Qi et al. 2024 (Pipeline Parallelism with Controllable Memory)",
        ["V-half", "V-min"], ["zero bubble", "in flight", "pipeline_schedule"];
    Schedule guide "DualPipe":
        "Micro-batches enter the pipeline from both ends; each GPU holds two parts of the model.",
        "Micro-batches enter the pipeline from both ends at once, so that forward passes of one direction overlap with backward passes of the other and hide its communication. Each rank holds two parts of the model; DualPipeV folds it so that one copy is enough.",
        "DeepSeek-AI 2024 (DeepSeek-V3), section 3.2.1",
        ["DualPipeV"], ["bubble", "expert parallelism", "pipeline_schedule"];
}
