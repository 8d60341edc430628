//! OpenRLHF: supervised fine-tuning, DPO and PPO with DeepSpeed and vLLM.
//! Options and defaults: `openrlhf/cli/train_sft.py`, `train_dpo.py`, `train_rm.py`, `train_ppo_ray.py`; the engine:
//! `openrlhf/utils/deepspeed/deepspeed.py`.

use super::super::leaves::Leaves;
use super::common::{ask, defaults, lack, lack_yes, lora, model, offloads, own_code, policy, transformers};
use super::openrlhf_names::RELEASE;
use crate::{Asked, Effect, Found, Origin, Question};
use shardscope_plan::Field;

const OPEN: &str = "OpenRLHF";

pub(super) fn read(leaves: &mut Leaves<'_>) {
    let rl =
        leaves.all().iter().any(|leaf| leaf.path.starts_with("actor.") || leaf.path.starts_with("vllm."));
    let preference = leaves.all().iter().any(|leaf| {
        leaf.path.starts_with("data.chosen_key")
            || leaf.path.starts_with("data.rejected_key")
            || leaf.path == "model.beta"
    });
    // Options of train_dpo.py alone; with pairs and none of them it is train_rm.py, unless the program's name says that it is
    // DPO with its default of beta.
    let dpo = leaves.all().iter().any(|leaf| OF_DPO.iter().any(|own| leaf.path.starts_with(own)));
    engine(leaves);
    // Sequences of a micro-batch and tokens of a sequence by default. Pairs without beta may be those of DPO, with 8.
    let own = match () {
        () if rl => (Some("1"), "2048"),
        () if !preference => (Some("8"), "2048"),
        () if dpo => (Some("8"), "512"),
        () => (None, "512"),
    };
    batch(leaves, own);
    if rl {
        machines(leaves);
        rollout(leaves);
        beside(leaves);
        policy(leaves, OPEN);
    }
    if !rl {
        // `utils/deepspeed/deepspeed_utils.py` says "auto", which transformers' Trainer alone fills in and DeepSpeed drops
        // (`deepspeed/runtime/config_utils.py`).
        let why = "OpenRLHF passes \"auto\", which DeepSpeed drops for its default";
        leaves.state(Field::ReduceBucketSize, "500000000", Origin::Default, why);
    }
    if !rl && preference && !dpo {
        rewards(leaves);
    } else if !rl && preference {
        leaves.state(Field::TrainingObjective, "dpo", Origin::Derived, "train_dpo");
        let place = if leaves.flag("ref.offload") == Some(true) { "host" } else { "loaded" };
        if place == "loaded" {
            leaves.state(
                Field::ReferenceModel,
                "loaded",
                Origin::Default,
                "a reference model in addition to the policy",
            );
        } else if let Some(leaf) = leaves.get("ref.offload") {
            lack(leaves, leaf, Effect::Memory, "a reference model on the host");
        }
    }
    // `freeze_prefix`: MM-EUREKA's and LMM-R1's forks.
    let images =
        ["data.image_key", "actor.freeze_visual_encoder", "data.max_images_per_prompt", "freeze_prefix"];
    if let Some(leaf) = leaves.first(&images) {
        lack(leaves, leaf, Effect::Model, "the vision model in addition to the decoder");
    }
    // `openrlhf/cli/train_kd.py`.
    if let Some(leaf) = leaves.get("teacher_model") {
        lack(leaves, leaf, Effect::Memory, "a teacher model (distillation)");
    }
    // With a coefficient of 0 the entropy is only a metric, compiled to read logits that are kept anyway.
    let zero = |value: &str| value.parse::<f64>().is_ok_and(|number| number == 0.0);
    if let Some(leaf) =
        leaves.get("actor.entropy_coef").filter(|leaf| leaf.hole.is_none() && !zero(&leaf.value))
    {
        let what = "an entropy term in the loss, which needs a gradient of its own";
        lack(leaves, leaf, Effect::Memory, what);
    }
    let model_paths = ["actor.model_name_or_path", "model.model_name_or_path"];
    // `openrlhf/models/actor.py`: `from_pretrained(..., trust_remote_code=True)`.
    own_code(leaves, &model_paths, "trust_remote_code", true);
    model(leaves, &model_paths);
    if leaves.reading.value(Field::MaxTokensPerGpu).is_none() {
        ask(leaves, &[(Field::MicroBatchSize, "Micro-batch size?", "1")]);
    }
    leaves.pass_below(&[
        "ckpt.",
        "logger.",
        "eval.",
        "data.",
        "algo.",
        "reward.",
        "critic.",
        "ref.",
        "rollout.",
        "train.seed",
        "train.max_epochs",
        "train.num_episodes",
        "train.full_determinism",
        "actor.adam.",
        "adam.",
        "actor.eps_clip",
        "actor.lr_",
        "lr_",
        "min_lr_ratio",
        "max_norm",
        "actor.max_norm",
        "actor.min_lr",
        "actor.policy_loss",
        "actor.dual_clip",
        "actor.entropy_coef",
        "actor.num_",
        "vllm.sync_",
        "vllm.enable_prefix",
        "train.colocate",
        "train.async_queue",
        "train.agent_func_path",
        "train.partial_rollout",
        "use_ms",
        "local_rank",
        "ds.overlap_comm",
        "ds.use_universal_ckpt",
        "ds.ring_attn_head_stride",
        "model.beta",
        "model.label_smoothing",
        "model.nll_loss",
        "model.ipo",
        "model.aux_loss",
        "model.loss_type",
        "actor.aux_loss",
        "actor.freeze_visual_encoder",
        "train.max_tokens_per_gpu",
        "ds.packing_samples",
        "ds.lora.dropout",
        "model.margin_loss",
        "model.pretrain_mode",
    ]);
}

