//! Settings compared with Megatron-LM's own argument validation (`data/megatron/resolved.jsonl`), its layer split and
//! its micro-batch calculator: equal, including rejections.

use serde_json::Value;
use shardscope::launch::{Argument, Found, Origin, Resolution, Setting, SettingValue, megatron, resolve};
use shardscope::plan::{Field, StageMap, StageSizes, StageSplit};
use shardscope::source::Code;

use super::drafts::int;

pub(crate) fn cases(text: &str) -> impl Iterator<Item = Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a case"))
}

/// The resolution of a line of flags on this many accelerators.
pub(crate) fn resolved(flags: &str, world: u64) -> Resolution {
    let mut reading = megatron::read(&Argument::split(flags));
    reading.take(Found::new(Field::WorldSize, world.to_string(), Origin::User));
    resolve(&[reading], &[])
}

/// A small model with everything that a plan needs.
const WHOLE: &str = "--num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 512 --vocab-size 32000 \
                     --max-position-embeddings 512 --micro-batch-size 1";

fn shown(setting: &Setting) -> Value {
    match &setting.value {
        SettingValue::Null => Value::Null,
        SettingValue::Bool(value) => (*value).into(),
        SettingValue::Int(value) => (*value).into(),
        SettingValue::Real(value) => (*value).into(),
        SettingValue::Text(value) => value.as_str().into(),
        SettingValue::List(_) => setting.value.written().into(),
    }
}

#[test]
fn settings_are_megatrons() {
    let mut compared = 0;
    for case in cases(include_str!("../data/megatron/resolved.jsonl")) {
        let id = case["id"].as_str().expect("an id");
        let resolution = resolved(case["flags"].as_str().expect("flags"), int(&case, "world"));
        let plan = resolution.plan.as_ref().unwrap_or_else(|| panic!("{id}: {:?}", resolution.diagnostics));
        for (name, expected) in case["resolved"].as_object().expect("settings") {
            let field = Field::named(name).unwrap_or_else(|| panic!("{name} is no setting"));
            let found = shown(resolution.setting(field).expect("a setting"));
            match field {
                // Megatron shows its parser's default, and builds as many groups as heads.
                Field::NumQueryGroups if case["resolved"]["group_query_attention"] == false => {
                    assert_eq!(found, case["resolved"]["num_attention_heads"], "{id}");
                }
                Field::MoeLayerFreq if expected.is_array() => {
                    let pattern = &plan.model().experts.as_ref().expect("experts").pattern;
                    let expected = expected.as_array().expect("a list").iter().map(|moe| moe == 1);
                    assert!(pattern.iter().copied().eq(expected), "{id}");
                }
                Field::MoeLayerFreq => {
                    assert_eq!(found.as_str(), Some(expected.to_string().as_str()), "{id}")
                }
                _ => assert_eq!(&found, expected, "{id}: {name}"),
            }
            compared += 1;
        }
    }
    assert!(compared > 1500, "{compared} settings compared");
}

/// `none` is a word of the setting, not its absence: as a flag and as the user's value.
#[test]
fn none_is_a_value_where_it_is_a_word() {
    let spoken = [
        ("--position-embedding-type none", Field::PositionEmbeddingType),
        ("--cuda-graph-impl none", Field::CudaGraphImpl),
        ("--num-experts 8 --moe-router-load-balancing-type none", Field::MoeRouterLoadBalancingType),
    ];
    for (none, field) in spoken {
        let resolution = resolved(&format!("{WHOLE} {none}"), 8);
        let setting = resolution.setting(field).expect("a setting");
        assert_eq!((setting.value.written().as_str(), setting.origin), ("none", Origin::Script), "{none}");

        let mut reading = megatron::read(&Argument::split(WHOLE));
        reading.take(Found::new(Field::WorldSize, "8", Origin::User));
        let own = resolve(&[reading], &[(field.name().to_owned(), "none".to_owned())]);
        let setting = own.setting(field).expect("a setting");
        assert_eq!((setting.value.written().as_str(), setting.origin), ("none", Origin::User), "{none}");
    }
    // If it is not one of the words it still cancels a setting.
    let resolution = resolved(&format!("{WHOLE} --num-query-groups 4 --num-query-groups none"), 8);
    let setting = resolution.setting(Field::NumQueryGroups).expect("a setting");
    assert_ne!(setting.origin, Origin::Script);
}

