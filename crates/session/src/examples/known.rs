//! Models that everyone asks about, on the machines that they were trained on.

use super::example::{Chapter, Example, Measure, Published, settings};
use crate::UserInput;

struct Known {
    name: &'static str,
    about: &'static str,
    published: Option<Published>,
    /// Its catalog name; empty if the link states everything.
    model: &'static str,
    link: &'static str,
}

// Every row is one public figure; where the source leaves a setting open, the comment beside its link says where it
// was taken from.
const KNOWN: [Known; 9] = [
    Known {
        name: "Llama 3 405B",
        about: "16,384 H100s, TP 8, PP 16, DP 128, sequences of 8,192",
        published: Some(Published {
            beside: ", MFU 41%; in 80 GB by freeing tensors that Megatron-LM keeps",
            ..Published::new(Measure::CausalRate, "400")
        }),
        model: "Llama-3.1-405B",
        // Section 3.3.2: the first and the last stage hold one layer less; replicas shard optimizer states and
        // gradients; the trainer, Meta's own, frees the inputs and outputs of stages as soon as nothing needs them.
        // All 16 micro-batches of a virtual stage follow each other, so that PyTorch's FSDP reduces its gradients
        // once per step (`defer_reduction`), and only one virtual stage has them unsharded.
        link: "/1?accelerator=H100-SXM&account_for_embedding_in_pipeline_split&account_for_loss_in_pipeline_split\
               &bf16&data_parallel_sharding_strategy=optim_grads&defer_reduction&gbs=2048&gpus_per_node=8&mbs=1&nodes=2048\
               &num_layers_per_virtual_pipeline_stage=1&overlap_grad_reduce&overlap_param_gather&pp=16&seq=8192&sequence_parallel&tp=8&use_distributed_optimizer&use_megatron_fsdp",
    },
    Known {
        name: "Llama 3 405B, long context",
        about: "16,384 H100s, TP 8, CP 16, PP 16, sequences of 131,072",
        published: Some(Published { beside: ", MFU 38%", ..Published::new(Measure::CausalRate, "380") }),
        model: "Llama-3.1-405B",
        link: "/1?accelerator=H100-SXM&account_for_embedding_in_pipeline_split&account_for_loss_in_pipeline_split\
               &bf16&cp=16&cp_comm_type=all_gather&data_parallel_sharding_strategy=optim_grads&defer_reduction&gbs=128&gpus_per_node=8\
               &mbs=1&nodes=2048\
               &num_layers_per_virtual_pipeline_stage=1&overlap_grad_reduce&overlap_param_gather&pp=16&seq=131072\
               &sequence_parallel&tp=8&use_distributed_optimizer&use_megatron_fsdp",
    },
    Known {
        name: "DeepSeek-V3",
        about: "2,048 H800s, PP 16, EP 64, fp8, one step of multi-token prediction",
        published: Some(Published {
            reason: "DualPipe leaves a smaller bubble than 1F1B, and tokens were dispatched in fp8, half of the bytes that \
                     Megatron-LM's dispatchers send",
            ..Published::new(Measure::Tokens, "1,543")
        }),
        model: "DeepSeek-V3",
        // Sections 2.1.2 (8 groups of experts, a token takes those of 4), 3.2.1 and 3.2.2 (exchanges hidden, once a node).
        link: "/1?accelerator=H800-SXM&bf16&ep=64&etp=1&fp8=e4m3&fp8_recipe=blockwise&gbs=15360&gpus_per_node=8&mbs=1\
               &moe_grouped_gemm&moe_permute_fusion&moe_router_dtype=fp32&moe_router_group_topk=4\
               &moe_router_num_groups=8&moe_token_dispatcher_type=flex&mtp_num_layers=1&nodes=256\
               &overlap_grad_reduce&overlap_moe_expert_parallel_comm&overlap_param_gather\
               &pipeline_model_parallel_layout=Et*4|(tttt|)*14tmL&pp=16&recompute_granularity=selective\
               &recompute_modules=mla_up_proj,layernorm&seq=4096&use_distributed_optimizer",
    },
    Known {
        name: "BLOOM 176B",
        about: "384 A100s, TP 4, PP 12, DP 8, ZeRO 1, full activation recomputation",
        published: Some(Published {
            beside: ", 150 TFLOP/s per GPU",
            ..Published::new(Measure::Step, "104.7")
        }),
        model: "",
        // Embedding and loss count as a layer each: 72 over 12 stages.
        link: "/1?account_for_embedding_in_pipeline_split&account_for_loss_in_pipeline_split\
               &bf16&gbs=2048&gpus_per_node=8&heads=112&hidden=14336&layers=70&mbs=2&nodes=48&padded_vocab_size=250880\
               &platform=Jean%20Zay%20A100%20(BLOOM)&position_embedding_type=alibi&pp=12&recompute_granularity=full&recompute_method=uniform\
               &recompute_num_layers=1&seq=2048&software=megatron_deepspeed&tp=4&zero_stage=1",
    },
    Known {
        name: "GPT-3 175B",
        about: "1,024 A100s, TP 8, PP 8, sequence parallel",
        published: None,
        model: "GPT-3-175B",
        link: "/1?accelerator=A100-SXM-80GB&bf16&gbs=1536&gpus_per_node=8&mbs=1&nodes=128&pp=8\
               &recompute_granularity=selective&seq=2048&sequence_parallel&tp=8&use_distributed_optimizer",
    },
    Known {
        name: "Llama 2 70B",
        about: "64 H100s, TP 4, PP 4, VPP 20, fp8",
        published: Some(Published::new(Measure::Rate, "768")),
        model: "Llama-2-70B",
        link: "/1?accelerator=H100-SXM&bf16&fp8=hybrid&gbs=128&gpus_per_node=8&mbs=1&nodes=8\
               &num_layers_per_virtual_pipeline_stage=1&overlap_grad_reduce&overlap_param_gather&pp=4&seq=4096\
               &sequence_parallel&tp=4&tp_comm_overlap&use_distributed_optimizer",
    },
    Known {
        name: "Mixtral 8x7B",
        about: "64 H100s, PP 4, EP 8, as Megatron-LM's example launches it",
        published: None,
        model: "Mixtral-8x7B",
        link: "/1?accelerator=H100-SXM&bf16&ep=8&gbs=256&gpus_per_node=8&mbs=1&moe_grouped_gemm\
               &moe_token_dispatcher_type=alltoall&nodes=8&overlap_grad_reduce&overlap_param_gather&pp=4&seq=4096\
               &use_distributed_optimizer",
    },
    Known {
        name: "Qwen3 30B-A3B",
        about: "16 H100s, EP 16, 128 experts, top-8",
        published: Some(Published::new(Measure::Step, "21.0")),
        model: "Qwen3-30B-A3B",
        // DeepEP, exchanges overlapped, the router's graphs captured (skills/nemo-mbridge-perf-expert-parallel-overlap).
        link: "/1?accelerator=H100-SXM&bf16&cuda_graph_impl=transformer_engine\
               &cuda_graph_modules=moe_router,moe_preprocess&ep=16&gbs=1024&gpus_per_node=8&mbs=1&moe_grouped_gemm\
               &moe_permute_fusion&moe_router_dtype=fp32&moe_token_dispatcher_type=flex&nodes=2\
               &overlap_grad_reduce&overlap_moe_expert_parallel_comm&overlap_param_gather&seq=4096\
               &use_distributed_optimizer",
    },
    Known {
        name: "Llama 3 8B",
        about: "one node of 8 H100s, TP 2, sequence parallel, sequences of 8,192",
        published: None,
        model: "Llama-3-8B",
        // Pure data parallelism runs out of memory.
        link: "/1?accelerator=H100-SXM&bf16&gbs=128&gpus_per_node=8&mbs=1&nodes=1&overlap_grad_reduce\
               &overlap_param_gather&seq=8192&sequence_parallel&tp=2&use_distributed_optimizer",
    },
];

pub(super) fn chapter() -> Chapter {
    let example = |known: &Known| Example {
        name: known.name.to_owned(),
        about: known.about.to_owned(),
        published: known.published,
        // Settings, not a script: these runs were published as tables, and no launch script of theirs exists.
        input: UserInput::of_settings(settings(known.model, known.link)),
    };
    Chapter {
        title: "Popular models",
        source: "Llama 3: arXiv 2407.21783, table 4; rates with half of attention, as Meta counts 405B elsewhere (arXiv \
                 2411.01783, appendix A). DeepSeek-V3: arXiv 2412.19437, tokens over GPU-hours, stages as Megatron-Bridge \
                 cuts them and 1F1B in the place of DualPipe. BLOOM: bigscience's log. Llama 2: NeMo 24.07. Mixtral: \
                 Megatron-LM's example. Qwen3: Megatron-Bridge. The others follow common practice.",
        examples: KNOWN.iter().map(example).collect(),
    }
}