/// Options that only `train_dpo.py` has.
const OF_DPO: [&str; 5] = ["model.beta", "model.ipo", "model.label_smoothing", "model.nll_loss", "ref."];

/// A reward model: pairs of sequences, and a head with one output (`openrlhf/models/model.py:_get_reward_model`,
/// `openrlhf/trainer/rm_trainer.py:concatenated_forward`).
fn rewards(leaves: &mut Leaves<'_>) {
    leaves.pass("data.chosen_key");
    let Some(leaf) = leaves.first(&["data.chosen_key", "data.rejected_key"]) else { return };
    let packs = leaves.yes("ds.packing_samples").is_some();
    let word = if packs { "packed_rewards" } else { "token_rewards" };
    leaves.say_noted(Field::TrainingObjective, word, leaf, "pairs without beta: train_rm");
    // Its adapters leave the new head frozen, with the values it was made with.
    if let Some(leaf) = leaves.get("ds.lora.rank").filter(|leaf| leaf.whole() != Some(0)) {
        lack(leaves, leaf, Effect::Memory, "adapters beside a reward head that does not train (OpenRLHF)");
    }
    if packs && let Some(leaf) = leaves.get("ds.ring_attn_size").filter(|leaf| leaf.whole() != Some(1)) {
        lack(leaves, leaf, Effect::Memory, "rewards gathered over the ranks of a ring");
    }
}

