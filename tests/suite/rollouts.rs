//! Memory of reinforcement learning compared with figures computed by hand from the engines' own rules.

use shardscope::estimate::{PhaseKind, RlMemory, Verdict, cached_token, device_peak, memory, parameters};
use shardscope::launch::resolve;
use shardscope::plan::{Plan, Resolution};
use shardscope::search::{Space, Walk, WhyNot, exhaust, why_not};
use shardscope::source::Code;
use shardscope::units::Bytes;

/// Llama-like: width 1024, 16 heads of 64, 4 key/value heads, MLP 2816, 8 layers.
const LAYERS: u64 = 8;
pub(super) const WIDTH: u64 = 1024;
pub(super) const VOCABULARY: u64 = 32_000;
/// Parameters of the linear layers of one layer: queries and output, keys and values of 4 heads of 64, three in the
/// MLP.
pub(super) const LINEAR: u64 = 2 * WIDTH * WIDTH + 2 * WIDTH * 256 + 3 * WIDTH * 2816;

fn settings(set: &[(&str, &str)]) -> Resolution {
    let common = [
        ("software", "hf_transformers"),
        ("accelerator", "A100-SXM-80GB"),
        ("num_nodes", "1"),
        ("gpus_per_node", "8"),
        ("num_layers", "8"),
        ("hidden_size", "1024"),
        ("ffn_hidden_size", "2816"),
        ("num_attention_heads", "16"),
        ("group_query_attention", "true"),
        ("num_query_groups", "4"),
        ("swiglu", "true"),
        ("untie_embeddings_and_output_weights", "true"),
        ("vocab_size", "32000"),
        ("seq_length", "2048"),
        ("micro_batch_size", "2"),
        ("num_micro_batches", "4"),
        ("params_dtype", "fp32"),
        ("autocast", "bf16"),
        ("attn_implementation", "flash_attention_2"),
        ("data_parallel_engine", "fsdp1"),
        ("zero_stage", "3"),
        ("training_objective", "policy"),
        ("rl_framework", "verl"),
        ("rollout_memory_fraction", "0.5"),
        ("rollout_tensor_parallel_size", "2"),
        ("rollout_sleep", "true"),
        ("rollout_length", "2048"),
    ];
    let settings: Vec<_> =
        common.iter().chain(set).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    resolve(&[], &settings)
}

pub(super) fn plan(set: &[(&str, &str)]) -> Plan {
    let resolution = settings(set);
    resolution.plan.unwrap_or_else(|| panic!("no plan: {:?}", resolution.diagnostics))
}

pub(super) fn rl(plan: &Plan) -> RlMemory {
    memory(plan).rl.expect("phases")
}

pub(super) fn part(rl: &RlMemory, kind: PhaseKind, label: &str) -> Option<Bytes> {
    let phase = rl.phases.iter().find(|phase| phase.kind == kind).expect("the phase");
    phase.breakdown.child(label).map(shardscope::explain::Breakdown::value)
}

#[test]
fn an_engine_holds_its_tensor_ranks_weights_and_its_share_of_the_memory() {
    let plan = plan(&[]);
    let rl = rl(&plan);
    // Half of the linear layers and of both vocabularies, and every norm.
    let norms = (2 * LAYERS + 1) * WIDTH;
    let own = LAYERS * LINEAR / 2 + 2 * VOCABULARY * WIDTH / 2 + norms;
    assert_eq!(rl.engine.weights, Bytes::new(2 * own));
    // vLLM: half of the device minus the weights is cache and activations.
    let capacity = plan.cluster().accelerator.memory;
    assert_eq!(rl.engine.kv_cache, Bytes::new(capacity.get() / 2 - 2 * own));
    // Keys and values of two heads of 64 in 16 bits, for 8 layers.
    assert_eq!(cached_token(plan.model(), 2), Bytes::new(2 * 2 * 64 * 2 * LAYERS));
    // vLLM's blocks hold 16 tokens each.
    assert_eq!(rl.engine.cache_tokens, rl.engine.kv_cache.get() / (16 * 2 * 2 * 64 * 2 * LAYERS) * 16);
    assert_eq!(rl.cache_rollouts, rl.engine.cache_tokens / 2048);
    // More ranks than key/value heads: each holds one head.
    assert_eq!(cached_token(plan.model(), 16), Bytes::new(2 * 64 * 2 * LAYERS));
}

