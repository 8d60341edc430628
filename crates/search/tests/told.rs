//! Every result opens as a plan with the same figures: its reported settings, applied on top of the reader's own,
//! resolve to the exact plan that was searched.

mod pairs;

use pairs::pair;
use shardscope_launch::{Argument, megatron, resolve};
use shardscope_plan::{Plan, Variant};
use shardscope_search::{Choices, Dimension, Space, Values};

fn resolved(name: &str, more: &str, changes: &[(String, String)]) -> Result<Plan, String> {
    let (gpus, accelerator, flags) = pair(name);
    let set = [("world_size", gpus.to_string()), ("gpus_per_node", gpus.min(8).to_string())];
    let mut set: Vec<(String, String)> = set.map(|(name, value)| (name.to_owned(), value)).to_vec();
    set.push(("accelerator".to_owned(), accelerator.to_owned()));
    set.extend_from_slice(changes);
    let resolution = resolve(&[megatron::read(&Argument::split(&format!("{flags} {more}")))], &set);
    let said: Vec<String> = resolution
        .diagnostics
        .iter()
        .filter(|said| said.severity.name() == "error")
        .map(|said| said.message.clone())
        .collect();
    resolution.plan.ok_or_else(|| said.join("; "))
}

#[track_caller]
fn check(name: &str, more: &str, ranges: &[(Dimension, u64, u64)], every: usize) {
    check_set(name, &[], more, ranges, every);
}

#[track_caller]
fn check_set(name: &str, set: &[(&str, &str)], more: &str, ranges: &[(Dimension, u64, u64)], every: usize) {
    let set: Vec<(String, String)> =
        set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let base = resolved(name, more, &set).unwrap_or_else(|said| panic!("{name}: {said}"));
    let own = Variant::from_plan(&base);
    let mut choices = Choices::default().with(Dimension::Context, Values::Between(1, 2));
    for (dimension, least, most) in ranges {
        choices = choices.with(*dimension, Values::Between(*least, *most));
    }
    let space = Space::with(&base, choices);
    let (mut compared, mut seen) = (0, 0);
    for variant in space.every().step_by(every) {
        seen += 1;
        if seen > 30_000 || compared >= 120 {
            break;
        }
        let Some(searched) = variant.apply(&base) else { continue };
        let changes = variant.changes_from(&own).into_iter();
        let changes = changes.map(|(field, value)| (field.name().to_owned(), value));
        let mut changes: Vec<(String, String)> = changes.collect();
        let kept = set.iter().filter(|(name, _)| !changes.iter().any(|(changed, _)| changed == name));
        let kept: Vec<_> = kept.cloned().collect();
        changes.extend(kept);
        let opened =
            resolved(name, more, &changes).unwrap_or_else(|said| panic!("{name} {changes:?}: {said}"));
        assert_eq!(opened.layout(), searched.layout(), "{name} {changes:?}");
        assert_eq!(opened.recipe(), searched.recipe(), "{name} {changes:?}");
        assert_eq!(opened, searched, "{name} {changes:?}");
        compared += 1;
    }
    assert!(compared > 20, "{name}: {compared} of {seen}");
}

#[test]
fn changes_open_as_what_was_searched() {
    use Dimension::{Expert, Instances, MicroBatch, Offload, OffloadModules, Pipeline, Precision, Tensor};
    check("llama-3 8b, 8 H100", "", &[(Precision, 0, 1), (MicroBatch, 1, 2)], 401);
    let on_host = "--optimizer-cpu-offload --use-precision-aware-optimizer --use-distributed-optimizer";
    for more in ["", on_host, "--fp8-format e4m3 --fp8-recipe blockwise"] {
        let opened = [(Offload, 0, 1), (Precision, 0, 1), (MicroBatch, 1, 2), (Tensor, 1, 2)];
        check("llama-3 8b, 8 H100", more, &opened, 401);
    }
    let on_host = "--fine-grained-activation-offloading --offload-modules qkv_linear core_attn";
    for more in ["", on_host, "--num-distributed-optimizer-instances 2 --use-distributed-optimizer"] {
        let opened = [(Instances, 1, 4), (OffloadModules, 0, 1), (MicroBatch, 1, 2), (Tensor, 1, 2)];
        check("llama-3 8b, 8 H100", more, &opened, 401);
    }
    // ZeRO's own syntax for it, and the formats of Blackwell.
    let deepspeed = [("software", "megatron_deepspeed"), ("zero_stage", "1")];
    check_set("llama-3 8b, 8 H100", &deepspeed, "", &[(Offload, 0, 1), (MicroBatch, 1, 2)], 11);
    for more in ["", "--fp4-format e2m1"] {
        let opened = [(Precision, 0, 1), (MicroBatch, 1, 2), (Tensor, 1, 2)];
        check_set("llama-3 8b, 8 H100", &[("accelerator", "B200")], more, &opened, 401);
    }
    check(
        "llama-3 70b, 128 H100",
        "--num-layers-per-virtual-pipeline-stage 5",
        &[(MicroBatch, 1, 1), (Tensor, 8, 8), (Pipeline, 2, 8)],
        97,
    );
    check(
        "mixtral 8x7b, 64 H100",
        "",
        &[(MicroBatch, 1, 1), (Tensor, 1, 2), (Pipeline, 1, 2), (Expert, 1, 4)],
        997,
    );
    check(
        "qwen3 235b, 256 H100",
        "",
        &[(MicroBatch, 1, 1), (Tensor, 1, 2), (Pipeline, 4, 8), (Expert, 32, 32)],
        499,
    );
    check("bloom 176b, 384 A100", "", &[(MicroBatch, 1, 1), (Tensor, 4, 4), (Pipeline, 8, 12)], 11);
    check(
        "deepseek-v3, 2048 H800",
        "",
        &[(MicroBatch, 1, 1), (Tensor, 1, 2), (Pipeline, 8, 16), (Expert, 32, 32)],
        997,
    );
    check(
        "llama-3 8b, 64 H100",
        "--pipeline-model-parallel-size 4 --enable-zero-bubble",
        &[(MicroBatch, 1, 1), (Tensor, 1, 2), (Pipeline, 1, 4)],
        97,
    );
    check(
        "llama-3 405b, 16384 H100",
        "--pipeline-model-parallel-size 16 --account-for-embedding-in-pipeline-split \
         --account-for-loss-in-pipeline-split",
        &[(MicroBatch, 1, 1), (Tensor, 8, 8), (Pipeline, 8, 16)],
        97,
    );
}