/// Samples packed up to a number of tokens: full packs on all context-parallel ranks (slime `dp_schedule.py`), with
/// slime's precision and its sharded optimizer.
#[test]
fn packed_samples_are_planned_as_full_packs() {
    let flags = "--num-layers 4 --hidden-size 512 --num-attention-heads 8 --vocab-size 32000 --global-batch-size 32 \
                 --use-dynamic-batch-size --max-tokens-per-gpu 4608 --rollout-max-response-len 4608 --context-parallel-size 2";
    let stated =
        |resolution: &Resolution, field| resolution.setting(field).expect("a setting").value.written();
    let expected = [
        (Field::SeqLength, "9216"),
        (Field::MicroBatchSize, "1"),
        // 8 samples for each of 4 replicas, two per pack.
        (Field::NumMicroBatches, "4"),
        (Field::ParamsDtype, "bf16"),
        (Field::UseDistributedOptimizer, "true"),
    ];
    let resolution = resolved(flags, 8);
    assert!(resolution.plan.is_some(), "{:?}", resolution.diagnostics);
    assert!(resolution.diagnostics.iter().any(|said| said.code == Code::PackedSamples));
    for (field, value) in expected {
        assert_eq!(stated(&resolution, field), value, "{}", field.name());
    }
    // slime reads neither of these; a batch that the user sets on the page is one of sequences.
    let resolution = resolved(&format!("{flags} --fp16 --seq-length 2048 --micro-batch-size 2"), 8);
    for (field, value) in
        [(Field::SeqLength, "9216"), (Field::MicroBatchSize, "1"), (Field::ParamsDtype, "fp16")]
    {
        assert_eq!(stated(&resolution, field), value, "{}", field.name());
    }
}

/// The user's settings override the text, in whatever spelling the text has.
#[test]
fn a_choice_goes_before_an_older_spelling() {
    let cases = [
        ("--checkpoint-activations", Field::RecomputeGranularity, "", ""),
        ("--checkpoint-activations", Field::RecomputeGranularity, "selective", "selective"),
        ("--checkpoint-activations", Field::RecomputeGranularity, "full", "full"),
        ("--checkpoint-activations", Field::RecomputeMethod, "block", "block"),
        ("--recompute-activations", Field::RecomputeGranularity, "", ""),
        ("--use-rotary-position-embeddings", Field::PositionEmbeddingType, "none", "none"),
        ("--enable-cuda-graph", Field::CudaGraphImpl, "none", "none"),
    ];
    for (older, field, chosen, value) in cases {
        let mut reading = megatron::read(&Argument::split(&format!("{WHOLE} {older}")));
        reading.take(Found::new(Field::WorldSize, "8", Origin::User));
        let resolution = resolve(&[reading], &[(field.name().to_owned(), chosen.to_owned())]);
        assert_eq!(resolution.setting(field).expect("a setting").value.written(), value, "{older} {chosen}");
        assert!(resolution.plan.is_some(), "{older} {chosen}: {:?}", resolution.diagnostics);
    }
}

/// Up to 23.04 the older flag had its own default number of layers (`megatron/arguments.py`, release 2.6).
#[test]
fn an_older_checkpointing_flag_recomputes_layer_by_layer() {
    let flags = format!("{WHOLE} --activations-checkpoint-method uniform");
    for (more, layers) in [
        ("", 1),
        ("--activations-checkpoint-num-layers 2", 2),
        ("--pretrained-checkpoint checkpoints/bert", 1),
    ] {
        let resolution = resolved(&format!("{flags} {more}"), 8);
        let setting = resolution.setting(Field::RecomputeNumLayers).expect("a setting");
        assert_eq!(setting.value, SettingValue::Int(layers), "{more}");
        assert!(resolution.plan.is_some(), "{more}: {:?}", resolution.diagnostics);
    }
}

