//! Settings at and beyond their bounds: refused with a sentence, or estimated without an overflow.

use shardscope::estimate::{flops, memory, parameters};
use shardscope::intake::{Argument, megatron, resolve};
use shardscope::plan::{Field, Kind};

use super::random::Random;

const BASES: [&str; 3] = [
    "--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 1 --bf16",
    "--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 1 --bf16 \
     --num-experts 8 --moe-ffn-hidden-size 512 --moe-shared-expert-intermediate-size 512 --sequence-parallel",
    "--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 1 --bf16 \
     --multi-latent-attention --kv-lora-rank 64 --num-experts 16 --mtp-num-layers 1 --position-embedding-type rope",
];

fn extreme(field: Field, random: &mut Random) -> String {
    let number = |least: u64, most: u64, random: &mut Random| match random.below(8) {
        0 => most,
        1 => most - 1,
        2 => least,
        3 => most.saturating_add(1),
        4 => 1 << random.below(63),
        5 => 3 * random.below(100),
        6 => most / 2,
        _ => 1 << random.below(12),
    };
    match field.kind() {
        Kind::Count(least, most) => number(least, most, random).to_string(),
        Kind::Real(..) => ["0", "1", "0.5", "-1", "nan", "1e300"][random.below(6) as usize].to_owned(),
        Kind::Flag => ["true", "false"][random.below(2) as usize].to_owned(),
        Kind::Word(words) => words[random.below(words.len() as u64) as usize].to_owned(),
        Kind::Text => {
            ["", "1", "Et*4|t*4L", "([0]*4+[1]*4)", "999999999999"][random.below(5) as usize].to_owned()
        }
        Kind::Counts => ["1 1 1", "2,2", "18446744073709551615", ""][random.below(4) as usize].to_owned(),
        Kind::Words => ["core_attn", "moe mlp", "x", "a2a"][random.below(4) as usize].to_owned(),
    }
}

#[test]
fn no_setting_overflows_or_panics() {
    let mut random = Random::new(7);
    let (mut plans, mut refused) = (0, 0);
    for round in 0..600_usize {
        let reading = megatron::read(&Argument::split(BASES[round % BASES.len()]));
        let mut overrides = vec![("world_size".to_owned(), (1_u64 << random.below(8)).to_string())];
        for _ in 0..=random.below(4) {
            let field = Field::ALL[random.below(Field::ALL.len() as u64) as usize];
            overrides.push((field.name().to_owned(), extreme(field, &mut random)));
        }
        let resolution = resolve(&[reading], &overrides);
        match &resolution.plan {
            Some(plan) => {
                plans += 1;
                let total = parameters(plan).total.get();
                assert!(total > 0, "{overrides:?}");
                assert!(
                    flops(plan).conventions().len() == 5 && !memory(plan).ranks.is_empty(),
                    "{overrides:?}"
                );
            }
            None => {
                refused += 1;
                let said = resolution.diagnostics.iter().any(|said| said.severity.name() == "error");
                assert!(said, "refused without a word: {overrides:?}");
            }
        }
    }
    assert!(plans > 100 && refused > 100, "{plans} plans, {refused} refused");
}
