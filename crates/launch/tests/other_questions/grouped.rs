//! Settings files of custom programs, with the Trainer's arguments in a group.

use super::{said, stopped, value};
use shardscope_launch::Resolution;
use shardscope_plan::Field;

const MODEL: &str = "model:\n  name: meta-llama/Llama-3.2-3B-Instruct\n  dtype: bfloat16\n";
const DATA: &str = "data:\n  dataset: gsm8k\n  train_split: train\n  max_seq_length: 1024\n";
const LORA: &str = "lora:\n  r: 16\n  lora_alpha: 32\n  lora_dropout: 0.05\n  target_modules: [q_proj, v_proj]\n  bias: none\n  task_type: CAUSAL_LM\n";
const TRAINING: &str = "training:\n  output_dir: out\n  num_train_epochs: 2\n  per_device_train_batch_size: 4\n  gradient_accumulation_steps: 2\n  \
     learning_rate: 2.0e-4\n  optimizer: adamw_torch\n  bf16: true\n  gradient_checkpointing: true\n";

fn file(parts: &[&str]) -> Resolution {
    said("config.yaml", &parts.concat(), &[("world_size", "2")])
}

#[test]
fn groups_say_what_the_trainers_arguments_do() {
    let read =
        file(&[MODEL, DATA, LORA, TRAINING, "wandb:\n  project: a\nevaluation:\n  num_samples: 100\n"]);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    for (field, shown) in [
        (Field::HiddenSize, "3072"),
        (Field::SeqLength, "1024"),
        (Field::MicroBatchSize, "4"),
        (Field::NumMicroBatches, "2"),
        (Field::TrainType, "lora"),
        (Field::LoraRank, "16"),
        (Field::LoraTargetModules, "q_proj v_proj"),
        (Field::ParamsDtype, "bf16"),
        (Field::GradientCheckpointing, "true"),
        (Field::Software, "hf_transformers"),
    ] {
        assert_eq!(value(&read, field), shown, "{field:?}");
    }
    // The same keys without groups.
    let flat = said(
        "config.yaml",
        "model_name_or_path: meta-llama/Llama-3.2-3B-Instruct\ntorch_dtype: bfloat16\nmax_seq_length: 1024\nuse_peft: true\nlora_r: 16\n\
         lora_alpha: 32\nlora_dropout: 0.05\nlora_target_modules: [q_proj, v_proj]\nper_device_train_batch_size: 4\ngradient_accumulation_steps: 2\n\
         optim: adamw_torch\nbf16: true\ngradient_checkpointing: true\npreference_logits: own\n",
        &[("world_size", "2")],
    );
    assert_eq!(value(&flat, Field::LoraRank), value(&read, Field::LoraRank));
}

#[test]
fn four_bits_and_switched_off_adapters_are_read() {
    let bits = "quantization:\n  load_in_4bit: true\n  quant_type: nf4\n  use_double_quant: true\n  compute_dtype: bfloat16\n";
    let quantized = file(&[MODEL, DATA, LORA, bits, TRAINING]);
    assert_eq!(value(&quantized, Field::TrainType), "qlora");
    assert_eq!(value(&quantized, Field::BaseQuantization), "nf4");
    assert_eq!(value(&quantized, Field::DoubleQuantization), "true");
    let off = file(&[MODEL, DATA, &LORA.replace("  r: 16\n", "  enabled: false\n  r: 16\n"), TRAINING]);
    assert_ne!(value(&off, Field::TrainType), "lora");
}

#[test]
fn what_no_group_is_known_for_stops_and_what_is_missing_is_asked() {
    stopped(&file(&[MODEL, DATA, "ia3:\n  target_modules: [k_proj]\n", TRAINING]), &["ia3.target_modules"]);
    // Whether the program trains adapters and how long the samples are is asked.
    let open = file(&[MODEL, TRAINING]);
    let asked: Vec<&str> = open.questions.iter().map(|question| question.name()).collect();
    assert!(
        asked.contains(&Field::TrainType.name()) && asked.contains(&Field::SeqLength.name()),
        "{asked:?}"
    );
    // Rollouts, a teacher and several trainings are not described by these arguments.
    for other in [
        "grpo:\n  num_generations: 8\n",
        "teacher:\n  name: a/b\n",
        "sft:\n  per_device_train_batch_size: 1\n  learning_rate: 1.0e-5\n",
    ] {
        let read = file(&[MODEL, DATA, other, TRAINING]);
        assert!(read.plan.is_none() && value(&read, Field::MicroBatchSize).is_empty(), "{other}");
    }
}
