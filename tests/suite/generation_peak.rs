//! Rollouts by the model that trains: what `generate` holds, against recorded runs of transformers and PEFT.

use shardscope::estimate::{PhaseKind, RlMemory, memory};
use shardscope::launch::resolve;
use shardscope::plan::{Plan, Resolution};

/// `tests/record/generation_peak.py`.
const RECORDED: &str = include_str!("../data/activations/generation_peak.tsv");
/// Width and query heads of the recorded model.
const WIDTH: u64 = 64;

fn resolved(set: &[(&str, &str)]) -> Resolution {
    let common = [
        ("software", "hf_transformers"),
        ("accelerator", "A100-SXM-80GB"),
        ("num_nodes", "1"),
        ("gpus_per_node", "1"),
        ("num_layers", "3"),
        ("num_attention_heads", "4"),
        ("group_query_attention", "true"),
        ("num_query_groups", "2"),
        ("hidden_size", "64"),
        ("ffn_hidden_size", "160"),
        ("swiglu", "true"),
        ("untie_embeddings_and_output_weights", "true"),
        ("micro_batch_size", "1"),
        ("num_micro_batches", "2"),
        ("vocab_size", "97"),
        ("train_type", "full"),
        ("attn_implementation", "sdpa"),
        ("gradient_checkpointing", "true"),
        ("training_objective", "policy"),
        ("rl_framework", "trl"),
        ("rollout_engine", "transformers"),
    ];
    let last = |name: &str| set.iter().all(|(other, _)| *other != name);
    let settings = common.iter().filter(|(name, _)| last(name)).chain(set);
    resolve(&[], &settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>())
}

#[track_caller]
fn plan(set: &[(&str, &str)]) -> Plan {
    let resolution = resolved(set);
    assert!(resolution.not_modelled.is_empty(), "{:?}", resolution.not_modelled);
    resolution.plan.unwrap_or_else(|| panic!("no plan: {:?}", resolution.diagnostics))
}

fn rl(plan: &Plan) -> RlMemory {
    memory(plan).rl.expect("phases")
}

/// Bytes of the phase beside what the trainer leaves, and whether it is fullest at a pass over the prompts.
fn generating(rl: &RlMemory) -> (u64, bool) {
    let phase = rl.phases.iter().find(|phase| phase.kind == PhaseKind::Rollout).expect("rollouts");
    let value = |label: &str| phase.breakdown.child(label).map_or(0, |part| part.value().get());
    let left = value("left by the trainer") + value("context and communicators of the trainer");
    let prompts = ["prompts in a layer", "prompts in attention"].into_iter().any(|label| value(label) > 0);
    (phase.breakdown.value().get() - left, prompts)
}

/// To the byte while prompts run through a layer. When a single token does, numbers and the activations of that token are left out: fewer
/// than 64 bytes for each token, and for each column of the stream, of a sequence.
#[test]
fn rollouts_hold_what_was_recorded() {
    let (mut exact, mut bounded) = (0, 0);
    for line in RECORDED.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [dtype, autocast, rank, groups, rows, prompt, response, vocabulary, filters, bytes, _] =
            cells.as_slice()
        else {
            panic!("{line}")
        };
        let number = |cell: &str| -> u64 { cell.parse().expect("a number") };
        let length = number(prompt) + number(response);
        let plan = plan(&[
            ("params_dtype", if *dtype == "bfloat16" { "bf16" } else { "fp32" }),
            ("autocast", if *autocast == "True" { "bf16" } else { "none" }),
            ("train_type", if *rank == "0" { "full" } else { "lora" }),
            ("lora_rank", if *rank == "0" { "1" } else { rank }),
            ("lora_target_modules", if *rank == "0" { "" } else { "all-linear" }),
            ("num_query_groups", groups),
            ("rollout_sequences", rows),
            ("seq_length", &length.to_string()),
            ("rollout_response", response),
            ("vocab_size", vocabulary),
            ("rollout_sampling", if *filters == "-" { "" } else { filters }),
        ]);
        let (ours, prompts) = generating(&rl(&plan));
        let recorded = number(bytes);
        if prompts {
            assert_eq!(ours, recorded, "{line}");
            exact += 1;
        } else {
            let most = 64 * number(rows) * (length + WIDTH);
            assert!(ours <= recorded && recorded - ours <= most, "{line}: {ours}, {recorded}");
            bounded += 1;
        }
    }
    assert!(exact >= 20 && bounded >= 20, "{exact}, {bounded}");
}
