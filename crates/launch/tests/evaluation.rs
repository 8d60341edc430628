//! Evaluation between steps: its batch is read if only the loss is computed; a larger batch without a formula stops the
//! verdict.

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::{Field, SettingValue};
use shardscope_source::Source;

const TRAINER: &str = "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen3-8B --max_seq_length 4096 --bf16 \
    --per_device_train_batch_size 2 --gradient_accumulation_steps 4";

fn said(name: &str, text: &str) -> Resolution {
    let source = Source::from_files([(name, text)]);
    read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
}

fn stops(resolution: &Resolution, name: &str) -> bool {
    resolution.not_modelled.iter().any(|item| item.is_called(name))
}

#[test]
fn a_trainers_evaluation_batch_is_read() {
    let run = |more: &str| said("run.sh", &format!("{TRAINER} {more}\n"));
    let batch = |more: &str| run(more).plan.expect(more).recipe().transformers.evaluation_batch;
    assert_eq!(batch("--eval_strategy steps --per_device_eval_batch_size 4"), 4);
    assert_eq!(batch("--torch_dtype bfloat16 --evaluation_strategy epoch --per_device_eval_batch_size 4"), 4);
    assert_eq!(batch("--do_eval True --per_device_eval_batch_size 4"), 4);
    assert_eq!(batch("--eval_on_start --per_device_eval_batch_size 4"), 4);
    // The default batch size for evaluation in transformers is 8.
    assert_eq!(batch("--eval_strategy steps"), 8);
    for never in ["", "--per_device_eval_batch_size 4", "--eval_strategy no --per_device_eval_batch_size 4"] {
        assert_eq!(batch(never), 0, "{never}");
    }
}

#[test]
fn a_larger_evaluation_batch_without_a_formula_stops() {
    let run = |more: &str| said("run.sh", &format!("{TRAINER} --do_eval True {more}\n"));
    // Evaluation that generates, and attention that keeps scores.
    assert!(stops(
        &run("--predict_with_generate True --per_device_eval_batch_size 4"),
        "per_device_eval_batch_size"
    ));
    let own = Field::EvaluationBatchSize.name();
    assert!(stops(&run("--attn_implementation eager --per_device_eval_batch_size 4"), own));
    assert!(!stops(&run("--attn_implementation eager --per_device_eval_batch_size 2"), own));
}

#[test]
fn axolotls_batch_size_is_what_a_rank_accumulates() {
    let axolotl = |more: &str| {
        let text = "base_model: Qwen/Qwen3-8B\nadapter: lora\nlora_r: 16\nlora_target_linear: true\nsequence_len: 2048\n\
            micro_batch_size: 2\nbf16: true\n";
        said("axolotl.yml", &format!("{text}{more}"))
    };
    let steps = |resolution: &Resolution| {
        let setting = resolution.settings.iter().find(|setting| setting.field == Field::NumMicroBatches);
        setting.map(|setting| setting.value.clone())
    };
    assert_eq!(steps(&axolotl("batch_size: 64\n")), Some(SettingValue::Int(32)));
    // A fraction of a micro-batch, and a program's own batch size, are not supported.
    assert!(stops(&axolotl("batch_size: 1\n"), "batch_size"));
    let own = |more: &str| {
        said(
            "run.sh",
            &format!(
                "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen3-8B --bf16 --gradient_accumulation_steps 4 {more}\n"
            ),
        )
    };
    assert!(stops(&own("--batch_size 4"), "batch_size"));
    assert!(!stops(&own("--batch_size 4 --per_device_train_batch_size 2"), "batch_size"));
}

#[test]
fn what_changes_an_adapters_tensors_stops() {
    let run = |more: &str| said("run.sh", &format!("{TRAINER} --use_peft --lora_r 16 {more}\n"));
    assert!(stops(&run("--lora_bias all"), "lora_bias") && stops(&run("--lora_dtype float32"), "lora_dtype"));
    assert!(!stops(&run("--lora_bias none"), "lora_bias"));
}

#[test]
fn torchtune_that_validates_in_larger_batches_stops() {
    let run = |validation: &str| {
        let text = format!(
            "model:\n  _component_: torchtune.models.llama3_1.llama3_1_8b\n\
             tokenizer: {{_component_: torchtune.models.llama3.llama3_tokenizer, max_seq_len: 2048}}\n\
             optimizer: {{_component_: torch.optim.AdamW}}\nbatch_size: 2\ndtype: bf16\n{validation}"
        );
        stops(&said("full.yaml", &text), "batch_size_val")
    };
    assert!(run("batch_size_val: 4\n"));
    assert!(!run("batch_size_val: 2\n") && !run(""));
}

