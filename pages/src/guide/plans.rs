//! Plans from which formulas are shown with numbers: one that everyone knows, then others until every formula has been
//! met.

use std::sync::OnceLock;

use shardscope::catalog;
use shardscope::launch::{Request, Setting, read};
use shardscope::link::{Shared, decode, encode};
use shardscope::plan::Plan;
use shardscope::session::UserInput;
use shardscope::session::examples::{Example, gallery};

use super::trainers::TRAINERS;

/// A plan with what it is called in the guide.
pub(super) struct Named {
    /// Its name.
    pub(super) name: String,
    /// What it runs on, in a line.
    pub(super) about: String,
    /// What a link of the main page carries.
    pub(super) link: String,
    /// The plan.
    pub(super) plan: Plan,
    /// Its settings as resolved.
    pub(super) settings: Vec<Setting>,
}

/// The example of the gallery that is shown all the way, and whose numbers are put in wherever they can be.
const FIRST: &str = "GPT-3 175B";

/// Models of the catalog with settings as a link has them, each for what the gallery's examples do not have.
const OTHERS: &[(&str, &str, &str)] = &[
    (
        "GPT-3 13B with attention not fused",
        "GPT-3-13B",
        "bf16&gbs=64&mbs=2&tp=2&pp=2&nodes=2&seq=2048&sequence_parallel&attention_kernel=unfused&hidden_dropout=0.1&attention_dropout=0.1",
    ),
    (
        "GPT-3 13B in Megatron's legacy models",
        "GPT-3-13B",
        "fp16&gbs=64&mbs=4&tp=2&pp=2&nodes=2&seq=2048&software=megatron_legacy&attention_kernel=unfused&attention_softmax_in_fp32&masked_softmax_fusion=false",
    ),
    (
        "Llama 2 7B with unfused kernels",
        "Llama-2-7B",
        "bf16&gbs=64&mbs=1&tp=2&pp=2&nodes=2&seq=4096&software=megatron_core_local&attention_kernel=unfused&attention_softmax_in_fp32&masked_softmax_fusion=false&bias_swiglu_fusion=false&apply_rope_fusion=false&gradient_accumulation_fusion=false&qk_layernorm",
    ),
    (
        "Llama 3 70B with grouped queries, not fused",
        "Llama-3-70B",
        "bf16&gbs=64&mbs=2&tp=4&pp=4&nodes=4&seq=4096&sequence_parallel&software=megatron_core_local&attention_kernel=unfused&apply_rope_fusion=false&hidden_dropout=0.1&qk_layernorm&memory_efficient_layer_norm",
    ),
    (
        "Llama 3 8B with context parallelism by a ring",
        "Llama-3.1-8B",
        "bf16&gbs=64&mbs=2&tp=2&cp=4&nodes=2&seq=32768&sequence_parallel&cp_comm_type=p2p&use_distributed_optimizer&overlap_grad_reduce&overlap_param_gather&attention_kernel=flash",
    ),
    (
        "Llama 3 8B with context parallelism by exchange",
        "Llama-3.1-8B",
        "bf16&gbs=64&mbs=2&tp=2&cp=4&nodes=2&seq=32768&cp_comm_type=a2a&attention_kernel=flash",
    ),
    (
        "Llama 3 8B with both",
        "Llama-3.1-8B",
        "bf16&gbs=64&mbs=1&cp=8&nodes=2&seq=32768&cp_comm_type=a2a%2Bp2p&hierarchical_context_parallel_sizes=2%204",
    ),
    (
        "DeepSeek-V3 with context parallelism by a ring",
        "DeepSeek-V3",
        "bf16&gbs=1024&mbs=1&tp=2&cp=2&ep=32&etp=1&pp=8&nodes=64&seq=8192&sequence_parallel&moe_token_dispatcher_type=alltoall&moe_grouped_gemm&moe_permute_fusion&cp_comm_type=p2p&decoder_first_pipeline_num_layers=5",
    ),
    (
        "DeepSeek-V2 Lite, tokens gathered",
        "DeepSeek-V2-Lite",
        "bf16&gbs=256&mbs=1&ep=4&tp=2&pp=1&nodes=4&seq=4096&sequence_parallel&moe_token_dispatcher_type=allgather&apply_rope_fusion=false&attention_kernel=unfused&bias_swiglu_fusion=false&recompute_granularity=selective&recompute_modules=core_attn%20moe_act",
    ),
    (
        "DeepSeek-V2 Lite, tokens exchanged",
        "DeepSeek-V2-Lite",
        "bf16&gbs=256&mbs=1&ep=4&etp=2&tp=2&pp=1&nodes=4&seq=4096&sequence_parallel&moe_token_dispatcher_type=alltoall&recompute_granularity=selective&recompute_modules=mla_up_proj%20layernorm%20shared_experts&moe_router_enable_expert_bias&moe_aux_loss_coeff=0.01&moe_router_load_balancing_type=aux_loss&moe_shared_expert_gate&attention_kernel=flash",
    ),
    (
        "DeepSeek-V2 Lite by DeepEP",
        "DeepSeek-V2-Lite",
        "bf16&gbs=256&mbs=2&ep=8&tp=1&pp=1&nodes=4&seq=4096&moe_token_dispatcher_type=flex&moe_enable_deepep&recompute_granularity=selective&recompute_modules=moe%20mlp&attention_kernel=flash&hidden_dropout=0.1",
    ),
    (
        "Mixtral 8x7B with capacity",
        "Mixtral-8x7B",
        "bf16&gbs=256&mbs=1&ep=4&tp=2&etp=2&nodes=4&seq=4096&sequence_parallel&moe_token_dispatcher_type=alltoall&moe_expert_capacity_factor=1.25&moe_pad_expert_input_to_capacity&moe_router_pre_softmax&moe_aux_loss_coeff=0.01",
    ),
    (
        "Mixtral 8x7B with capacity and fused permutation",
        "Mixtral-8x7B",
        "bf16&gbs=256&mbs=1&ep=4&tp=1&nodes=4&seq=4096&moe_token_dispatcher_type=alltoall&moe_expert_capacity_factor=1.25&moe_permute_fusion&recompute_granularity=full&recompute_method=uniform&recompute_num_layers=1&distribute_saved_activations=false",
    ),
    (
        "GPT-3 13B recomputed, inputs spread",
        "GPT-3-13B",
        "bf16&gbs=64&mbs=2&tp=4&pp=2&nodes=2&seq=2048&recompute_granularity=full&recompute_method=uniform&recompute_num_layers=2&distribute_saved_activations&hidden_dropout=0.1&use_distributed_optimizer&zero_stage=2",
    ),
    (
        "Llama 3 8B recomputed in blocks",
        "Llama-3-8B",
        "bf16&gbs=64&mbs=1&tp=2&pp=2&nodes=2&seq=8192&recompute_granularity=full&recompute_method=block&recompute_num_layers=8&apply_rope_fusion=false",
    ),
    (
        "Llama 3 8B in torchtitan",
        "Llama-3-8B",
        "bf16&gbs=64&mbs=1&tp=2&nodes=2&seq=8192&software=torchtitan&zero_stage=3&sequence_parallel&recompute_granularity=selective",
    ),
    (
        "DeepSeek-V3 with tensor parallelism, fully recomputed",
        "DeepSeek-V3",
        "bf16&gbs=1024&mbs=1&tp=2&ep=32&etp=1&pp=8&nodes=64&seq=4096&sequence_parallel&moe_token_dispatcher_type=alltoall&moe_grouped_gemm&mtp_num_layers=1&decoder_first_pipeline_num_layers=5&recompute_granularity=full&recompute_method=uniform&recompute_num_layers=1",
    ),
    (
        "Mixtral 8x7B in Megatron's own layers",
        "Mixtral-8x7B",
        "bf16&gbs=256&mbs=1&ep=4&tp=1&nodes=4&seq=4096&software=megatron_core_local&moe_token_dispatcher_type=alltoall&gradient_accumulation_fusion=false",
    ),
    (
        "Llama 2 7B with half of the states on the host",
        "Llama-2-7B",
        "bf16&gbs=64&mbs=1&nodes=2&seq=4096&use_distributed_optimizer&optimizer_cpu_offload&optimizer_offload_fraction=0.5&use_precision_aware_optimizer",
    ),
    (
        "Llama 2 7B with weights in fp8",
        "Llama-2-7B",
        "bf16&fp8=hybrid&fp8_param_gather&gbs=64&mbs=1&nodes=2&seq=4096&use_distributed_optimizer",
    ),
    (
        "Llama 2 7B with two instances of the optimizer",
        "Llama-2-7B",
        "bf16&gbs=64&mbs=1&nodes=2&seq=4096&use_distributed_optimizer&num_distributed_optimizer_instances=2&overlap_grad_reduce&overlap_param_gather",
    ),
    (
        "a GPT of which only the sizes are stated",
        "",
        "layers=24&hidden=2048&heads=16&seq=2048&max_position_embeddings=2048&mbs=1&gbs=64&nodes=2",
    ),
    (
        "an MoE of which only the sizes are stated",
        "",
        "layers=24&hidden=2048&heads=16&seq=2048&max_position_embeddings=2048&mbs=1&gbs=64&nodes=2&num_experts=8&ep=2&cp=2&bf16&swiglu",
    ),
    (
        "a GPT with latent attention of which only the sizes are stated",
        "",
        "layers=24&hidden=2048&heads=16&seq=2048&max_position_embeddings=2048&mbs=1&gbs=64&nodes=2&multi_latent_attention&bf16&fp8=hybrid",
    ),
    (
        "a GPT by SGD",
        "",
        "layers=24&hidden=2048&heads=16&seq=2048&max_position_embeddings=2048&mbs=1&gbs=64&nodes=2&optimizer=sgd",
    ),
    (
        "a GPT in Megatron's FSDP",
        "",
        "layers=24&hidden=2048&heads=16&seq=2048&max_position_embeddings=2048&mbs=1&gbs=64&nodes=2&bf16&use_megatron_fsdp&use_distributed_optimizer&optimizer_cpu_offload&use_precision_aware_optimizer",
    ),
    (
        "Llama 3 8B in nanotron",
        "Llama-3-8B",
        "bf16&gbs=64&mbs=1&tp=2&nodes=2&seq=8192&software=nanotron&zero_stage=1",
    ),
    (
        "Llama 2 7B, whose heads have keys of their own, in nanotron",
        "Llama-2-7B",
        "bf16&gbs=64&mbs=1&tp=2&nodes=2&seq=4096&software=nanotron&zero_stage=1",
    ),
    (
        "Llama 3 8B in PyTorch's FSDP",
        "Llama-3-8B",
        "bf16&gbs=64&mbs=1&nodes=2&seq=8192&software=torch_fsdp&zero_stage=3&use_torch_fsdp2&gradient_accumulation_fusion=false",
    ),
    (
        "Llama 3 8B in Megatron's FSDP",
        "Llama-3-8B",
        "bf16&gbs=64&mbs=1&nodes=2&seq=8192&use_megatron_fsdp&use_distributed_optimizer&data_parallel_sharding_strategy=optim_grads_params",
    ),
    (
        "GPT-NeoX 20B under DeepSpeed",
        "GPT-NeoX-20B",
        "fp16&gbs=256&mbs=4&tp=2&pp=2&nodes=4&seq=2048&software=gpt_neox&zero_stage=1&attention_kernel=unfused",
    ),
    (
        "BLOOM's 13B under DeepSpeed in bf16",
        "GPT-3-13B",
        "bf16&gbs=256&mbs=2&tp=2&pp=2&nodes=4&seq=2048&software=megatron_deepspeed&zero_stage=1&attention_kernel=unfused",
    ),
    (
        "GPT-3 6.7B under DeepSpeed's ZeRO 2",
        "GPT-3-6.7B",
        "fp16&gbs=256&mbs=2&nodes=2&seq=2048&software=megatron_deepspeed&zero_stage=2",
    ),
    (
        "Llama 2 7B with Muon",
        "Llama-2-7B",
        "bf16&gbs=64&mbs=1&tp=2&nodes=2&seq=4096&optimizer=muon&cross_entropy_loss_fusion",
    ),
    (
        "Llama 2 7B with narrow states",
        "Llama-2-7B",
        "bf16&gbs=64&mbs=1&tp=2&nodes=2&seq=4096&use_precision_aware_optimizer&use_distributed_optimizer&exp_avg_dtype=bf16&exp_avg_sq_dtype=bf16&main_grads_dtype=bf16&grad_reduce_in_bf16&cross_entropy_loss_fusion&cross_entropy_fusion_impl=te&optimizer_cpu_offload",
    ),
    (
        "GPT-3 13B with a deferred output gradient",
        "GPT-3-13B",
        "bf16&gbs=64&mbs=1&tp=2&pp=4&nodes=2&seq=2048&sequence_parallel&untie_embeddings_and_output_weights&defer_embedding_wgrad_compute&wgrad_deferral_limit=4&gradient_accumulation_fusion",
    ),
    (
        "Llama 2 7B by a zero-bubble schedule",
        "Llama-2-7B",
        "bf16&gbs=64&mbs=1&tp=2&pp=4&nodes=2&seq=4096&pipeline_schedule=zb-h1&hidden_dropout=0.1",
    ),
    (
        "Llama 2 7B with SGD",
        "Llama-2-7B",
        "fp16&gbs=64&mbs=1&tp=2&nodes=2&seq=4096&optimizer=sgd&sgd_momentum=0.9&tp_comm_overlap&sequence_parallel",
    ),
    (
        "DeepSeek-V3 with latents in fp8",
        "DeepSeek-V3",
        "bf16&fp8=hybrid&gbs=1024&mbs=1&tp=1&ep=64&pp=8&nodes=64&seq=4096&moe_latent_size=2048&moe_token_dispatcher_type=flex&moe_grouped_gemm&moe_permute_fusion&mtp_num_layers=1&apply_rope_fusion=false&decoder_first_pipeline_num_layers=5",
    ),
];

