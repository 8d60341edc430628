//! Fine-tuning by the Trainer of transformers: what is usual, the least sharded way first.

use super::choice::{Choice, Objective};
use super::said::{Named, count, say};

/// Default sequences per step: Tulu 3's supervised fine-tuning (arXiv 2411.15124).
const STEP_SEQUENCES: u64 = 128;
/// Rank and scale of adapters: QLoRA's (arXiv 2305.14314, appendix B.2).
const RANK: u64 = 64;
const ALPHA: u64 = 16;

/// The plans to try, the least sharded first: replicas, then shards of everything; each with its activations saved,
/// then with every layer recomputed.
pub(super) fn ways(base: &Named, choice: &Choice) -> Vec<Named> {
    let engines: &[&str] = match choice.objective {
        // One GPU has nothing to shard; FSDP there would only add its buffers.
        _ if choice.gpus == 1 => &["ddp"],
        // bitsandbytes' 4-bit weights are replicated on every GPU.
        Objective::QLora => &["ddp"],
        _ => &["ddp", "fsdp2"],
    };
    let mut ways = Vec::new();
    for engine in engines {
        // Recomputation before sharding: it costs time, but keeps the software simplest.
        for recompute in [false, true] {
            ways.push(way(base, choice, engine, recompute));
        }
    }
    ways
}

fn way(base: &Named, choice: &Choice, engine: &str, recompute: bool) -> Named {
    let mut settings = base.clone();
    say(&mut settings, "software", "hf_transformers");
    say(&mut settings, "params_dtype", "bf16");
    say(&mut settings, "bf16", "true");
    say(&mut settings, "attn_implementation", "flash_attention_2");
    say(&mut settings, "packing", "true");
    say(&mut settings, "data_parallel_engine", engine);
    if recompute {
        say(&mut settings, "gradient_checkpointing", "true");
    }
    let gpus = choice.gpus.max(1);
    count(&mut settings, "global_batch_size", STEP_SEQUENCES.div_ceil(gpus).max(1) * gpus);
    if choice.objective == Objective::Dpo {
        // The reference is the base with the adapters off, as TRL does with a PEFT model: no second copy of the
        // weights.
        say(&mut settings, "training_objective", "dpo");
        say(&mut settings, "reference_model", "adapters");
    }
    match choice.objective {
        // Pre-training and rollouts do not use this trainer.
        Objective::PreTrain | Objective::Rl | Objective::FullFineTune => {
            say(&mut settings, "train_type", "full");
        }
        Objective::Lora | Objective::Dpo => say(&mut settings, "train_type", "lora"),
        Objective::QLora => {
            say(&mut settings, "train_type", "qlora");
            say(&mut settings, "base_quantization", "nf4");
            say(&mut settings, "double_quantization", "true");
        }
    }
    if matches!(choice.objective, Objective::Lora | Objective::QLora | Objective::Dpo) {
        count(&mut settings, "lora_rank", RANK);
        count(&mut settings, "lora_alpha", ALPHA);
        // QLoRA adapts every linear layer, which the paper shows to matter.
        say(&mut settings, "lora_target_modules", "all-linear");
    }
    settings
}