/// axolotl's settings, with the same number of sequences per micro-batch as `TRAINER`.
const AXOLOTL: &str = "base_model: Qwen/Qwen3-8B\ndatasets: [{path: mine, type: alpaca}]\nsequence_len: 4096\nmicro_batch_size: 2\n\
    gradient_accumulation_steps: 4\nbf16: true\noptimizer: adamw_torch_fused\n";

#[test]
fn axolotl_evaluates_where_it_holds_data_back_and_is_reported_when() {
    let run = |more: &str| said("axolotl.yaml", &format!("{AXOLOTL}{more}"));
    let batch = |more: &str| {
        let found = run(more)
            .settings
            .iter()
            .find(|setting| setting.field == Field::EvaluationBatchSize)
            .map(|setting| setting.value.clone());
        assert!(!stops(&run(more), Field::EvaluationBatchSize.name()), "{more}");
        found.filter(|value| *value != SettingValue::Null)
    };
    let of = |size| Some(SettingValue::Int(size));
    assert_eq!(batch("val_set_size: 0.1\nevals_per_epoch: 4\neval_batch_size: 8\n"), of(8));
    assert_eq!(batch("test_datasets: [{path: mine}]\neval_steps: 50\neval_batch_size: 8\n"), of(8));
    // The same as for training unless stated (`axolotl/core/builders/base.py`).
    assert_eq!(batch("val_set_size: 0.1\nevals_per_epoch: 4\n"), of(2));
    for never in [
        "val_set_size: 0.1\neval_batch_size: 8\n",
        "val_set_size: 0\nevals_per_epoch: 4\neval_batch_size: 8\n",
    ] {
        assert_eq!(batch(never), None, "{never}");
    }
    let table = "val_set_size: 0.1\nevals_per_epoch: 4\neval_batch_size: 8\neval_table_size: 5\n";
    assert!(stops(&run(table), "eval_batch_size"));
}

#[test]
fn swift_evaluates_as_it_saves_where_it_holds_data_back() {
    let run = |more: &str| {
        let command = "swift sft --model Qwen/Qwen3-8B --per_device_train_batch_size 1 --max_length 4096 --torch_dtype bfloat16";
        stops(&said("run.sh", &format!("{command} {more}\n")), "per_device_eval_batch_size")
    };
    assert!(run("--split_dataset_ratio 0.01 --per_device_eval_batch_size 4"));
    assert!(run("--val_dataset mine --per_device_eval_batch_size 4"));
    assert!(!run("--split_dataset_ratio 0.01 --per_device_eval_batch_size 1"));
    assert!(!run("--split_dataset_ratio 0 --eval_steps 100 --per_device_eval_batch_size 4"));
    assert!(!run("--split_dataset_ratio 0.01 --eval_strategy no --per_device_eval_batch_size 4"));
}

#[test]
fn axolotls_plugins_are_read() {
    let word = |value: &SettingValue| match value {
        SettingValue::Text(word) => Some(word.clone()),
        _ => None,
    };
    let loss = |more: &str| {
        let resolution = said("axolotl.yaml", &format!("{AXOLOTL}{more}"));
        let found = resolution.settings.iter().find(|setting| setting.field == Field::LossKind);
        (found.and_then(|setting| word(&setting.value)), stops(&resolution, "plugins"))
    };
    let cut = "plugins:\n  - axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin\n";
    assert_eq!(loss(cut), (Some("cce".to_owned()), false));
    assert_ne!(loss(&format!("{cut}cut_cross_entropy: false\n")).0.as_deref(), Some("cce"));
    assert_ne!(loss("plugins: [axolotl.integrations.liger.LigerPlugin]\n").0.as_deref(), Some("cce"));
    assert!(loss("plugins: [axolotl.integrations.kd.KDPlugin]\n").1);
}

#[test]
fn losses_that_keep_more_stop() {
    let run = |more: &str, name: &str| {
        let text = format!(
            "model_name_or_path: Qwen/Qwen3-8B\nstage: sft\nfinetuning_type: full\ncutoff_len: 2048\ntemplate: qwen3\n\
             per_device_train_batch_size: 1\nbf16: true\n{more}\n"
        );
        stops(&said("sft.yaml", &text), name)
    };
    assert!(run("use_asft_loss: true", "use_asft_loss"));
    assert!(run("use_eaft_loss: true", "use_eaft_loss"));
    assert!(!run("use_dft_loss: true", "use_dft_loss"));
    assert!(run("loss_type: chunked_nll", "loss_type"));
    assert!(!run("loss_type: nll", "loss_type"));
}
