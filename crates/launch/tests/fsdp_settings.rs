//! FSDP as transformers' Trainer is told of it: words, JSON in one word, and a file that may be beside the command.

use shardscope_bash::Environment;
use shardscope_launch::{Asked, Request, Resolution, read};
use shardscope_plan::{Field, NumberFormat, Recompute};
use shardscope_source::Source;

/// A run of transformers' example with these options.
fn command(options: &str) -> String {
    format!(
        "torchrun --nproc_per_node 8 run_clm.py --model_name_or_path Qwen/Qwen2.5-7B --bf16 --block_size 2048 \
         --per_device_train_batch_size 2 {options}\n"
    )
}

fn resolved_files(files: &[(&str, &str)], answers: &[(&str, &str)]) -> Resolution {
    let source = Source::from_files(files.iter().copied());
    let overrides: Vec<(String, String)> =
        answers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    read(&Request { source: &source, environment: &Environment::default(), overrides: &overrides })
}

fn resolved(options: &str, file: Option<&str>, answers: &[(&str, &str)]) -> Resolution {
    let run = command(options);
    let mut files = vec![("run.sh", run.as_str())];
    files.extend(file.map(|text| ("fsdp_config.json", text)));
    resolved_files(&files, answers)
}

/// Whether layers are recomputed, once there is a plan.
fn recomputes(read: &Resolution) -> bool {
    let plan = read.plan.as_ref().unwrap_or_else(|| panic!("no plan: {:?}", read.diagnostics));
    matches!(plan.recipe().recompute, Recompute::Uniform { .. })
}

const SHARDS: &str = "--fsdp \"full_shard auto_wrap\"";
const H100: (&str, &str) = ("accelerator", "H100-SXM");

#[test]
fn json_in_one_word_is_read_as_a_file_is() {
    for (json, again) in
        [("{\"activation_checkpointing\": true}", true), ("{\"activation_checkpointing\": false}", false)]
    {
        let read = resolved(&format!("{SHARDS} --fsdp_config '{json}'"), None, &[H100]);
        assert_eq!(recomputes(&read), again, "{json}");
        let file = json.replace('}', ", \"transformer_layer_cls_to_wrap\": [\"Qwen2DecoderLayer\"]}");
        let read = resolved(&format!("{SHARDS} --fsdp_config fsdp_config.json"), Some(&file), &[H100]);
        assert_eq!(recomputes(&read), again, "{json} beside the command");
    }
    let unknown = resolved(&format!("{SHARDS} --fsdp_config '{{\"mystery\": 3}}'"), None, &[H100]);
    assert!(unknown.plan.is_none(), "an unknown key may change what is held");
}

#[test]
fn a_file_that_is_not_here_is_asked_for() {
    let options = format!("{SHARDS} --fsdp_config conf/fsdp_config.json");
    let read = resolved(&options, None, &[H100]);
    let asks = Asked::Setting(Field::GradientCheckpointing);
    let question = read.questions.iter().find(|question| question.asks == asks).expect("a question");
    assert!(question.prompt.contains("fsdp_config.json"), "{}", question.prompt);
    assert!(read.plan.is_none(), "an open question has no plan");
    for (answer, again) in [("true", true), ("false", false)] {
        let read = resolved(&options, None, &[H100, ("gradient_checkpointing", answer)]);
        assert_eq!(recomputes(&read), again, "{answer}");
    }
    assert!(recomputes(&resolved(&format!("{options} --gradient_checkpointing"), None, &[H100])));
    let offloads = resolved("--fsdp full_shard,auto_wrap --fsdp_config fsdp_offload.json", None, &[H100]);
    assert!(offloads.plan.is_none() && !offloads.not_modelled.is_empty(), "the name says that it offloads");
}

