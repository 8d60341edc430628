//! Prints a digest of the document of each of a number of randomly drawn plans, one per line: `cargo xtask
//! same-everywhere` runs it natively and as WebAssembly, and compares. With a second argument it prints the full
//! document of the plan with that number.

use shardscope::Run;

/// Settings, of each of which one alternative is drawn; words are separated by spaces.
const DRAWN: &[&[&str]] = &[
    &["num_layers=4", "num_layers=12", "num_layers=48"],
    &["hidden_size=1024", "hidden_size=4096", "hidden_size=7168"],
    &["num_attention_heads=16", "num_attention_heads=32"],
    &["seq_length=512", "seq_length=4096", "seq_length=32768"],
    &["micro_batch_size=1", "micro_batch_size=2"],
    &["global_batch_size=64", "global_batch_size=1024"],
    &["world_size=8", "world_size=64", "world_size=1024"],
    &["accelerator=H100-SXM", "accelerator=A100-SXM-80GB", "accelerator=MI300X", "accelerator=B200"],
    &["", "tensor_model_parallel_size=2", "tensor_model_parallel_size=4 sequence_parallel=true"],
    &["", "pipeline_model_parallel_size=2", "pipeline_model_parallel_size=4"],
    &["", "", "context_parallel_size=2"],
    &["", "use_distributed_optimizer=true", "zero_stage=2", "zero_stage=3"],
    &[
        "",
        "recompute_granularity=selective",
        "recompute_granularity=full recompute_method=uniform recompute_num_layers=1",
    ],
    &["", "", "num_experts=8 moe_router_topk=2 moe_ffn_hidden_size=512"],
    &["", "", "mixer_pattern=MM* linear_mixer=mamba2", "mixer_pattern=www* attention_window=256"],
    &["", "", "software=torchtitan", "software=nanotron", "software=hf_transformers train_type=full"],
    &["", "swiglu=true normalization=RMSNorm position_embedding_type=rope"],
    &["", "", "fp8=hybrid", "optimizer=muon", "optimizer=sgd"],
];

/// The next number of splitmix64 (Steele et al. 2014).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// FNV-1a.
fn digest(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn main() {
    let mut words = std::env::args().skip(1).filter_map(|word| word.parse::<usize>().ok());
    let (wanted, shown) = (words.next().unwrap_or(1_000), words.next());
    // A fixed seed: both programs must draw the same plans.
    let (mut state, mut plans) = (19_u64, 0);
    while plans < wanted {
        let mut run =
            Run::new("").setting("bf16", "true").setting("vocab_size", "32000").setting("gpus_per_node", "8");
        for alternatives in DRAWN {
            // The high bits are of better quality; modulo is uniform enough for a few alternatives.
            let drawn = usize::try_from(next(&mut state) >> 33).unwrap_or(0) % alternatives.len();
            for (name, value) in alternatives[drawn].split(' ').filter_map(|word| word.split_once('=')) {
                run = run.setting(name, value);
            }
        }
        let answer = run.answer();
        // A draw that contradicts itself is skipped in both programs alike.
        if answer.report().is_none() {
            continue;
        }
        let document = answer.to_json();
        match shown {
            Some(number) if number == plans => println!("{document}"),
            Some(_) => {}
            None => println!("{plans} {:016x} {}", digest(&document), document.len()),
        }
        plans += 1;
    }
}