#[test]
fn phases_on_shared_accelerators_hold_what_the_others_leave() {
    let kept = plan(&[("offload_between_phases", "gradients")]);
    let memory = memory(&kept);
    let rl = memory.rl.as_ref().expect("phases");
    assert!(rl.co_located);
    let kinds: Vec<PhaseKind> = rl.phases.iter().map(|phase| phase.kind).collect();
    assert_eq!(kinds, [PhaseKind::Training, PhaseKind::WeightUpdate, PhaseKind::Rollout]);
    let totals = memory.ranks[0].totals;
    // fp32 weights and two moments for an eighth of the model remain.
    let shard = parameters(&kept).total.get() / 8;
    let left = part(rl, PhaseKind::Rollout, "trainer state left on the GPU").expect("what is left");
    assert_eq!(left, totals.between_steps.less(totals.gradients));
    assert!(left >= Bytes::new(12 * shard) && left < Bytes::new(12 * shard + (64 << 20)), "{left:?}");
    // The sleeping engine keeps graphs and context: its weights are not in the training phase.
    assert_eq!(part(rl, PhaseKind::Training, "engine weights"), None);
    assert_eq!(part(rl, PhaseKind::Training, "engine CUDA graphs"), Some(Bytes::mib(2) * 256));
    // The largest tensor of the update: the embedding in fp32.
    let tensor = part(rl, PhaseKind::WeightUpdate, "largest gathered tensor");
    assert_eq!(tensor, Some(Bytes::new(4 * VOCABULARY * WIDTH)));
    for phase in &rl.phases {
        let sum: Bytes = phase.breakdown.children().iter().map(shardscope::explain::Breakdown::value).sum();
        assert_eq!(sum, phase.breakdown.value());
    }

    // If offloaded to the host, weights and moments are absent from the rollout phase.
    let moved = self::rl(&plan(&[("offload_between_phases", "weights gradients optimizer")]));
    let left = part(&moved, PhaseKind::Rollout, "trainer state left on the GPU").expect("what is left");
    assert!(left < Bytes::mib(64), "{left:?}");
    // An engine that never sleeps is in the training phase too.
    let awake = self::rl(&plan(&[("rollout_sleep", "false")]));
    assert!(part(&awake, PhaseKind::Training, "engine weights").is_some());
}

#[test]
fn rollouts_elsewhere_are_never_summed_with_training() {
    let apart = plan(&[("rollout_gpus", "8")]);
    let memory = memory(&apart);
    let rl = memory.rl.as_ref().expect("phases");
    assert!(!rl.co_located);
    let kinds: Vec<PhaseKind> = rl.phases.iter().map(|phase| phase.kind).collect();
    assert_eq!(kinds, [PhaseKind::Training, PhaseKind::Rollout]);
    assert_eq!(rl.phases[0].breakdown.value(), memory.ranks[0].totals.peak_reserved);
    assert_eq!(part(rl, PhaseKind::Rollout, "trainer state left on the GPU"), None);
}

#[test]
fn the_phase_that_runs_out_is_named_and_decides_the_verdict() {
    let full = plan(&[("rollout_memory_fraction", "0.98")]);
    let memory = memory(&full);
    let rl = memory.rl.as_ref().expect("phases");
    let failing: Vec<&str> = rl.failing().map(|phase| phase.kind.name()).collect();
    assert_eq!(failing, ["rollout"]);
    assert!(!memory.fits && memory.verdict.name() == "out_of_memory");
    let text = shardscope::report::text::text(&full, &shardscope::advice::advised(&full).expect("a report"));
    assert!(text.contains("out of memory in rollout"), "{text}");
    // A share that is filled by the weights leaves no cache: the engine does not start.
    let starved = self::rl(&plan(&[("rollout_memory_fraction", "0.001")]));
    assert_eq!((starved.cache_rollouts, starved.verdict().name()), (0, "out_of_memory"));
}

#[test]
fn models_beside_the_policy_stay_where_they_are_said_to_be() {
    let beside = rl(&plan(&[("rl_reference", "device"), ("rl_critic", "device")]));
    let alone = rl(&plan(&[]));
    let memory = memory(&plan(&[]));
    let totals = memory.ranks[0].totals;
    let value = |rl: &RlMemory, kind: PhaseKind| {
        rl.phases.iter().find(|phase| phase.kind == kind).map(|phase| phase.breakdown.value())
    };
    // `verl/workers/critic/dp_critic.py:update_critic` ends in `zero_grad`.
    let critic = totals.parameters + totals.optimizer;
    for kind in [PhaseKind::Training, PhaseKind::WeightUpdate, PhaseKind::Rollout] {
        let more = value(&alone, kind).expect("a phase") + totals.parameters + critic;
        assert_eq!(value(&beside, kind), Some(more));
    }
    let hosted = rl(&plan(&[("rl_reference", "host"), ("rl_critic", "elsewhere")]));
    assert_eq!(value(&hosted, PhaseKind::Training), value(&alone, PhaseKind::Training));
    assert_eq!(value(&hosted, PhaseKind::Critic), None);
}