#[test]
fn other_units_than_layers_stop() {
    for (options, name) in [
        ("--fsdp full_shard", "fsdp"),
        ("--fsdp \"full_shard auto_wrap\" --fsdp_min_num_params 100000000", "fsdp_min_num_params"),
        (
            "--fsdp \"full_shard auto_wrap\" --fsdp_config '{\"min_num_params\": 2000}'",
            "fsdp_config.min_num_params",
        ),
        ("--fsdp \"full_shard auto_wrap\" --fsdp_config '{\"xla\": true}'", "fsdp_config.xla"),
        (
            "--fsdp \"full_shard auto_wrap\" --fsdp_config '{\"limit_all_gathers\": false}'",
            "fsdp_config.limit_all_gathers",
        ),
        // Only accelerate reads offload_params; the Trainer leaves weights and states on the device.
        ("--fsdp \"full_shard auto_wrap\" --fsdp_config '{\"offload_params\": true}'", "fsdp"),
        // Without --fsdp the Trainer returns before it reads the settings: every rank holds the whole model.
        ("--fsdp_config '{\"activation_checkpointing\": true}'", "fsdp_config.activation_checkpointing"),
    ] {
        let read = resolved(options, None, &[H100]);
        let names: Vec<&str> = read.not_modelled.iter().map(|item| item.name.as_str()).collect();
        assert!(read.plan.is_none() && names == [name], "{options}: {names:?}");
    }
    for options in
        [SHARDS, "--fsdp \"full_shard auto_wrap\" --fsdp_config '{\"min_num_params\": 0, \"xla\": false}'"]
    {
        assert!(!recomputes(&resolved(options, None, &[H100])), "{options}");
    }
}

/// The engine and the stage.
fn sharding(read: &Resolution) -> [Option<String>; 2] {
    [Field::DataParallelEngine, Field::ZeroStage]
        .map(|field| read.setting(field).map(|setting| setting.value.written()))
}

#[test]
fn what_is_sharded_follows_words_and_file_together() {
    const WRAPS: &str = "{\"transformer_layer_cls_to_wrap\": [\"Qwen2DecoderLayer\"]}";
    let named = "--fsdp_config fsdp_config.json";
    for (options, file, engine, stage) in [
        // Only transformers 5 has it as a switch, and there it shards by FSDP2.
        ("--fsdp".to_owned(), None, "fsdp2", "3"),
        (SHARDS.to_owned(), None, "fsdp1", "3"),
        // The words decide where the file does not.
        (format!("--fsdp \"shard_grad_op auto_wrap\" {named}"), Some(WRAPS), "fsdp1", "2"),
        (format!("--fsdp \"no_shard auto_wrap\" {named}"), Some(WRAPS), "fsdp1", "0"),
        (
            format!("{SHARDS} {named}"),
            Some("{\"version\": 2, \"activation_checkpointing\": true}"),
            "fsdp2",
            "3",
        ),
        // The file before the words.
        (format!("{SHARDS} {named}"), Some("{\"reshard_after_forward\": false}"), "fsdp2", "2"),
        (
            "--fsdp --fsdp_config '{\"version\": 1, \"reshard_after_forward\": \"shard_grad_op\"}'"
                .to_owned(),
            None,
            "fsdp1",
            "2",
        ),
        (
            "--fsdp --fsdp_config '{\"version\": 1, \"reshard_after_forward\": \"no_shard\"}'".to_owned(),
            None,
            "fsdp1",
            "0",
        ),
    ] {
        let read = resolved(&options, file, &[H100]);
        let expected = [engine, stage].map(|word| Some(word.to_owned()));
        assert_eq!(sharding(&read), expected, "{options}, {file:?}: {:?}", read.diagnostics);
        assert!(read.not_modelled.is_empty() && read.plan.is_some(), "{options}: {:?}", read.diagnostics);
    }
}