#[test]
fn layers_are_spread_as_megatron_spreads_them() {
    let mut refused = 0;
    for case in cases(include_str!("../data/megatron/layer_split.jsonl")) {
        let id = case["id"].as_str().expect("an id");
        let flag = |name: &str| case.get(name) == Some(&Value::Bool(true));
        let count = |name: &str| case.get(name).and_then(Value::as_u64);
        let layout = case.get("pipeline_model_parallel_layout").and_then(Value::as_str);
        let (first, last) =
            (count("num_layers_in_first_pipeline_stage"), count("num_layers_in_last_pipeline_stage"));
        let split = match layout {
            Some(text) => StageSplit::Layout(text.to_owned()),
            None if first.is_some() || last.is_some() => StageSplit::Ends { first, last },
            None => StageSplit::Even {
                account_for_embedding: flag("account_for_embedding_in_pipeline_split"),
                account_for_loss: flag("account_for_loss_in_pipeline_split"),
            },
        };
        let sizes = StageSizes {
            num_layers: int(&case, "num_layers"),
            pipeline: int(&case, "pp"),
            virtual_pipeline: count("virtual_pipeline_model_parallel_size").unwrap_or(1),
            mtp_num_layers: layout.map_or(0, |text| text.matches('m').count() as u64),
        };
        let map = StageMap::new(sizes, &split);
        if case.get("error").is_some() {
            assert!(map.is_err(), "{id} is refused");
            refused += 1;
            continue;
        }
        let map = map.unwrap_or_else(|reason| panic!("{id}: {reason:?}"));
        let expected = case["stages"].as_array().expect("stages");
        assert_eq!(map.stages.len(), expected.len(), "{id}");
        for (stage, expected) in map.stages.iter().zip(expected) {
            for (chunk, expected) in stage.chunks.iter().zip(expected.as_array().expect("chunks")) {
                assert_eq!(Some(chunk.layers.end - chunk.layers.start), expected[0].as_u64(), "{id}");
                match expected.get(2).and_then(Value::as_str) {
                    None => assert_eq!(Some(chunk.layers.start), expected[1].as_u64(), "{id}"),
                    Some(held) => {
                        assert_eq!(chunk.embedding, held.contains('e'), "{id}");
                        assert_eq!(chunk.output_layer, held.contains('l'), "{id}");
                        assert_eq!(chunk.mtp_layers, held.matches('m').count() as u64, "{id}");
                    }
                }
            }
        }
    }
    assert!(refused >= 4, "{refused} refused");
}

pub(crate) const SMALL: &str =
    "--num-layers 4 --hidden-size 256 --num-attention-heads 8 --seq-length 128 --bf16";

#[test]
fn batches_are_megatrons() {
    let mut compared = 0;
    for case in cases(include_str!("../data/megatron/microbatches.jsonl")) {
        let id = case["id"].as_str().expect("an id");
        if let Some(vocab) = case.get("vocab_size").and_then(Value::as_u64) {
            let (tp, block) = (int(&case, "tp"), int(&case, "make_vocab_size_divisible_by"));
            let flags = format!(
                "{SMALL} --micro-batch-size 1 --vocab-size {vocab} --make-vocab-size-divisible-by {block} --tensor-model-parallel-size {tp}"
            );
            let padded = resolved(&flags, tp).setting(Field::PaddedVocabSize).map(shown);
            assert_eq!(padded, Some(case["padded_vocab_size"].clone()), "{id}");
            compared += 1;
            continue;
        }
        let mut flags =
            format!("{SMALL} --vocab-size 1000 --micro-batch-size {}", int(&case, "micro_batch_size"));
        for (name, flag) in
            [("global_batch_size", "--global-batch-size"), ("rampup_batch_size", "--rampup-batch-size")]
        {
            let words = match case.get(name) {
                Some(Value::Array(words)) => words.iter().map(Value::to_string).collect::<Vec<_>>().join(" "),
                Some(Value::Number(number)) => number.to_string(),
                _ => continue,
            };
            flags.push_str(&format!(" {flag} {words}"));
        }
        if case.get("decrease_batch_size_if_needed").is_some() {
            flags.push_str(" --decrease-batch-size-if-needed");
        }
        if let Some(steps) = case.get("step_batch_size_schedule").and_then(Value::as_str) {
            // In a script, words with spaces are one argument.
            flags.push_str(&format!(" --step-batch-size-schedule={}", steps.replace(' ', ",")));
        }
        let resolution = resolved(&flags, int(&case, "dp"));
        if case.get("error").is_some() {
            assert!(resolution.plan.is_none(), "{id} is refused");
        } else {
            let expected = match case.get("num_microbatches") {
                Some(count) => count.as_u64(),
                None => case["steps"].as_array().and_then(|steps| steps.last()?["num_microbatches"].as_u64()),
            };
            let plan = resolution.plan.unwrap_or_else(|| panic!("{id}: {:?}", resolution.diagnostics));
            assert_eq!(Some(plan.recipe().num_micro_batches), expected, "{id}");
        }
        compared += 1;
    }
    assert!(compared > 15, "{compared} compared");
}