/// In its own phase a critic needs the same as this model would with one value instead of the output layer, plus the
/// policy's states: with its own micro-batch, and with kept layers where the policy's are recomputed.
#[test]
fn a_critic_takes_its_own_micro_batch_and_keeps_its_own_layers() {
    let policy = [("gradient_checkpointing", "true"), ("rl_critic", "host")];
    let critic = |more: &[(&str, &str)]| {
        let rl = rl(&plan(&[&policy, more].concat()));
        part(&rl, PhaseKind::Critic, "training peak of the critic").expect("a critic")
    };
    let alone = |more: &[(&str, &str)]| {
        let set = [("training_objective", "classify"), ("num_labels", "1"), ("rl_framework", "")];
        let plan = plan(&[&set, more].concat());
        assert!(plan.recipe().rollout.is_none());
        memory(&plan).ranks[0].totals.peak_reserved
    };
    let again = ("gradient_checkpointing", "true");
    assert_eq!(critic(&[]), alone(&[again]));
    assert_eq!(critic(&[("rl_critic_recompute", "false")]), alone(&[]));
    let larger = [("micro_batch_size", "4"), ("num_micro_batches", "2"), again];
    assert_eq!(critic(&[("rl_critic_micro_batch", "4")]), alone(&larger));
    assert!(alone(&larger) > alone(&[again]));
    // The policy's remaining state is held with the critic; a critic on the host holds nothing while the policy trains.
    let whole = rl(&plan(&policy));
    assert!(part(&whole, PhaseKind::Critic, "trainer state left on the GPU").is_some());
    assert_eq!(part(&whole, PhaseKind::Training, "critic"), None);
}

/// Models with a different shape need the same as on their own, sharded like the policy: a critic with its states, a
/// reward model in 16 bits with one output, whose weights are gathered from the host or stay.
#[test]
fn models_of_another_shape_take_what_they_take_alone() {
    let own = ("rl_critic_model", "Qwen/Qwen2.5-0.5B");
    let alone = |more: &[(&str, &str)]| {
        let of_policy =
            ["num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups"];
        let cleared = of_policy.into_iter().chain([
            "vocab_size",
            "untie_embeddings_and_output_weights",
            "rl_framework",
        ]);
        let mut set: Vec<(&str, &str)> = cleared.map(|name| (name, "")).collect();
        set.extend([("model", own.1), ("training_objective", "classify"), ("num_labels", "1")]);
        let plan = plan(&[set.as_slice(), more].concat());
        assert_eq!(plan.model().num_layers, 24);
        memory(&plan).ranks[0].totals
    };
    let beside = rl(&plan(&[("rl_critic", "device"), own]));
    let (totals, others) = (alone(&[]), [("rl_critic", "device"), own, ("rl_framework", "nemo_rl")]);
    let held = |rl: &RlMemory| part(rl, PhaseKind::Training, "critic").expect("a critic");
    assert_eq!(held(&beside), totals.parameters + totals.optimizer);
    assert_eq!(held(&rl(&plan(&others))), totals.parameters + totals.optimizer + totals.gradients);
    assert_eq!(part(&beside, PhaseKind::Critic, "training peak of the critic"), Some(totals.peak_reserved));
    let sdpa = ("attn_implementation", "sdpa");
    let padded = rl(&plan(&[("rl_critic", "host"), own, ("rl_critic_padding", "true"), sdpa]));
    let masked = alone(&[("padding_mask", "true"), sdpa]).peak_reserved;
    assert_eq!(part(&padded, PhaseKind::Critic, "training peak of the critic"), Some(masked));
    assert!(masked > alone(&[sdpa]).peak_reserved);

    let reward = |place: &'static str| {
        rl(&plan(&[("rl_reward", place), ("rl_reward_model", own.1), ("rl_reward_micro_batch", "4")]))
    };
    let [host, device] = ["host", "device"].map(reward);
    // All weights except the output layer, tied here, in 16 bits over 8 ranks, and the single output.
    let sharded = Bytes::new((494_032_768 + 896) * 2 / 8);
    assert_eq!(part(&device, PhaseKind::Training, "reward model"), Some(sharded));
    assert_eq!(part(&host, PhaseKind::Training, "reward model"), None);
    let forward =
        |rl: &RlMemory| part(rl, PhaseKind::Reward, "forward pass of the reward model").expect("a phase");
    assert_eq!(forward(&device), forward(&host) + sharded);
    // While it scores, the reference is held with it, and its own weights are part of its figure.
    let both = rl(&plan(&[
        ("rl_reward", "device"),
        ("rl_reward_model", own.1),
        ("rl_reward_micro_batch", "4"),
        ("rl_reference", "device"),
    ]));
    let reference = part(&both, PhaseKind::Training, "reference model").expect("it stays");
    assert_eq!(part(&both, PhaseKind::Reward, "reference model"), Some(reference));
    assert_eq!(part(&both, PhaseKind::Reward, "reward model"), None);
    let elsewhere = reward("elsewhere");
    assert!(elsewhere.phases.iter().all(|phase| phase.kind != PhaseKind::Reward));
}