#[test]
fn a_file_is_read_whoever_names_it_and_none_in_the_place_of_another() {
    const KEEPS: &str = "{\"transformer_layer_cls_to_wrap\": [\"Qwen2DecoderLayer\"], \"reshard_after_forward\": false, \
        \"activation_checkpointing\": true}";
    // A settings file names it, or the script writes it itself.
    let yaml = "model_name_or_path: Qwen/Qwen2.5-7B\nbf16: true\nmax_length: 2048\nper_device_train_batch_size: 2\n\
        output_dir: a\ngradient_accumulation_steps: 1\nfsdp: full_shard auto_wrap\nfsdp_config: fsdp_config.json\n";
    let both =
        resolved_files(&[("sft.yaml", yaml), ("fsdp_config.json", KEEPS)], &[H100, ("world_size", "8")]);
    assert_eq!(sharding(&both)[1].as_deref(), Some("2"), "{:?}", both.diagnostics);
    assert!(recomputes(&both));
    let writes = format!(
        "cat > fsdp_config.json <<EOF\n{KEEPS}\nEOF\n{}",
        command("--fsdp \"full_shard auto_wrap\" --fsdp_config fsdp_config.json")
    );
    let written = resolved_files(&[("run.sh", &writes)], &[H100]);
    assert_eq!(sharding(&written)[1].as_deref(), Some("2"), "{:?}", written.diagnostics);
    assert!(recomputes(&written));
    // JSON on the command line stays, whatever other file there is; so does the option behind one without a value.
    let inline = format!("{SHARDS} --fsdp_config '{{\"activation_checkpointing\": true}}'");
    let other = resolved(&inline, Some("{\"reshard_after_forward\": true, \"version\": 2}"), &[H100]);
    assert!(recomputes(&other));
    let bare = resolved(&format!("{SHARDS} --fsdp_config --gradient_checkpointing"), Some(KEEPS), &[H100]);
    assert!(bare.setting(Field::GradientCheckpointing).is_some(), "{:?}", bare.diagnostics);
    // Beside the word or the key that offloads, accelerate's says nothing more.
    let offloads = resolved(
        "--fsdp \"full_shard auto_wrap offload\" --fsdp_config '{\"offload_params\": true}'",
        None,
        &[H100],
    );
    assert!(offloads.plan.is_some() && offloads.not_modelled.is_empty(), "{:?}", offloads.not_modelled);
    // A dump of defaults.
    let dump = resolved(
        "--fsdp_config '{\"min_num_params\": 0, \"xla\": false, \"xla_fsdp_grad_ckpt\": false}'",
        None,
        &[H100],
    );
    assert!(
        dump.not_modelled.is_empty() && sharding(&dump)[1].as_deref() != Some("3"),
        "{:?}",
        dump.not_modelled
    );
}

/// Composer's FSDP reduces gradients in 16 bits under PURE, and in fp32 under DEFAULT, which also holds where nothing is stated
/// (`composer/distributed/mosaic_parallelism.py:get_mixed_precision`, `composer/utils/parallelism.py:FSDPConfig`). The shards that the
/// optimizer steps are fp32 under each.
#[test]
fn composer_reduces_gradients_in_the_format_of_its_mixed_precision() {
    let job = |model: &str, precision: &str| {
        let text = format!(
            "max_seq_len: 1024\nmodel:\n{model}\ntrain_loader:\n  name: text\noptimizer:\n  name: decoupled_adamw\n\
             global_train_batch_size: 16\ndevice_train_microbatch_size: 2\nprecision: amp_bf16\n\
             fsdp_config:\n  sharding_strategy: FULL_SHARD\n{precision}"
        );
        let answers = [H100, ("world_size", "8")];
        let read = resolved_files(&[("job.yaml", &text)], &answers);
        let plan = read.plan.unwrap_or_else(|| panic!("no plan: {:?}", read.diagnostics));
        (plan.recipe().grads_dtype, plan.recipe().transformers.reduce)
    };
    let own = "  name: mpt_causal_lm\n  d_model: 512\n  n_heads: 8\n  n_layers: 4\n  vocab_size: 50368\n  attn_config:\n    attn_impl: flash";
    let named = "  name: hf_causal_lm\n  pretrained_model_name_or_path: Qwen/Qwen2.5-0.5B";
    let (pure, default) = ("  mixed_precision: PURE\n", "  mixed_precision: DEFAULT\n");
    assert_eq!(job(own, pure), (NumberFormat::Bf16, None));
    assert_eq!(job(own, default), (NumberFormat::Fp32, Some(NumberFormat::Fp32)));
    assert_eq!(job(own, ""), (NumberFormat::Fp32, None));
    assert_eq!(job(named, pure).1, None, "as they were gathered");
    assert_eq!(job(named, default).1, Some(NumberFormat::Fp32));
    assert_eq!(job(named, "").1, Some(NumberFormat::Fp32));
}
