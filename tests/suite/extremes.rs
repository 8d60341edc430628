//! Settings at and beyond their limits: rejected with a message, or estimated without an overflow.

use shardscope::estimate::{flops, memory, parameters};
use shardscope::launch::{Argument, megatron, resolve};
use shardscope::plan::{Field, ValueKind};

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, prop_oneof};
use proptest::sample::select;
use proptest::strategy::{Union, ValueTree};
use proptest::test_runner::TestRunner;

use super::drawn::config;

const BASES: [&str; 3] = [
    "--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 1 --bf16",
    "--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 1 --bf16 \
     --num-experts 8 --moe-ffn-hidden-size 512 --moe-shared-expert-intermediate-size 512 --sequence-parallel",
    "--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 1 --bf16 \
     --multi-latent-attention --kv-lora-rank 64 --num-experts 16 --mtp-num-layers 1 --position-embedding-type rope",
];

/// Values of a setting at and beyond its limits.
fn extreme(field: Field) -> Union<proptest::strategy::BoxedStrategy<String>> {
    let one_of = |words: &[&'static str]| select(words.to_vec()).prop_map(str::to_owned).boxed();
    let values = match field.kind() {
        ValueKind::Count(least, most) => prop_oneof![
            select(vec![most, most - 1, least, most.saturating_add(1), most / 2]),
            (0..63_u32).prop_map(|power| 1 << power),
            (0..100_u64).prop_map(|third| 3 * third),
            (0..12_u32).prop_map(|power| 1 << power),
        ]
        .prop_map(|number| number.to_string())
        .boxed(),
        ValueKind::Real(..) => one_of(&["0", "1", "0.5", "-1", "nan", "1e300"]),
        ValueKind::Flag => one_of(&["true", "false"]),
        ValueKind::Word(words) => one_of(words),
        ValueKind::Text => one_of(&["", "1", "Et*4|t*4L", "([0]*4+[1]*4)", "999999999999"]),
        ValueKind::Counts => one_of(&["1 1 1", "2,2", "18446744073709551615", ""]),
        ValueKind::Words => one_of(&["core_attn", "moe mlp", "x", "a2a"]),
    };
    Union::new([values])
}

/// A world size, and some settings at their limits.
fn overrides() -> impl Strategy<Value = Vec<(String, String)>> {
    let world = (0..8_u32).prop_map(|power| ("world_size".to_owned(), (1_u64 << power).to_string()));
    let setting = select(Field::ALL).prop_flat_map(|field| (Just(field.name().to_owned()), extreme(field)));
    (world, vec(setting, 1..6)).prop_map(|(world, mut settings)| {
        settings.insert(0, world);
        settings
    })
}

/// Whether the settings give a plan; otherwise they are rejected with a message, and a plan is estimated.
fn is_plan(base: &str, overrides: &[(String, String)]) -> bool {
    let resolution = resolve(&[megatron::read(&Argument::split(base))], overrides);
    match &resolution.plan {
        Some(plan) => {
            assert!(parameters(plan).total.get() > 0, "{overrides:?}");
            assert!(flops(plan).conventions().len() == 5 && !memory(plan).ranks.is_empty(), "{overrides:?}");
        }
        None => {
            let said = resolution.diagnostics.iter().any(|said| said.severity.name() == "error");
            assert!(said, "refused without a word: {overrides:?}");
        }
    }
    resolution.plan.is_some()
}

proptest::proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn no_setting_overflows_or_panics(base in select(&BASES), overrides in overrides()) {
        is_plan(base, &overrides);
    }
}

#[test]
fn settings_at_their_bounds_are_plans_as_often_as_not() {
    let mut runner = TestRunner::new(config(1));
    let plans = (0..200)
        .filter(|round| {
            let drawn = overrides().new_tree(&mut runner).expect("settings").current();
            is_plan(BASES[round % BASES.len()], &drawn)
        })
        .count();
    assert!((40..=160).contains(&plans), "{plans} plans of 200");
}