/// An engine that serves the reward model takes its share of the memory while it scores, beside what the trainer leaves
/// and the rollouts' engine asleep; otherwise only its driver context stays.
#[test]
fn a_served_reward_model_has_its_share_while_it_scores() {
    let set = |more: &[(&str, &'static str)]| {
        let set =
            [("rl_reward", "engine"), ("rl_reward_model", "Qwen/Qwen2.5-0.5B"), ("rollout_sleep", "true")];
        plan(&set.iter().chain(more).copied().collect::<Vec<_>>())
    };
    let own = set(&[("rl_reward_memory_fraction", "0.25"), ("rl_reward_tensor_parallel_size", "2")]);
    let accelerator = &own.cluster().accelerator;
    let (memory, context) = (accelerator.memory, accelerator.context);
    let phases = rl(&own);
    let share = Bytes::new(memory.get().div_ceil(4));
    let (awake, asleep) = ("engine of the reward model", "engine of the reward model, asleep");
    assert_eq!(part(&phases, PhaseKind::Reward, awake), Some(share + context));
    assert_eq!(part(&phases, PhaseKind::Reward, asleep), None);
    for kind in [PhaseKind::Training, PhaseKind::WeightUpdate, PhaseKind::Rollout] {
        assert_eq!(part(&phases, kind, asleep), Some(context), "{kind:?}");
        assert_eq!(part(&phases, kind, awake), None, "{kind:?}");
    }
    let left = part(&phases, PhaseKind::Rollout, "trainer state left on the GPU");
    assert_eq!(part(&phases, PhaseKind::Reward, "trainer state left on the GPU"), left);
    assert_eq!(part(&phases, PhaseKind::Reward, "engine's driver context"), Some(context));
    // A share that is smaller than the weights, 494 million in 16 bits, does not start.
    let small = rl(&set(&[("rl_reward_memory_fraction", "0.01"), ("rl_reward_tensor_parallel_size", "1")]));
    let phase = small.phases.iter().find(|phase| phase.kind == PhaseKind::Reward).expect("a phase");
    assert_eq!(phase.verdict, shardscope::estimate::Verdict::OutOfMemory);
}

/// A critic's own settings may violate a rule that the policy satisfies: then there is no answer without it. Its pack
/// may be longer than the model's positions, like the policy's.
#[test]
fn a_critic_that_could_not_run_is_refused_by_name() {
    let packs = |tokens: &'static str| {
        settings(&[
            ("rl_critic", "host"),
            ("micro_batch_size", ""),
            ("num_micro_batches", ""),
            ("global_batch_size", "64"),
            ("seq_length", ""),
            ("max_tokens_per_micro_batch", "4096"),
            ("context_parallel_size", "2"),
            ("rl_critic_micro_batch", tokens),
        ])
    };
    let fits = packs("8192").plan.expect("a plan");
    assert!(rl(&fits).phases.iter().any(|phase| phase.kind == PhaseKind::Critic));
    let refused = packs("4098");
    assert!(refused.plan.is_none());
    let said: Vec<_> = refused.diagnostics.iter().filter(|one| one.code == Code::CriticPlan).collect();
    assert_eq!(said.len(), 1, "{:?}", refused.diagnostics);
    assert!(said[0].message.contains("critic") && said[0].message.contains("4098"), "{}", said[0].message);
}

#[test]
fn log_probabilities_are_taken_as_the_framework_takes_them() {
    let tokens = 2 * 2048_u64;
    let kept = |framework: &str, autocast: &str| {
        let plan = plan(&[("rl_framework", framework), ("params_dtype", "bf16"), ("autocast", autocast)]);
        memory(&plan).ranks[0].chunks[0].kept.get()
    };
    let logits = tokens * VOCABULARY;
    // verl keeps the 16-bit logits, OpenRLHF a copy in fp32, TRL a 16-bit log-softmax: 2, 4 and 2 bytes per element.
    let [verl, open, trl] = ["verl", "openrlhf", "trl"].map(|framework| kept(framework, "none"));
    assert_eq!(open - verl, 2 * logits);
    assert_eq!(verl - trl, 4 * tokens);
    // Accelerate passes on a model's output in fp32 under autocast, which TRL then keeps as it is.
    assert_eq!(kept("trl", "bf16"), kept("openrlhf", "bf16"));
}

