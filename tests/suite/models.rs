//! The catalog's models compared with published parameter counts (the models' own cards and papers): equal.

use shardscope::catalog::{find, hub_names, model, model_names};
use shardscope::estimate::parameters;
use shardscope::launch::{Found, Origin, Reading, resolve};
use shardscope::operators::Account;
use shardscope::plan::{Field, Plan};

fn plan(name: &str) -> Plan {
    let (_, settings) = model(name).expect("a known model");
    let found =
        settings.into_iter().map(|(field, value)| Found::new(field, value, Origin::Catalog)).collect();
    let mut reading = Reading { found, ..Reading::default() };
    let positions = reading.value(Field::MaxPositionEmbeddings).unwrap_or("2048").to_owned();
    for (field, value) in [
        (Field::SeqLength, positions.as_str()),
        (Field::MicroBatchSize, "1"),
        (Field::WorldSize, "1"),
        (Field::PadVocabSize, "false"),
        (Field::Bf16, "true"),
    ] {
        reading.take(Found::new(field, value, Origin::User));
    }
    // A vision tower is supported in modules of transformers, frozen.
    if reading.value(Field::VisionTower).is_some() {
        reading.take(Found::new(Field::Software, "hf_transformers", Origin::User));
        reading.take(Found::new(Field::FrozenModules, "vision_tower multi_modal_projector", Origin::User));
        // InternLM 2's modules beside InternVL's tower were not recorded: checkpointed layers keep their inputs all the same.
        if reading.value(Field::UnrecordedModules).is_some() {
            reading.take(Found::new(Field::GradientCheckpointing, "true", Origin::User));
            reading.take(Found::new(Field::VisionInputGrads, "false", Origin::User));
        }
    }
    // So is an encoder.
    if reading.value(Field::EncoderLayers).is_some() {
        reading.take(Found::new(Field::Software, "hf_transformers", Origin::User));
        reading.take(Found::new(Field::SourceLength, "512", Origin::User));
    }
    // Models with norms only after attention and MLP or without weights, with xIELU or with short convolutions are only
    // supported there too.
    let only_there = ["xielu", "norms_without_weights", "clipped_queries"];
    let variants = reading.value(Field::ModuleVariants).unwrap_or_default();
    let differs = only_there.iter().any(|variant| variants.contains(variant));
    let short = reading.value(Field::LinearMixer) == Some("short_convolution");
    if reading.value(Field::NormsBehind).is_some() || differs || short {
        reading.take(Found::new(Field::Software, "hf_transformers", Origin::User));
        reading.take(Found::new(Field::GradientCheckpointing, "true", Origin::User));
    }
    let resolution = resolve(&[reading], &[]);
    resolution.plan.unwrap_or_else(|| panic!("{name}: {:?}", resolution.diagnostics))
}

#[test]
fn every_model_is_a_plan() {
    for name in model_names() {
        assert!(parameters(&plan(name)).total.get() > 100_000_000, "{name}");
    }
}

/// The engine's own count for every Hub model whose layers it supports, compared with the library's: within 0.1 %.
#[test]
fn models_on_the_hub_count_as_the_library_counts_them() {
    let (mut equal, mut compared, mut towers, mut before) = (0, 0, 0, 0);
    for name in hub_names() {
        let known = find(name).model().unwrap_or_else(|| panic!("{name}"));
        let Some(read) = known.architecture() else { continue };
        if !known.lacking().is_empty() || std::mem::replace(&mut before, read.parameters) == read.parameters {
            continue;
        }
        let counted = parameters(&plan(name));
        let beside = counted.accounts.get(Account::VisionTower).get();
        assert_eq!(beside, read.tower.map_or(0, |tower| tower.parameters), "{name}");
        towers += u32::from(beside > 0);
        let total = counted.total.get() - beside;
        compared += 1;
        equal += u32::from(total == read.parameters);
        assert!(
            total.abs_diff(read.parameters) <= read.parameters / 1000,
            "{name}: {total}, {}",
            read.parameters
        );
        // Without a query latent, Transformer Engine's query projection begins with a norm, which does not count as a
        // gap.
        let normed = read.shape.latent.is_some_and(|latent| latent.query_rank.is_none());
        let attending = read.shape.mixers.chars().filter(|sign| normed && *sign != 'M').count() as u64;
        let counted = total - attending * read.shape.hidden;
        assert_eq!(counted, read.in_megatron, "{name}: the count that gaps are told by");
    }
    println!("{compared} compared, {equal} equal");
    assert!(compared >= 220 && towers >= 20, "{compared}, {towers}");
}

#[test]
fn models_have_their_published_parameters() {
    for (name, published) in [
        ("GPT-2-124M", 124_439_808),
        ("GPT-2-355M", 354_823_168),
        ("GPT-2-774M", 774_030_080),
        ("GPT-2-1.5B", 1_557_611_200),
        ("Llama-2-7B", 6_738_415_616),
        ("Llama-2-13B", 13_015_864_320),
        ("Llama-2-70B", 68_976_648_192),
        ("Llama-3-8B", 8_030_261_248),
        ("Llama-3-70B", 70_553_706_496),
        ("Llama-3.1-405B", 405_853_388_800),
        ("Llama-3.2-1B", 1_235_814_400),
        ("Llama-3.2-3B", 3_212_749_824),
        ("Mistral-7B", 7_241_732_096),
        ("Mixtral-8x7B", 46_702_792_704),
        ("Qwen2.5-0.5B", 494_032_768),
        ("Qwen2.5-1.5B", 1_543_714_304),
        ("Qwen2.5-3B", 3_085_938_688),
        ("Qwen2.5-7B", 7_615_616_512),
        ("Qwen2.5-14B", 14_770_033_664),
        ("Qwen2.5-32B", 32_763_876_352),
        ("Qwen2.5-72B", 72_706_203_648),
        ("Qwen3-0.6B", 596_049_920),
        ("Qwen3-8B", 8_190_735_360),
        ("Qwen3-30B-A3B", 30_532_122_624),
    ] {
        assert_eq!(parameters(&plan(name)).total.get(), published, "{name}");
    }
}
