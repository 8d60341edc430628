//! levanter's train step, traced and compiled ahead of time for TPU topologies (`tests/record/levanter_steps.py`;
//! versions are in the first line of its output).

use serde_json::{Value, json};
use shardscope::estimate::{memory_totals, parameters, saved_activations};
use shardscope::launch::Resolution;
use shardscope::plan::{Plan, Software};
use shardscope::source::Source;

use crate::drafts::Draft;
use crate::formats::resolved;

const RESIDUALS: &str = include_str!("../data/levanter/residuals.jsonl");
const STEPS: &str = include_str!("../data/levanter/steps.jsonl");

fn cases(text: &'static str) -> impl Iterator<Item = Value> {
    text.lines().skip(1).map(|line| serde_json::from_str(line).expect("JSON"))
}

/// The catalog's name of a topology's accelerator (`v5` is v5p), and its chips.
fn machine(case: &Value) -> (String, u64) {
    let (kind, sizes) = case["topology"].as_str().and_then(|name| name.split_once(':')).expect("a topology");
    let kind = if kind == "v5" { "v5p" } else { kind };
    let chips = sizes.split('x').map(|size| size.parse::<u64>().expect("a size")).product();
    (format!("TPU-{kind}"), chips)
}

/// The case's settings file, which a YAML reader takes as JSON too, on its machine. Norms are watched by default.
fn read(case: &Value) -> Resolution {
    let (accelerator, chips) = machine(case);
    let mut trainer = case["trainer"].clone();
    if case["hooks"] != true {
        trainer["watch"] = json!({"interval": 0});
    }
    let file = json!({"model": case["model"], "trainer": trainer}).to_string();
    let settings = [("world_size", chips.to_string()), ("accelerator", accelerator)];
    let vocabulary = ("vocab_size".to_owned(), case["vocab"].to_string());
    let settings = settings.map(|(name, value)| (name.to_owned(), value)).into_iter().chain([vocabulary]);
    resolved(&Source::from_files([("config.yaml", file.as_str())]), &settings.collect::<Vec<_>>())
}

fn is_stopped(case: &Value) -> bool {
    let policy = &case["model"]["gradient_checkpointing"];
    case["model"]["type"] != "llama"
        || !matches!(policy, Value::Null | Value::Bool(true)) && policy != "full" && policy != "recompute"
}

#[test]
fn layers_hand_their_input_to_backward() {
    let mut compared = [0, 0];
    for case in cases(RESIDUALS) {
        let (resolution, name) = (read(&case), case.to_string());
        compared[usize::from(is_stopped(&case))] += 1;
        if is_stopped(&case) {
            assert!(!resolution.not_modelled.is_empty(), "{name}");
            continue;
        }
        assert!(resolution.not_modelled.is_empty(), "{name}: {:?}", resolution.not_modelled);
        let plan = resolution.plan.unwrap_or_else(|| panic!("{name}: {:?}", resolution.diagnostics));
        let [scan] = &case["scans"].as_array().expect("scans")[..] else { panic!("{name}") };
        assert_eq!(scan["layers"], plan.model().num_layers, "{name}");
        let kept = scan["kept"].as_array().expect("tensors").iter().map(|tensor| {
            assert_eq!(tensor[0], "bfloat16", "{name}");
            let sizes = tensor[1].as_array().expect("a shape").iter();
            2 * sizes.map(|size| size.as_u64().expect("a size")).product::<u64>()
        });
        let ours = saved_activations(&plan).dense.expect("dense layers").get() * machine(&case).1;
        assert_eq!(ours, kept.sum::<u64>(), "{name}");
    }
    assert_eq!(compared, [6, 5]);
}

/// Tolerance of the peaks, in per cent.
const MET: f64 = 4.0;
#[test]
fn peaks_of_compiled_steps_are_met() {
    let (mut compared, mut wrong) = (0, Vec::new());
    for case in cases(STEPS) {
        let (resolution, name) = (read(&case), case.to_string());
        assert!(resolution.not_modelled.is_empty(), "{name}: {:?}", resolution.not_modelled);
        let plan = resolution.plan.unwrap_or_else(|| panic!("{name}: {:?}", resolution.diagnostics));
        let peak = case["peak_memory"].as_u64().expect("bytes");
        let report = shardscope::advice::advised(&plan).expect("a report");
        let text = shardscope::report::text::text(&plan, &report);
        assert!(text.contains("of it allocated by XLA."), "{name}: no tensor is torch's");
        let totals = memory_totals(&plan)[0];
        let off = (totals.peak_allocated.get() as f64 / peak as f64 - 1.0) * 100.0;
        if off.abs() >= MET {
            let counted = totals.peak_allocated.get();
            wrong.push(format!("{off:.1} %, {counted} counted, {peak} recorded: {name}"));
        }
        // Weights and both moments are the program's arguments, with a batch and vectors on every device.
        let arguments = case["argument_size"].as_u64().expect("bytes");
        let held = 12 * parameters(&plan).total.get() / machine(&case).1;
        assert!((arguments as f64 / held as f64 - 1.0).abs() < 0.005, "{name}: {held} of {arguments}");
        compared += 1;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(compared, 6);
}

/// Norms of all gradients come after the last of them: the gradient of the logits waits for the output layer's weight
/// gradient, which is computed behind the layers (`transpose(jvp(contract embed -> batch, position, vocab))` in the program).
#[test]
fn watched_norms_keep_the_gradient_of_the_logits() {
    let watched = cases(STEPS).filter(|case| case["hooks"] == true);
    let mut compared = 0;
    for mut case in watched {
        let sums = [true, false].map(|hooks| {
            case["hooks"] = json!(hooks);
            let plan = read(&case).plan.expect("a plan");
            let of = memory_totals(&plan)[0].peak_allocated.get();
            let [rows, width] =
                [case["model"]["seq_len"].as_u64(), case["vocab"].as_u64()].map(|size| size.expect("a size"));
            (of, 2 * rows * plan.recipe().micro_batch_size * width)
        });
        let [(with, logits), (without, _)] = sums;
        // With Llama 3's vocabulary the loss is the peak either way, where no layer's backward has begun.
        let waiting = if case["vocab"] == 128_256 { 0 } else { logits };
        assert_eq!(with - without, waiting, "{case}");
        compared += 1;
    }
    assert_eq!(compared, 3);
}

/// MaxText has no such steps.
#[test]
fn watched_norms_are_levanters_alone() {
    let watched = cases(STEPS).find(|case| case["hooks"] == true).expect("a case");
    let plan = read(&watched).plan.expect("a plan");
    let of = |software, watched_norms| {
        let Draft { model, cluster, layout, mut recipe } = Draft::new(&plan);
        (recipe.software, recipe.watched_norms) = (software, watched_norms);
        Plan::new(model, cluster, layout, recipe).is_ok()
    };
    assert!(of(Software::Levanter, true) && of(Software::MaxText, false));
    assert!(!of(Software::MaxText, true));
}