fn engine(leaves: &mut Leaves<'_>) {
    if leaves.flag("ds.packing_samples") == Some(false) {
        leaves.state(Field::Packing, "false", Origin::Default, "without --packing_samples");
    }
    transformers(leaves, OPEN, "deepspeed");
    leaves.take(&["ds.zero_stage"], Field::ZeroStage);
    leaves.take(
        &["actor.gradient_checkpointing_reentrant", "model.gradient_checkpointing_reentrant"],
        Field::ReentrantCheckpoints,
    );
    leaves.pass("ds.flash_attn");
    if let Some(leaf) = leaves.get("ds.bf16").filter(|leaf| leaf.flag() == Some(false)) {
        lack(leaves, leaf, Effect::Memory, "weights in the checkpoint's own format (no --bf16)");
    }
    match leaves.get("ds.param_dtype") {
        Some(leaf) if leaf.value == "fp16" => leaves.switch(Field::Fp16, true, leaf),
        Some(leaf) => leaves.switch(Field::Bf16, true, leaf),
        None => {}
    }
    // Weights are loaded in 16 bits, without autocast.
    leaves.state(Field::Autocast, "none", Origin::Default, "OpenRLHF loads weights in --ds.param_dtype");
    if leaves.reading.value(Field::Fp16).is_none() {
        defaults(leaves, OPEN, &[(Field::Bf16, "true")]);
    }
    defaults(leaves, OPEN, &[(Field::ZeroStage, "2"), (Field::GradientCheckpointing, "false")]);
    for path in ["actor.gradient_checkpointing_enable", "model.gradient_checkpointing_enable"] {
        if let Some(leaf) = leaves.yes(path) {
            leaves.switch(Field::GradientCheckpointing, true, leaf);
        }
    }
    if let Some(leaf) = leaves.yes("ds.adam_offload") {
        leaves.switch(Field::OffloadOptimizer, true, leaf);
    }
    if let Some(leaf) = leaves.yes("ds.use_liger_kernel") {
        leaves.switch(Field::LigerKernel, true, leaf);
        leaves.state(Field::LossKind, "torch", Origin::Derived, "the loss is OpenRLHF's own");
    }
    attention(leaves);
    // `models/actor.py:Actor.__init__`, `models/model.py:get_llm_for_sequence_regression`, whatever the loss's weight is;
    // `requirements.txt` of 0.11: transformers==5.15.0.
    let why = "OpenRLHF sets output_router_logits of a model with experts";
    leaves.state(Field::RouterLoss, "joined", Origin::Default, why);
    leaves.take(&["ds.experts_implementation"], Field::ExpertsImplementation);
    if let Some(leaf) = leaves.get("ds.ring_attn_size").filter(|leaf| leaf.whole() != Some(1)) {
        leaves.say(Field::ContextParallelSize, &leaf.value, leaf);
        leaves.say(Field::CpCommType, "p2p", leaf);
    }
    if let Some(leaf) = leaves.get("ds.tensor_parallel_size").filter(|leaf| leaf.whole() != Some(1)) {
        lack(leaves, leaf, Effect::Memory, "DeepSpeed's tensor parallelism (AutoTP)");
    }
    if let Some(leaf) = leaves.get("ds.zpg").filter(|leaf| leaf.whole() != Some(1)) {
        leaves.say(Field::SecondWeightShards, &leaf.value, leaf);
    }
    if let Some(leaf) = leaves.yes("ds.load_in_4bit") {
        leaves.say(Field::BaseQuantization, "nf4", leaf);
    }
    lack_yes(
        leaves,
        &[
            ("ds.deepcompile", Effect::Memory, "DeepCompile, which saves and gathers other tensors"),
            ("train.enable_ema", Effect::Memory, "an EMA of the weights"),
        ],
    );
    for path in ["actor.optim", "optim"] {
        leaves.take(&[path], Field::Optimizer);
    }
    lora(leaves, "ds.lora.rank", &[("ds.lora.alpha", Field::LoraAlpha)], "ds.lora.target_modules");
}

