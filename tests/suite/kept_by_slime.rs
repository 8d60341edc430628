//! Log-probabilities of slime and MindSpeed-RL over tensor ranks, whose logits Megatron's model hands on in fp32, as recorded by
//! `tests/record/slime_log_probs.py`.

use serde_json::Value;

use super::drafts::int;
use super::formats::resolved;
use super::formula::evaluate;
use shardscope::launch::Resolution;
use shardscope::operators::{Operator, Symbols};
use shardscope::plan::{Field, LossKind};
use shardscope::source::Source;

const RECORDED: &str = include_str!("../data/activations/slime_log_probs.jsonl");
/// Masks, targets and sums of a token, as an upper bound in bytes.
const SMALL: u64 = 40;

fn read(text: &str, set: &[(&str, &str)]) -> Resolution {
    let set: Vec<(String, String)> =
        set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    resolved(&Source::from_files([("run.sh", text)]), &set)
}

#[test]
fn recorded_log_probabilities_are_held_at_the_fullest() {
    let mut compared = 0;
    for line in RECORDED.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let [tokens, vocabulary, hidden] = ["tokens", "vocabulary", "hidden"].map(|name| int(&case, name));
        let text = format!(
            "torchrun --nproc_per_node 1 pretrain_gpt.py --num-layers 2 --hidden-size {hidden} --num-attention-heads 2 --seq-length {tokens} \
             --max-position-embeddings {tokens} --micro-batch-size 1 --global-batch-size 1 --vocab-size {vocabulary} \
             --make-vocab-size-divisible-by 1 --tokenizer-type NullTokenizer --bf16 --cross-entropy-loss-fusion \
             --untie-embeddings-and-output-weights\n"
        );
        let scaled = case["temperature"].as_f64() != Some(1.0);
        let read = read(
            &text,
            &[
                ("rl_framework", case["framework"].as_str().expect("a name")),
                ("training_objective", "policy"),
                ("rollout_engine", "vllm"),
                ("rollout_sampling", if scaled { "temperature" } else { "" }),
                ("vocab_size", &vocabulary.to_string()),
                ("pad_vocab_size", "false"),
            ],
        );
        let plan = read.plan.unwrap_or_else(|| panic!("{:?} {:?}", read.questions, read.diagnostics));
        assert_eq!((plan.recipe().loss, plan.model().padded_vocab_size), (LossKind::Unfused, vocabulary));
        let x = Symbols::new(&plan);
        let saved = Operator::OutputLayer.saved(&x);
        let transients = Operator::OutputLayer.transients(&x);
        let find = |name: &str| transients.iter().find(|moment| moment.name == name);
        let loss = find("loss").expect("a moment");
        for tensor in saved.iter().chain(&loss.tensors) {
            let value = evaluate(tensor.formula.expression, &|name| x.value(name));
            assert_eq!(tensor.bytes.get() as f64, value, "{}", tensor.name);
        }
        let kept =
            case["kept"].as_array().expect("a list").iter().map(|tensor| int(tensor, "bytes")).sum::<u64>();
        let sum =
            |of: &[shardscope::operators::Saved]| of.iter().map(|tensor| tensor.bytes.get()).sum::<u64>();
        let input = tokens * hidden * 2;
        let own = sum(&saved) - input;
        assert!(kept.abs_diff(own) <= 2 * tokens, "{own} for {kept} of {line}");
        // The recording counts the weight, of which its product has a view.
        let weight = vocabulary * hidden * 2;
        // The batch's labels and masks are not of the recorded function.
        let batch = ["labels and loss mask", "attention mask"];
        let of_loss = loss.tensors.iter().filter(|tensor| !batch.contains(&tensor.name));
        let ours = own + of_loss.map(|tensor| tensor.bytes.get()).sum::<u64>();
        let theirs = int(&case, "held_at_most") - weight;
        assert!(ours.abs_diff(theirs) <= SMALL * tokens, "{ours} for {theirs} of {line}");
        // Gradients of the logits over the temperature, or else of the 16-bit logits.
        let moment = find("backward of the loss").or(find("backward of the output layer")).expect("a moment");
        let largest = moment
            .tensors
            .iter()
            .filter(|tensor| tensor.name.contains("gradient over") || tensor.name == "logits gradient")
            .map(|tensor| tensor.bytes.get())
            .sum::<u64>();
        let theirs = int(&case, "held_in_backward_at_most") - weight;
        assert!((own + largest).abs_diff(theirs) <= SMALL * tokens, "{largest} for {theirs} of {line}");
        compared += 1;
    }
    assert_eq!(compared, 8);
}

/// `slime/utils/arguments.py: --rollout-temperature`, by default 1.0.
#[test]
fn slimes_temperature_is_read_where_it_is_not_1() {
    let of = |more: &str| {
        let text = format!(
            "python3 train_async.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 --hf-checkpoint /root/Qwen3-4B --rollout-batch-size 128 \
             --n-samples-per-prompt 8 --global-batch-size 128 --seq-length 4096 --rollout-num-gpus 8 --micro-batch-size 1 --bf16 \
             --use-distributed-optimizer --attention-backend flash {more}\n"
        );
        let read = read(&text, &[]);
        assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
        read.setting(Field::RolloutSampling).map(|setting| setting.value.written()).unwrap_or_default()
    };
    assert_eq!(
        [of(""), of("--rollout-temperature 1"), of("--rollout-temperature 0.8")],
        ["", "", "temperature"]
    );
}
