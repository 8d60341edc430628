//! Commands that start a trainer's own program by name, with a configuration given by name: torchtune's and litgpt's.

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::{Field, Origin};
use shardscope_source::{Code, Source};

fn resolved(files: &[(&str, &str)]) -> Resolution {
    let source = Source::from_files(files.iter().copied());
    read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
}

fn script(text: &str) -> Resolution {
    resolved(&[("run.sh", text)])
}

#[track_caller]
fn holds(read: &Resolution, wanted: &[(Field, &str)]) {
    for (field, value) in wanted {
        let found = read.setting(*field).map(|setting| setting.value.written());
        assert_eq!(found.as_deref(), Some(*value), "{}", field.name());
    }
}

/// The command for `recipes/configs/llama3_1/8B_lora.yaml` of torchtune 0.6.1, with overrides as in its documentation.
#[test]
fn a_configuration_of_torchtunes_is_known_by_its_name() {
    let read = script(
        "tune run --nproc_per_node 2 lora_finetune_distributed --config llama3_1/8B_lora batch_size=4 model.lora_rank=64 \
         tokenizer.max_seq_len=2048 dataset.packed=True",
    );
    assert!(read.plan.is_some(), "{:?} {:?}", read.diagnostics, read.not_modelled);
    holds(
        &read,
        &[
            (Field::Software, "torchtune_0_6"),
            (Field::NumLayers, "32"),
            (Field::WorldSize, "2"),
            (Field::MicroBatchSize, "4"),
            (Field::NumMicroBatches, "8"),
            (Field::LoraRank, "64"),
            (Field::LoraTargetModules, "q_proj v_proj output_proj gate_proj up_proj down_proj"),
            (Field::SeqLength, "2048"),
            (Field::Packing, "true"),
        ],
    );
    // Values from the file that the words do not override are nobody's own setting.
    let origin = |field: Field| read.setting(field).map(|setting| setting.origin);
    assert_eq!(origin(Field::NumMicroBatches), Some(Origin::Default));
    assert_eq!(origin(Field::LoraRank), Some(Origin::Script));
}

#[test]
fn a_recipe_on_one_device_is_one() {
    let read = script(
        "tune run full_finetune_single_device --config llama3_2/1B_full_single_device tokenizer.max_seq_len=1024",
    );
    assert!(read.plan.is_some(), "{:?} {:?}", read.diagnostics, read.not_modelled);
    holds(
        &read,
        &[(Field::WorldSize, "1"), (Field::Optimizer, "paged_adamw_8bit"), (Field::MicroBatchSize, "4")],
    );
}

/// A user's file of that name takes precedence over the one shipped with torchtune; words override it in the same way,
/// and `~` removes a key.
#[test]
fn a_file_of_ones_own_goes_before_the_shipped_one() {
    let file = "model: {_component_: torchtune.models.llama3_1.lora_llama3_1_8b, lora_attn_modules: [q_proj], lora_rank: 16, lora_alpha: 32}\n\
        tokenizer: {_component_: torchtune.models.llama3.llama3_tokenizer, max_seq_len: 512}\n\
        optimizer: {_component_: torch.optim.AdamW, fused: True}\nloss: {_component_: torchtune.modules.loss.CEWithChunkedOutputLoss}\n\
        batch_size: 1\ngradient_accumulation_steps: 4\ncompile: True\nenable_activation_checkpointing: True\ndtype: bf16\n";
    let line = "tune run --nproc_per_node 4 lora_finetune_distributed --config llama3_1/8B_lora model.lora_rank=8 ~compile";
    let read = resolved(&[("run.sh", line), ("8B_lora.yaml", file)]);
    assert!(read.plan.is_some(), "{:?} {:?}", read.diagnostics, read.not_modelled);
    holds(
        &read,
        &[
            (Field::LoraRank, "8"),
            (Field::LoraAlpha, "32"),
            (Field::SeqLength, "512"),
            (Field::NumMicroBatches, "4"),
            (Field::WorldSize, "4"),
        ],
    );
    // A file that is not shipped is asked for by name.
    let other = script("tune run --nproc_per_node 4 lora_finetune_distributed --config my/own.yaml");
    assert!(
        other
            .diagnostics
            .iter()
            .any(|said| said.code == Code::MissingFile && said.message.contains("own.yaml"))
    );
}

