//! The phase in which a policy computes log-probabilities of rollouts without gradients, in larger micro-batches than
//! in training.

use serde_json::Value;

use super::drafts::int;
use super::formats::resolved;
use super::rollouts::{LINEAR, VOCABULARY, WIDTH, part, plan, rl};
use shardscope::estimate::{Memory, PhaseKind, RlMemory, device_peak, memory};
use shardscope::operators::{Operator, Saved, Symbols};
use shardscope::source::Source;
use shardscope::units::Bytes;

/// verl's `compute_log_prob`, for 16 sequences at once instead of training's 2: weights, what is gathered for a forward
/// pass, and the logits in 16 bits with the hidden states from which they are computed. Its moments were recorded for
/// transformers' modules without gradients (`tests/data/activations/evaluation_peak.tsv`, `evaluation_in_tiles.tsv`).
#[test]
fn log_probabilities_in_larger_micro_batches_are_a_phase() {
    let of = |more: &[(&str, &str)]| {
        let set = [("packing", "true"), ("offload_between_phases", "gradients optimizer")];
        plan(&set.iter().chain(more).copied().collect::<Vec<_>>())
    };
    let scored = of(&[("evaluation_batch_size", "16")]);
    let memory = memory(&scored);
    let phases = memory.rl.as_ref().expect("phases");
    let tokens = 16 * 2048;
    let here = |label| part(phases, PhaseKind::LogProbs, label);
    assert_eq!(here("last hidden states"), Some(Bytes::new(2 * tokens * WIDTH)));
    assert_eq!(here("logits"), Some(Bytes::new(2 * tokens * VOCABULARY)));
    // One layer and both vocabularies with the last norm, in 16 bits.
    let whole = LINEAR + 2 * WIDTH + 2 * VOCABULARY * WIDTH + WIDTH;
    assert_eq!(here("gathered weights"), Some(Bytes::new(2 * whole)));
    let totals = memory.ranks[0].totals;
    let left = totals.between_steps.less(totals.gradients + totals.optimizer);
    assert_eq!(here("trainer state left on the GPU"), Some(left));
    let phase = phases.phases.iter().find(|phase| phase.kind == PhaseKind::LogProbs).expect("the phase");
    assert!(device_peak(&scored).0 >= phase.breakdown.value());
    // Weights offloaded to the host are brought back for it.
    let moved = rl(&of(&[
        ("evaluation_batch_size", "16"),
        ("offload_between_phases", "weights gradients optimizer"),
    ]));
    assert_eq!(part(&moved, PhaseKind::LogProbs, "trainer state left on the GPU"), Some(left));
    // With a small vocabulary the last layer's MLP holds more than the logits.
    let small = rl(&of(&[("evaluation_batch_size", "16"), ("vocab_size", "1000")]));
    let there = |label| part(&small, PhaseKind::LogProbs, label);
    assert_eq!(there("hidden states"), Some(Bytes::new(4 * 2 * tokens * WIDTH)));
    assert_eq!(there("MLP"), Some(Bytes::new(3 * 2 * tokens * 2816)));
    assert_eq!(there("logits"), None);
    // A number of tokens instead of sequences.
    let packs = rl(&of(&[("log_prob_tokens", "30000")]));
    assert_eq!(part(&packs, PhaseKind::LogProbs, "logits"), Some(Bytes::new(2 * 30_000 * VOCABULARY)));
    // If it is no larger than training's, there is no such phase.
    assert!(rl(&of(&[])).phases.iter().all(|phase| phase.kind != PhaseKind::LogProbs));
}

/// Images of Qwen2.5-VL, with four patches per token, are processed in the same pass.
#[test]
fn log_probabilities_of_images_pass_their_tower() {
    let text = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2.5-VL-7B-Instruct \
        data.max_prompt_length=1024 data.max_response_length=2048 actor_rollout_ref.actor.ppo_mini_batch_size=160 \
        actor_rollout_ref.actor.freeze_vision_tower=True actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=10 \
        actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=20 actor_rollout_ref.rollout.name=vllm \
        trainer.n_gpus_per_node=8 trainer.nnodes=1";
    let source = Source::from_files([("run.sh", text)]);
    let of = |set: &[(&str, &str)]| {
        let set: Vec<_> = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let read = resolved(&source, &set);
        rl(&read.plan.unwrap_or_else(|| panic!("{:?} {:?}", read.not_modelled, read.diagnostics)))
    };
    let tokens = 20 * 3072;
    let usual = of(&[]);
    assert_eq!(part(&usual, PhaseKind::LogProbs, "logits"), Some(Bytes::new(2 * tokens * 152_064)));
    assert_eq!(part(&usual, PhaseKind::LogProbs, "vision layer"), None);
    // With a small vocabulary the peak is in the tower, 1,280 wide.
    let small = of(&[("vocab_size", "1000")]);
    assert_eq!(part(&small, PhaseKind::LogProbs, "vision layer"), Some(Bytes::new(48 * 4 * tokens * 1280)));
}

