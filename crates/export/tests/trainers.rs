//! Changes placed in commands of trainers whose options are not Megatron's.
#![allow(clippy::expect_used)]

use shardscope_bash::Environment;
use shardscope_export::edit;
use shardscope_plan::Field;
use shardscope_source::Source;

/// The text after the changes; `None` if one of them found no place.
fn changed(text: &str, changes: &[(Field, &str)]) -> Option<String> {
    let changes: Vec<_> = changes.iter().map(|(field, value)| (*field, (*value).to_owned())).collect();
    let edited = edit(&Source::from_files([("run.sh", text)]), &Environment::default(), &changes);
    edited.unplaced.is_empty().then(|| edited.files[0].1.clone())
}

/// Every replacement of a part of `text` in turn is what a change comes to.
#[track_caller]
fn check(text: &str, changes: &[(Field, &str)], parts: &[(&str, &str)]) {
    let mut wanted = text.to_owned();
    for (old, new) in parts {
        assert_eq!(text.matches(old).count(), 1, "{old}");
        wanted = wanted.replace(old, new);
    }
    assert_eq!(changed(text, changes).as_deref(), Some(wanted.as_str()));
}

const CLM: &str = "torchrun --nproc_per_node 8 run_clm.py --model_name_or_path meta-llama/Llama-3.1-8B --do_train --bf16 \\\n    \
    --output_dir /tmp/x --per_device_train_batch_size=4 --block_size=2048 --gradient_checkpointing=true\n";

#[test]
fn a_value_behind_an_equals_sign_is_replaced_alone() {
    use Field::{GradientCheckpointing, MicroBatchSize, SeqLength};
    let batch = [(MicroBatchSize, "8")];
    check(CLM, &batch, &[("train_batch_size=4", "train_batch_size=8")]);
    check(
        CLM,
        &[(MicroBatchSize, "2"), (SeqLength, "4096"), (GradientCheckpointing, "false")],
        &[("=4 ", "=2 "), ("=2048", "=4096"), ("=true", "=false")],
    );
    // Quotes around the value and around the word; where a variable is behind the name, the place of the value is not known.
    for (word, after) in [
        ("--per_device_train_batch_size=\"4\"", "--per_device_train_batch_size=\"8\""),
        ("\"--per_device_train_batch_size=4\"", "\"--per_device_train_batch_size=8\""),
        ("--per-device-train-batch-size='4'", "--per-device-train-batch-size='8'"),
        ("--per_device_train_batch_size 4", "--per_device_train_batch_size 8"),
    ] {
        let text = CLM.replace("--per_device_train_batch_size=4", word);
        check(&text, &batch, &[(word, after)]);
    }
    let variable = format!("B=4\n{}", CLM.replace("size=4 ", "size=$B "));
    assert_eq!(changed(&variable, &batch), None);
    check(&variable.replace("size=$B", "size $B"), &batch, &[("B=4", "B=8")]);
    // `key=value` behind a settings file: words of LLaMA-Factory.
    let over = "llamafactory-cli train per_device_train_batch_size=4 --stage=sft --model_name_or_path=meta-llama/Llama-3.1-8B \
        --finetuning_type=lora --cutoff_len=2048 --output_dir=/tmp/x --bf16=true\n";
    let placed = changed(over, &[(SeqLength, "4096")]);
    assert_eq!(placed.as_deref(), Some(over.replace("len=2048", "len=4096").as_str()));
}

#[test]
fn no_option_of_megatron_is_added_to_another_trainers_command() {
    // The option itself is not there, so that there is no place.
    let without = CLM.replace("--per_device_train_batch_size=4 ", "");
    assert_eq!(changed(&without, &[(Field::MicroBatchSize, "4")]), None);
    assert_eq!(changed(CLM, &[(Field::TensorModelParallelSize, "2")]), None);
    let apart = CLM.replace('=', " ");
    for field in Field::ALL {
        for value in ["2", "true"] {
            if let Some(text) = changed(&apart, &[(*field, value)]) {
                assert_eq!(text.matches("--").count(), apart.matches("--").count(), "{text}");
            }
        }
    }
}

#[test]
fn a_dictionary_in_one_word_is_not_overwritten() {
    let text = CLM.replace("--bf16", "--bf16 --gradient_checkpointing_kwargs '{\"use_reentrant\": false}'");
    assert_eq!(changed(&text, &[(Field::ReentrantCheckpoints, "true")]), None);
}

#[test]
fn a_sequence_length_is_written_as_the_targets() {
    let text = "torchrun --nproc_per_node 8 run_summarization.py --model_name_or_path google/flan-t5-xl --do_train --bf16 \
        --output_dir /tmp/x --per_device_train_batch_size 4 --max_source_length 512 --max_target_length 64\n";
    for text in [text.to_owned(), text.replace("length 64", "length=64")] {
        let separate = text.contains("length 64");
        let part = if separate { ("length 64", "length 512") } else { ("length=64", "length=512") };
        check(&text, &[(Field::SeqLength, "512")], &[part]);
        check(&text, &[(Field::TargetLength, "512")], &[part]);
    }
    let without = text.replace("--max_target_length 64", "");
    assert_eq!(changed(&without, &[(Field::SeqLength, "512")]), None);
}