fn attention(leaves: &mut Leaves<'_>) {
    let Some(leaf) = leaves.get("ds.attn_implementation") else { return };
    if leaf.value == RELEASE {
        let mut found = Found::new(Field::AttnImplementation, String::new(), Origin::Script);
        found.hole = Some(RELEASE.to_owned());
        leaves.reading.take(found);
        leaves.reading.questions.push(Question {
            asks: Asked::Setting(Field::AttnImplementation),
            prompt: "Which attention? Without --flash_attn OpenRLHF's was eager until August 15, 2025, and is flash attention since"
                .to_owned(),
            choices: ["flash_attention_2", "eager"].map(str::to_owned).to_vec(),
            proposal: Some("flash_attention_2".to_owned()),
        });
        return;
    }

    let word = if leaf.value.contains("flash-attn3") || leaf.value == "flash_attention_3" {
        "flash_attention_3"
    } else if leaf.value.contains("flash-attn4") || leaf.value == "flash_attention_4" {
        "flash_attention_4"
    } else if leaf.value.contains("flash") {
        "flash_attention_2"
    } else {
        &leaf.value
    };
    leaves.say(Field::AttnImplementation, word, leaf);
}

/// Batches count sequences over all ranks; every rank of a ring processes the same ones
/// (`train_batch_size x ring_attn_size`).
fn batch(leaves: &mut Leaves<'_>, (micro, length): (Option<&str>, &str)) {
    leaves.take(&["train.batch_size"], Field::GlobalBatchSize);
    defaults(leaves, OPEN, &[(Field::GlobalBatchSize, "128")]);
    let dynamic = leaves.flag("train.dynamic_batch_enable") == Some(true);
    if dynamic {
        leaves.pass("train.micro_batch_size");
        leaves.take(&["train.max_tokens_per_gpu"], Field::MaxTokensPerGpu);
        defaults(leaves, OPEN, &[(Field::MaxTokensPerGpu, "16192")]);
        if let Some(leaf) = leaves.get("data.max_len") {
            leaves.say(Field::RolloutLength, &leaf.value, leaf);
        }
        defaults(leaves, OPEN, &[(Field::RolloutLength, "2048")]);
    } else {
        leaves.take(&["train.micro_batch_size"], Field::MicroBatchSize);
        leaves.take(&["data.max_len"], Field::SeqLength);
        defaults(leaves, OPEN, &[(Field::SeqLength, length)]);
        if let Some(micro) = micro {
            defaults(leaves, OPEN, &[(Field::MicroBatchSize, micro)]);
        }
    }
}

fn machines(leaves: &mut Leaves<'_>) {
    leaves.take_all(&[("actor.num_nodes", Field::NumNodes), ("actor.num_gpus_per_node", Field::GpusPerNode)]);
    defaults(leaves, OPEN, &[(Field::NumNodes, "1"), (Field::GpusPerNode, "8")]);
}

fn rollout(leaves: &mut Leaves<'_>) {
    leaves.state(Field::RlFramework, "openrlhf", Origin::Derived, "OpenRLHF's options");
    leaves.state(Field::RolloutEngine, "vllm", Origin::Derived, "OpenRLHF generates with vLLM");
    leaves.take_all(&[
        ("vllm.tensor_parallel_size", Field::RolloutTensorParallelSize),
        ("vllm.gpu_memory_utilization", Field::RolloutMemoryFraction),
        ("rollout.n_samples_per_prompt", Field::RolloutsPerPrompt),
        ("rollout.batch_size", Field::RolloutPrompts),
    ]);
    if let Some(leaf) = leaves.yes("vllm.enforce_eager") {
        leaves.switch(Field::RolloutCudaGraphs, false, leaf);
    }
    if let Some(leaf) = leaves.yes("vllm.enable_sleep") {
        leaves.switch(Field::RolloutSleep, true, leaf);
    }
    // `openrlhf/cli/train_ppo_ray.py` of 0.6 and 0.7.
    let since = "default of OpenRLHF since 0.7; 0.9 in 0.6";
    leaves.state(Field::RolloutMemoryFraction, "0.95", Origin::Default, since);
    defaults(
        leaves,
        OPEN,
        &[
            (Field::RolloutTensorParallelSize, "1"),
            (Field::RolloutCudaGraphs, "true"),
            (Field::RolloutSleep, "false"),
        ],
    );
    // None by default; a number that depends on a variable counts as present.
    if leaves.get("vllm.num_engines").is_none_or(|leaf| leaf.hole.is_none() && leaf.whole() == Some(0)) {
        let what = "rollouts by the training model, whose KV cache shares its GPUs";
        let item = crate::NotModelled::new("vllm.num_engines", "0", Effect::Memory, what);
        leaves.reading.not_modelled.push(item);
    }
    let all =
        leaves.flag("train.colocate_all") == Some(true) && leaves.flag("train.async_enable") != Some(true);
    if !all {
        let engines = leaves.whole("vllm.num_engines").unwrap_or(1);
        let each = leaves.whole("vllm.tensor_parallel_size").unwrap_or(1);
        let own = engines.saturating_mul(each).max(1).to_string();
        leaves.state(
            Field::RolloutGpus,
            &own,
            Origin::Derived,
            "vllm.num_engines x vllm.tensor_parallel_size",
        );
    }
    leaves.pass("vllm.num_engines");
    // DeepSpeed's sleep moves optimizer states, fp32 copies and gradients to the host, but not the 16-bit weights.
    let sleeps = leaves.flag("ds.enable_sleep") == Some(true);
    offloads(leaves, [false, sleeps, sleeps], "ds.enable_sleep (offload_deepspeed_states)");
}