/// All of them: the gallery's known models and one of each scaling table, then the others.
pub(super) fn plans() -> &'static [Named] {
    static PLANS: OnceLock<Vec<Named>> = OnceLock::new();
    PLANS.get_or_init(|| {
        let mut all = Vec::new();
        for (place, chapter) in gallery().into_iter().enumerate() {
            let most = if place == 0 { usize::MAX } else { 1 };
            all.extend(chapter.examples.iter().take(most).filter_map(of_example));
        }
        for (name, model, link) in OTHERS.iter().chain(TRAINERS) {
            all.extend(of_link(name, model, link));
        }
        if let Some(first) = all.iter().position(|named| named.name == FIRST) {
            let first = all.remove(first);
            all.insert(0, first);
        }
        all
    })
}

/// The names of [`OTHERS`] and [`TRAINERS`] that are no plan, with what the engine says.
#[cfg(test)]
pub(super) fn refused() -> Vec<String> {
    let said = |name: &str, input: &UserInput| {
        let source = input.source();
        let resolution = read(&Request {
            source: &source,
            environment: &input.shell_environment(),
            overrides: &input.settings,
        });
        resolution.plan.is_none().then(|| format!("{name}: {:?}", resolution.diagnostics))
    };
    OTHERS.iter().chain(TRAINERS).filter_map(|(name, model, link)| said(name, &input(model, link))).collect()
}

