//! verl's fused output layer by Triton kernels, compared with recorded calls of its host functions
//! (`tests/record/verl_kernel.py`).

use serde_json::Value;
use shardscope::estimate::{PhaseKind, memory};
use shardscope::operators::{Operator, Symbols};
use shardscope::plan::Plan;
use shardscope::source::Source;
use shardscope::units::Bytes;

use super::drafts::int;
use super::formats::resolved;
use super::formula::evaluate;
use super::kept_by_verl_fused::plan_of;
use super::rollouts::{part, plan as rollouts, rl};

/// Kept tensors and what either pass makes, to the byte; neither an entropy in the loss nor a frozen weight changes them.
#[test]
fn the_kernels_hold_what_was_recorded() {
    const RECORDED: &str = include_str!("../data/activations/verl_kernel.jsonl");
    let mut compared = 0;
    for line in RECORDED.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let plan = plan_of(&case, "policy_kernel");
        let x = Symbols::new(&plan);
        let [tokens, hidden] = ["tokens", "hidden"].map(|name| int(&case, name));
        let kept: u64 = Operator::OutputLayer.saved(&x).iter().map(|saved| saved.bytes.get()).sum();
        assert_eq!(kept, 2 * tokens * hidden + 8 * tokens + int(&case, "kept"), "{line}");
        let transients = Operator::OutputLayer.transients(&x);
        let most = |name: &str| {
            let moments = transients.iter().filter(|one| one.name == name);
            let bytes = moments.map(|one| {
                for saved in &one.tensors {
                    let value = evaluate(saved.formula.expression, &|name| x.value(name));
                    assert_eq!(saved.bytes.get() as f64, value, "{}", saved.name);
                }
                one.bytes().get()
            });
            bytes.max().expect("a moment") + int(&case, "kept")
        };
        assert_eq!(most("loss"), int(&case, "forward"), "{line}");
        assert_eq!(most("loss"), int(&case, "scored"), "{line}");
        assert_eq!(most("backward of the loss"), int(&case, "backward"), "{line}");
        compared += 1;
    }
    assert_eq!(compared, 40);
}

#[test]
fn a_pass_of_log_probabilities_makes_no_logits() {
    let set = [("packing", "true"), ("loss_kind", "policy_kernel"), ("evaluation_batch_size", "1")];
    let few = rl(&rollouts(&[&set[..], &[("log_prob_tokens", "5000"), ("seq_length", "1024")]].concat()));
    let here = |label| part(&few, PhaseKind::LogProbs, label);
    assert_eq!(here("logits"), None);
    assert_eq!(here("MLP"), Some(Bytes::new(3 * 2 * 5000 * 2816)));
}

/// Under Megatron each rank has its part of the words, and the hidden states of all tensor ranks' tokens.
#[test]
fn megatrons_ranks_have_their_own_words() {
    let text = "python3 -m verl.trainer.main_ppo --config-name=ppo_megatron_trainer.yaml algorithm.adv_estimator=grpo \
        actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct data.train_batch_size=64 data.max_prompt_length=1024 \
        data.max_response_length=1024 actor_rollout_ref.actor.ppo_mini_batch_size=32 actor_rollout_ref.rollout.name=vllm \
        actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 \
        actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=2 actor_rollout_ref.model.use_fused_kernels=True \
        trainer.n_gpus_per_node=8 trainer.nnodes=1 actor_rollout_ref.actor.entropy_coeff=0.001";
    let read = |set: &[(&str, &str)]| -> Plan {
        let set: Vec<_> = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let read = resolved(&Source::from_files([("run.sh", text)]), &set);
        read.plan.unwrap_or_else(|| panic!("{:?} {:?}", read.not_modelled, read.diagnostics))
    };
    let plan = read(&[]);
    let x = Symbols::new(&plan);
    let (tokens, words) = (2 * 2048, 152_064 / 2);
    let kept: u64 = Operator::OutputLayer.saved(&x).iter().map(|saved| saved.bytes.get()).sum();
    assert_eq!(kept, tokens * (2 * 3584 + 8 + 12));
    // Of 76,032 words eight full stretches: nothing is left to copy.
    let gradients = 2 * (tokens * (2 * 3584 + 9504) + words * 3584) + 8 * tokens;
    let transients = Operator::OutputLayer.transients(&x);
    let backward =
        transients.iter().filter(|one| one.name == "backward of the loss").map(|one| one.bytes().get());
    assert_eq!(backward.max(), Some(gradients));
    let messages: Vec<u64> = Operator::OutputLayer
        .messages(&x)
        .iter()
        .filter(|one| one.name == "cross_entropy")
        .map(|one| one.bytes().get())
        .collect();
    assert_eq!(messages, [4 * tokens * 75, 4 * tokens, 8 * tokens]);
    // Before training, layers hold more.
    let scored = memory(&plan);
    let here = |label| part(scored.rl.as_ref().expect("phases"), PhaseKind::LogProbs, label);
    assert_eq!(here("MLP"), Some(Bytes::new(tokens * (3584 + 3 * 18_944 / 2) * 2)));
    let narrow = memory(&read(&[("ffn_hidden_size", "256"), ("vocab_size", "4000000")]));
    let here = |label| part(narrow.rl.as_ref().expect("phases"), PhaseKind::LogProbs, label);
    assert_eq!(here("last hidden states"), Some(Bytes::new(tokens * 3584 * 2)));
    let stretches = 2_000_000_u64.div_ceil(1024);
    assert_eq!(here("log-probabilities by stretch"), Some(Bytes::new(tokens * (20 + 16 * stretches))));
}