fn beside(leaves: &mut Leaves<'_>) {
    let all = leaves.flag("train.colocate_all") == Some(true);
    let with_actor = all || leaves.flag("train.colocate_actor_ref") == Some(true);
    let none =
        leaves.get("algo.kl.init_coef").is_some_and(|leaf| matches!(leaf.value.as_str(), "0" | "0.0" | "0."));
    let (place, note) = match () {
        () if none => ("none", "algo.kl.init_coef is 0"),
        () if leaves.flag("ref.offload") == Some(true) => ("host", "ref.offload"),
        () if with_actor => ("device", "the reference shares the policy's accelerators"),
        () => ("elsewhere", "the reference is on separate accelerators"),
    };
    leaves.state(Field::RlReference, place, Origin::Derived, note);
    // With generalized advantage estimation there is a critic: the one named, otherwise the reward model's weights, or
    // those of the policy if rewards come from elsewhere (`train_ppo_ray.py`, after its arguments).
    let gae = leaves.text("algo.advantage.estimator").is_none_or(|name| name == "gae");
    let named = leaves.get("critic.model_name_or_path");
    let reward = leaves.get("reward.model_name_or_path");
    let remote = leaves.get("reward.remote_url").is_some() || leaves.get("train.agent_func_path").is_some();
    let critic = named.or(reward.filter(|_| !remote));
    let (place, note) = match () {
        () if !gae => ("none", "algo.advantage.estimator has none"),
        () if all => ("device", "the critic shares the policy's accelerators"),
        () => ("elsewhere", "the critic is on separate accelerators"),
    };
    let policy = leaves.text("actor.model_name_or_path");
    if let Some(leaf) = critic.filter(|leaf| gae && all && Some(leaf.value.as_str()) != policy) {
        leaves.say(Field::RlCriticModel, &leaf.value, leaf);
    }
    leaves.state(Field::RlCritic, place, Origin::Derived, note);
    // `openrlhf/trainer/ray/launcher.py:RewardModelActor`: kept in 16 bits as loaded, sharded only under ZeRO-3.
    if let Some(leaf) = reward.filter(|_| all && !remote) {
        leaves.say(Field::RlRewardModel, &leaf.value, leaf);
        let (place, note) = match leaves.flag("reward.offload") == Some(true) {
            true => ("host", "reward.offload"),
            false => ("device", "the reward model shares the policy's accelerators"),
        };
        leaves.state(Field::RlReward, place, Origin::Derived, note);
        if leaves.reading.value(Field::MaxTokensPerGpu).is_none() {
            leaves.take(&["rollout.micro_batch_size"], Field::RlRewardMicroBatch);
            defaults(leaves, OPEN, &[(Field::RlRewardMicroBatch, "1")]);
        }
    }
}