/// `litgpt/finetune/lora.py:setup` and `litgpt/utils.py:get_default_supported_precision` of litgpt 0.5.13: unless a
/// true precision is requested, it trains fp32 weights under autocast.
#[test]
fn litgpts_commands_have_the_defaults_of_their_programs() {
    let line = "litgpt finetune_lora meta-llama/Llama-3.2-1B --devices 4 --train.micro_batch_size 2 --train.max_seq_length 1024";
    let read = script(&format!("{line} --precision bf16-true"));
    assert!(read.plan.is_some(), "{:?} {:?}", read.diagnostics, read.not_modelled);
    holds(
        &read,
        &[
            (Field::Software, "litgpt"),
            (Field::NumLayers, "16"),
            (Field::WorldSize, "4"),
            (Field::GlobalBatchSize, "16"),
            (Field::MicroBatchSize, "2"),
            (Field::LoraRank, "8"),
            (Field::LoraTargetModules, "q_proj v_proj"),
        ],
    );
    for mixed in [line.to_owned(), format!("{line} --precision bf16-mixed")] {
        let read = script(&mixed);
        assert!(read.plan.is_none());
        let stops: Vec<&str> = read.not_modelled.iter().map(|item| item.name.as_str()).collect();
        assert_eq!(stops, ["precision"], "{mixed}");
    }
    // On one GPU it can be read: only matrix products are cast.
    for (precision, half) in
        [("", "bf16"), ("--precision bf16-mixed", "bf16"), ("--precision 16-mixed", "fp16")]
    {
        let one = script(&format!("{} {precision}", line.replace("--devices 4 ", "")));
        assert!(one.plan.is_some(), "{precision}: {:?} {:?}", one.diagnostics, one.not_modelled);
        holds(&one, &[(Field::ParamsDtype, "fp32"), (Field::Autocast, half), (Field::WorldSize, "1")]);
    }
    // FSDP1 of full fine-tuning gathers in 16 bits what it holds in fp32.
    let full = script(&format!("{line} --precision bf16-mixed").replace("finetune_lora", "finetune_full"));
    assert!(full.plan.is_some(), "{:?} {:?}", full.diagnostics, full.not_modelled);
    let of_full = [
        (Field::ParamsDtype, "fp32"),
        (Field::Autocast, "bf16"),
        (Field::DataParallelEngine, "fsdp1"),
        (Field::GradientCheckpointing, "true"),
    ];
    holds(&full, &of_full);
    // Lightning before 2.6.2 makes what FSDP shards in 16 bits.
    let warned = |read: &shardscope_launch::Resolution| {
        read.diagnostics.iter().any(|said| said.message.contains("2.6.2"))
    };
    assert!(warned(&full));
    let whole = line.replace("finetune_lora", "finetune_full");
    for (installs, stops) in [("2.5.0", true), ("2.6.1", true), ("2.6.2", false)] {
        let dated = |more: &str| script(&format!("pip install lightning=={installs}\n{whole} {more}"));
        let named = dated("").not_modelled.iter().any(|item| item.name == "lightning");
        assert_eq!(named, stops, "{installs}");
        assert!(dated("--precision bf16-true").not_modelled.is_empty(), "{installs}");
    }
    assert!(!warned(&script(&format!("{whole} --precision bf16-true"))));
    // `args.py:TrainArgs` floors: 125 over 8 GPUs in fives is three times 5 on each.
    let of = |batch: &str| {
        let line =
            whole.replace("--devices 4 --train.micro_batch_size 2", "--devices 8 --train.micro_batch_size 5");
        script(&format!("{line} --precision bf16-true --train.global_batch_size {batch}"))
    };
    holds(&of("125"), &[(Field::GlobalBatchSize, "120"), (Field::NumMicroBatches, "3")]);
    assert!(of("125").plan.is_some() && of("39").plan.is_none());
    // `utils.py:parse_devices`: all that there are.
    let all = script(&format!("{} --precision bf16-true", whole.replace("--devices 4", "--devices -1")));
    assert!(all.plan.is_none() && all.not_modelled.is_empty(), "{:?}", all.not_modelled);
    assert!(all.diagnostics.iter().all(|said| !said.message.contains("-1")), "{:?}", all.diagnostics);
    let continued = script(
        "litgpt pretrain tiny-llama-1.1b --devices 8 --initial_checkpoint_dir a --train.max_seq_length 2048",
    );
    assert!(continued.plan.is_some() && continued.not_modelled.is_empty(), "{:?}", continued.not_modelled);
    assert!(continued.diagnostics.iter().all(|said| !said.message.contains("initial_checkpoint_dir")));
    // Before litgpt 0.5 the training method was a separate word.
    let old = script(
        "litgpt finetune full --checkpoint_dir checkpoints/meta-llama/Llama-3.2-1B --precision bf16-true --train.max_seq_length 1024",
    );
    assert!(old.plan.is_some(), "{:?} {:?}", old.diagnostics, old.not_modelled);
    holds(&old, &[(Field::WorldSize, "1"), (Field::GlobalBatchSize, "16"), (Field::HiddenSize, "2048")]);
}
