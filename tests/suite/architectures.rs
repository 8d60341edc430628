//! Pasted configurations of the transformers library: the plan counts the same parameters as the library, or there is
//! no plan and the message names what is not modelled. Lines and counts are those of the crate `architectures`.

use serde_json::Value;
use shardscope::estimate::parameters;
use shardscope::source::Source;

use crate::formats::resolved;

/// Lines that the library counts, by outcome.
#[derive(Debug, Default)]
struct Outcome {
    equal: u32,
    near: u32,
    stopped: u32,
    refused: u32,
}

#[test]
fn a_pasted_configuration_is_counted_as_the_library_counts_it_or_stopped_by_name() {
    // `LINES_FILE` selects other lines of the same kind, such as those of a new library version.
    let path = std::env::var("LINES_FILE").unwrap_or_else(|_| {
        concat!(env!("CARGO_MANIFEST_DIR"), "/crates/architectures/tests/data/transformers.jsonl").to_owned()
    });
    let mut outcome = Outcome::default();
    let mut wrong: Vec<String> = Vec::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let name = case["name"].as_str().unwrap();
        let text = case["config"].to_string();
        let overrides = [
            ("seq_length", "64"),
            ("micro_batch_size", "1"),
            ("world_size", "1"),
            ("pad_vocab_size", "false"),
            // The library omits these layers.
            ("mtp_num_layers", "0"),
        ];
        let overrides = overrides.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let resolution = resolved(&Source::from_files([("config.json", text.as_str())]), &overrides);
        let Some(plan) = &resolution.plan else {
            let named = !resolution.not_modelled.is_empty();
            let said = resolution.diagnostics.iter().any(|one| one.code.name() == "not-estimated");
            if named {
                outcome.stopped += 1;
            } else if said || !resolution.questions.is_empty() {
                outcome.refused += 1;
            } else {
                // Sizes beyond the plan's limits, in randomly generated configurations.
                outcome.refused += 1;
                assert!(case["kind"] != "released", "{name}: {:?}", resolution.diagnostics);
            }
            continue;
        };
        let Some(theirs) = case["parameters"].as_u64() else {
            wrong.push(format!("{name}: a plan of what the library does not count"));
            continue;
        };
        let counted = parameters(plan);
        let ours = [counted.total.get(), counted.active_per_token.get()];
        let theirs = [theirs, case["active"].as_u64().unwrap()];
        if ours == theirs {
            outcome.equal += 1;
        } else if ours.iter().zip(theirs).all(|(ours, theirs)| ours.abs_diff(theirs) <= theirs / 1000) {
            outcome.near += 1;
        } else {
            wrong.push(format!("{name}: {ours:?}, the library's {theirs:?}"));
        }
    }
    println!("{outcome:?}");
    assert!(wrong.is_empty(), "wrong under a verdict:\n{}", wrong.join("\n"));
    assert!(outcome.equal >= 160, "{outcome:?}");
}