/// Padded samples under verl, which computes the entropy of the responses' logits outside of torch.compile, and under
/// EasyR1, which computes none: what a recorded pass holds at its peak (`tests/data/activations/verl_padded.jsonl`).
#[test]
fn log_probabilities_of_padded_samples_are_taken_with_their_entropy() {
    const RESPONSE: u64 = 512;
    let recorded = include_str!("../data/activations/verl_padded.jsonl");
    for line in recorded.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let [samples, prompt, response] = ["samples", "prompt", "response"].map(|name| int(&case, name));
        let rows = samples * response * 512;
        let beside = match (case["entropy"] == true, samples > 1) {
            (true, _) => 12 * rows,
            (false, true) => 2 * rows,
            (false, false) => 0,
        };
        assert_eq!(int(&case, "scored"), 2 * samples * (prompt + response) * 512 + beside, "{line}");
    }
    let of = |more: &[(&str, &str)]| {
        let set = [("packing", "false"), ("padding_mask", "true"), ("rollout_response", "512")];
        rl(&plan(&set.iter().chain(more).copied().collect::<Vec<_>>()))
    };
    let here = |phases: &RlMemory, label| part(phases, PhaseKind::LogProbs, label);
    let entropy = "entropy of the responses";
    // For training's own two sequences, if its loss has none.
    let usual = of(&[]);
    assert_eq!(here(&usual, "logits"), Some(Bytes::new(2 * 2 * 2048 * VOCABULARY)));
    assert_eq!(here(&usual, entropy), Some(Bytes::new(12 * 2 * RESPONSE * VOCABULARY)));
    let larger = of(&[("evaluation_batch_size", "16"), ("policy_entropy", "true")]);
    assert_eq!(here(&larger, entropy), Some(Bytes::new(12 * 16 * RESPONSE * VOCABULARY)));
    let is_phase = |phases: &RlMemory| phases.phases.iter().any(|phase| phase.kind == PhaseKind::LogProbs);
    assert!(!is_phase(&of(&[("policy_entropy", "true")])));
    assert!(!is_phase(&of(&[("rl_framework", "easy_r1")])));
    let copied = of(&[("rl_framework", "easy_r1"), ("evaluation_batch_size", "16")]);
    assert_eq!(here(&copied, entropy), None);
    assert_eq!(here(&copied, "logits of the responses"), Some(Bytes::new(2 * 16 * RESPONSE * VOCABULARY)));
    let one = of(&[("rl_framework", "easy_r1"), ("micro_batch_size", "1"), ("evaluation_batch_size", "1")]);
    assert!(!is_phase(&one));
}