fn of_example(example: &Example) -> Option<Named> {
    named(&example.name, &example.about, &example.input)
}

fn of_link(name: &str, model: &str, link: &str) -> Option<Named> {
    named(name, "", &input(model, link))
}

fn named(name: &str, about: &str, input: &UserInput) -> Option<Named> {
    let source = input.source();
    let resolution = read(&Request {
        source: &source,
        environment: &input.shell_environment(),
        overrides: &input.settings,
    });
    let link = encode(&Shared::Settings(input.settings.clone()));
    let (name, about) = (name.to_owned(), about.to_owned());
    Some(Named { name, about, link, plan: resolution.plan?, settings: resolution.settings })
}

fn input(model: &str, link: &str) -> UserInput {
    let mut settings: Vec<(String, String)> = Vec::new();
    let more = match decode(&format!("/1?accelerator=H100-SXM&gpus_per_node=8&{link}")) {
        Ok(Some(Shared::Settings(more))) => more,
        _ => Vec::new(),
    };
    if let Some((_, known)) = catalog::model(model) {
        for (field, value) in known {
            if more.iter().all(|(name, _)| name != field.name()) {
                settings.push((field.name().to_owned(), value));
            }
        }
    }
    settings.extend(more);
    UserInput::of_settings(settings)
}

#[cfg(test)]
mod tests {
    use super::refused;

    #[test]
    fn every_plan_is_one() {
        assert_eq!(refused(), Vec::<String>::new());
    }
}