/// Number formats in which weights and gradients are sent, each once.
fn sent_in(plan: &Plan) -> Vec<(&'static str, &'static str)> {
    let traffic = shardscope::estimate::traffic::traffic(plan);
    let data = traffic.dimensions.iter().flat_map(|dimension| &dimension.operations);
    let mut sent: Vec<_> = data
        .filter(|operation| matches!(operation.tensor, "weights" | "gradients"))
        .map(|operation| (operation.tensor, operation.dtype))
        .collect();
    sent.sort_unstable();
    sent.dedup();
    sent
}

#[test]
fn weights_are_gathered_in_the_format_they_run_in_and_gradients_reduced_as_the_framework_says() {
    // verl sets MixedPrecision(param_dtype=bfloat16, reduce_dtype=float32).
    assert_eq!(sent_in(&plan(&[("reduce_dtype", "fp32")])), [("gradients", "fp32"), ("weights", "bf16")]);
    // This does not depend on the rollouts: by itself the engine would reduce in the format in which it gathers.
    assert_eq!(sent_in(&plan(&[])), [("gradients", "bf16"), ("weights", "bf16")]);
    // accelerate: parameters, reductions and buffers all have the format of its mixed precision.
    let tuned = [
        ("training_objective", ""),
        ("rl_framework", ""),
        ("rollout_memory_fraction", ""),
        ("rollout_tensor_parallel_size", ""),
        ("rollout_sleep", ""),
        ("rollout_length", ""),
    ];
    assert_eq!(sent_in(&plan(&tuned)), [("gradients", "bf16"), ("weights", "bf16")]);
    // DeepSpeed: communication_data_type follows the format of its module.
    let deepspeed = [&tuned[..], &[("data_parallel_engine", "deepspeed")]].concat();
    assert_eq!(sent_in(&plan(&deepspeed)), [("gradients", "bf16"), ("weights", "bf16")]);
}

/// Layouts of `plan` found by a search, with the figures from the report of each.
fn searched(plan: &Plan) -> (Walk, Vec<(Bytes, Verdict)>) {
    let mut walk = Walk::new(plan);
    while walk.step(u64::MAX) {}
    let reported = walk.best().iter().map(|outcome| {
        let memory = memory(&outcome.variant.apply(plan).expect("a plan"));
        let phases = &memory.rl.as_ref().expect("phases").phases;
        (phases.iter().map(|phase| phase.breakdown.value()).max().expect("a phase"), memory.verdict)
    });
    let reported = reported.collect();
    (walk, reported)
}

#[test]
fn a_search_judges_the_phase_that_holds_most_and_not_training_alone() {
    // A critic that keeps everything for backward has a higher peak than the policy, and the engine's share is higher
    // than both.
    for more in [
        &[("rl_critic", "device"), ("rl_critic_recompute", "false"), ("rollout_memory_fraction", "0.3")][..],
        &[("rollout_sleep", "false")],
    ] {
        let plan = plan(more);
        let (walk, reported) = searched(&plan);
        assert!(!reported.is_empty());
        for (outcome, (peak, verdict)) in walk.best().iter().zip(reported) {
            assert_eq!((outcome.peak, outcome.tight), (peak, verdict == Verdict::Tight));
            assert_ne!(verdict, Verdict::OutOfMemory);
        }
        let all = exhaust(&Space::from_plan(&plan));
        assert_eq!(walk.best().first(), all.best.as_ref());
    }
    // No layout helps if the engine needs more than the trainer leaves.
    let full = plan(&[("rollout_memory_fraction", "0.99"), ("rollout_sleep", "false")]);
    assert_eq!(memory(&full).verdict, Verdict::OutOfMemory);
    assert_eq!(device_peak(&full).1, Verdict::OutOfMemory);
    // The shortage is reported for the phase: training alone would fit.
    match why_not(&Ok(full.clone()), &plan(&[])) {
        WhyNot::OutOfMemory(lack) => {
            assert_eq!((lack.at, lack.by > Bytes::ZERO), ("training", true), "{lack:?}")
        }
        other => panic!("{other:?}"),
    }
    let (walk, _) = searched(&full);
    assert!(walk.best().is_empty(), "{:?}", walk.best());
}