/// Under Megatron the policy's log-probabilities come with the entropies of all logits, on the last stage: 12 bytes of each
/// as verl's own functions were recorded to hold, 6 where a reference's are taken without
/// (`tests/data/activations/verl_megatron.jsonl`).
#[test]
fn log_probabilities_under_megatron_hold_logits_a_copy_and_their_softmax() {
    let recorded = include_str!("../data/activations/verl_megatron.jsonl");
    for line in recorded.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let each = if case["entropy"] == true { 12 } else { 6 };
        assert_eq!(int(&case, "scored"), each * int(&case, "tokens") * 512, "{line}");
    }
    let read = |more: &str, set: &[(&str, &str)]| {
        let text = format!(
            "python3 -m verl.trainer.main_ppo --config-name=ppo_megatron_trainer.yaml algorithm.adv_estimator=grpo \
             actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct data.train_batch_size=64 data.max_prompt_length=1024 \
             data.max_response_length=1024 actor_rollout_ref.actor.ppo_mini_batch_size=32 actor_rollout_ref.rollout.name=vllm \
             actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 \
             actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=2 actor_rollout_ref.actor.entropy_coeff=0 \
             trainer.n_gpus_per_node=8 trainer.nnodes=1 {more}"
        );
        let set: Vec<_> = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        resolved(&Source::from_files([("run.sh", text.as_str())]), &set)
    };
    let of = |more: &str, set: &[(&str, &str)]| {
        let read = read(more, set);
        memory(&read.plan.unwrap_or_else(|| panic!("{:?} {:?}", read.not_modelled, read.diagnostics)))
    };
    const WORDS: u64 = 152_064 / 2;
    const SEQUENCE: u64 = 2048;
    // In training: what is kept of each logit, and the most in forward and in backward, where the gradient over the temperature
    // stands beside the one that it is made of.
    for (coefficient, line) in [("0", 1), ("0.001", 4)] {
        let case: Value = serde_json::from_str(recorded.lines().nth(line).expect("a line")).expect("JSON");
        assert_eq!(case["entropy"] == true, coefficient != "0");
        let read = read(&format!("actor_rollout_ref.actor.entropy_coeff={coefficient}"), &[]);
        let plan = read.plan.unwrap_or_else(|| panic!("{:?}", read.not_modelled));
        let x = Symbols::new(&plan);
        let logits = x.n * x.v;
        assert_eq!(x.v, WORDS);
        let wide = |tensors: &[Saved]| -> u64 {
            let wide = tensors.iter().map(|saved| saved.bytes.get()).filter(|bytes| *bytes >= 2 * logits);
            wide.sum::<u64>() / logits
        };
        let kept = wide(&Operator::OutputLayer.saved(&x));
        let transients = Operator::OutputLayer.transients(&x);
        let most = |name: &str| {
            let moment = transients.iter().find(|moment| moment.name == name);
            kept + moment.map_or(0, |moment| wide(&moment.tensors))
        };
        let each = |name: &str| int(&case, name) / int(&case, "tokens") / 512;
        assert_eq!(
            [kept, most("loss"), most("backward of the loss")],
            ["kept", "forward", "backward"].map(each),
            "{coefficient}"
        );
    }
    let here = |memory: &Memory, label| part(memory.rl.as_ref().expect("phases"), PhaseKind::LogProbs, label);
    // As many sequences as in training, and on the rank that has the output layer.
    let usual = of("", &[]);
    assert_eq!(here(&usual, "logits"), Some(Bytes::new(12 * 2 * SEQUENCE * WORDS)));
    assert_eq!(here(&usual, "gathered hidden states"), None);
    let left = |memory: &Memory| memory.ranks[1].totals.between_steps;
    assert_eq!(here(&usual, "trainer state left on the GPU"), Some(left(&usual)));
    // Fewer, and more, whose gathered input makes a buffer grow.
    let fewer = of("actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1", &[]);
    assert_eq!(here(&fewer, "logits"), Some(Bytes::new(12 * SEQUENCE * WORDS)));
    let more = of("actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=8", &[]);
    assert_eq!(here(&more, "logits"), Some(Bytes::new(12 * 8 * SEQUENCE * WORDS)));
    assert_eq!(here(&more, "gathered hidden states"), Some(Bytes::new(2 * 6 * SEQUENCE * 3584)));
    // Gradients are freed with the weights, which come back.
    let moved = of("actor_rollout_ref.actor.megatron.param_offload=True", &[]);
    let gone = moved.ranks[1].totals.gradients;
    assert_eq!(here(&moved, "trainer state left on the GPU"), Some(left(&moved).less(gone)));
    // `grad_offload` alone does nothing, in any release.
    let named = of("actor_rollout_ref.actor.megatron.grad_offload=True", &[]);
    assert_eq!(here(&named, "trainer state left on the GPU"), Some(left(&named)));
    // verl of before July 24, 2025, by a key that it has not had since: entropies of the logits themselves.
    let spring = of("actor_rollout_ref.actor.checkpoint.contents=['model']", &[]);
    assert_eq!(here(&spring, "logits"), Some(Bytes::new(8 * 2 * SEQUENCE * WORDS)));
    // A reference that comes from the host beside a policy that stays holds more, though it takes no entropies.
    let kl = "actor_rollout_ref.actor.use_kl_loss=True actor_rollout_ref.ref.megatron.param_offload=True";
    let scored = of(kl, &[("vocab_size", "32000")]);
    assert_eq!(here(&scored, "reference model"), Some(scored.ranks[1].totals.parameters));
    assert_eq!(here(&scored, "logits"), Some(Bytes::new(6 * 2 * SEQUENCE * 16_000)));
    // With few words a stage's layers hold more, of which each has four streams of half the tokens.
    let small = of("", &[("vocab_size", "1000")]);
    let tokens = 2 * SEQUENCE;
    assert_eq!(here(&small, "hidden states"), Some(Bytes::new(4 * tokens / 2 * 3584 * 2)));
    assert_eq!(here(&small, "MLP"), Some(Bytes::new(tokens * (3584 + 3 * 18_944 / 2) * 2)));
    // Layers that all have experts hold no MLP, however wide the model's file says that one is.
    let routed = "actor_rollout_ref.model.path=Qwen/Qwen3-30B-A3B";
    let routed = of(routed, &[("vocab_size", "1000"), ("moe_router_topk", "1")]);
    assert_eq!(here(&routed, "MLP"), None);
    assert_eq!(here(&routed, "experts"), Some(Bytes::new(tokens * (2 * 2048 + 3 * 768 / 2) * 2)));
    // A reference's are of fewer than twice as many tokens: each logit takes half as much, and more tokens than training's
    // gather more hidden states.
    let twice = |more: &str| {
        let text = format!(
            "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=2 actor_rollout_ref.actor.use_kl_loss=True {more}"
        );
        read(&text, &[]).not_modelled.len()
    };
    assert_eq!(twice("actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=3"), 0);
    assert_eq!(twice("actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=4"), 1);
}
