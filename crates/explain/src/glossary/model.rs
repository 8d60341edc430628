//! The model.

terms! {
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
        "Experts that every token uses, in addition to those the router picks.",
        "Experts that every token uses, in addition to those the router picks. They run on the rank that holds the token, sharded by tensor parallelism, and can overlap with the all-to-alls.",
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
        "Additional layers that predict tokens further ahead, trained jointly with the model.",
        "Additional layers at the end of the model that predict tokens further ahead and are trained jointly, each with its own pass through the output layer.",
        "DeepSeek-AI 2024 (DeepSeek-V3), section 2.2",
        ["MTP"], ["mtp_num_layers"];
    Model guide "bf16":
        "A 16-bit number with the range of fp32 and 8 significant bits; fp16 has 11 and far less range, so it needs loss scaling.",
        "A 16-bit floating-point number with the range of fp32 and 8 significant bits. fp16 has 11 significant bits and far less range, so that losses are scaled up against underflow. fp8 comes as e4m3, with more precision, and e5m2, with more range, and needs scales per tensor or block.",
        "Micikevicius et al. 2018; Kalamkar et al. 2019; Micikevicius et al. 2022 (FP8 Formats for Deep Learning)",
        ["fp16", "fp8", "mixed precision"], ["master weights", "params_dtype", "fp8"];
}
