//! A Megatron command that states no shape: the model named by its checkpoint or tokenizer is proposed, not taken.

use shardscope_bash::Environment;
use shardscope_launch::Asked;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::Field;
use shardscope_source::Source;

fn resolved(files: &[(&str, &str)], overrides: &[(&str, &str)]) -> Resolution {
    let source = Source::from_files(files.iter().copied());
    let overrides: Vec<(String, String)> =
        overrides.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    read(&Request { source: &source, environment: &Environment::default(), overrides: &overrides })
}

/// Whether a model is asked for, and the proposal.
fn asked(read: &Resolution) -> Option<Option<&str>> {
    let question = read.questions.iter().find(|question| question.asks == Asked::Setting(Field::Model))?;
    Some(question.proposal.as_deref())
}

const RUN: &str = "torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py --seq-length 4096 --micro-batch-size 1 \
    --global-batch-size 64 --bf16 --use-distributed-optimizer";

#[test]
fn the_model_that_weights_or_a_tokenizer_are_named_after_is_proposed() {
    for (option, proposed) in [
        ("--load /ckpt/Qwen3-30B-A3B-Base-mcore", "Qwen/Qwen3-30B-A3B"),
        ("--load /ckpt/Llama-3.1-8B/tp2/iter_0000100", "meta-llama/Llama-3.1-8B"),
        ("--tokenizer-model=/models/Mistral-7B-v0.1/tokenizer.model", "mistralai/Mistral-7B-v0.1"),
        // The weights say more about the model than the tokenizer.
        ("--tokenizer-model /models/Mistral-7B-v0.1 --load /ckpt/Qwen3-8B", "Qwen/Qwen3-8B"),
    ] {
        let read = resolved(&[("run.sh", &format!("{RUN} {option}"))], &[]);
        assert!(read.plan.is_none(), "{option}: a name proves no shape");
        assert_eq!(asked(&read), Some(Some(proposed)), "{option}");
    }
    let answered = resolved(
        &[("run.sh", &format!("{RUN} --load /ckpt/Qwen3-8B-mcore"))],
        &[("model", "Qwen/Qwen3-8B"), ("accelerator", "H100-SXM")],
    );
    let plan = answered.plan.expect("a plan");
    assert_eq!((plan.model().num_layers, plan.model().hidden_size), (36, 4096));
}

#[test]
fn nothing_is_proposed_of_names_that_say_nothing_and_nothing_asked_where_the_shape_is_stated() {
    for option in ["", "--load /ckpt/run-17", "--load $CKPT", "--load", "--load --bf16"] {
        let read = resolved(&[("run.sh", &format!("{RUN} {option}"))], &[]);
        assert_eq!(asked(&read), Some(None), "{option}");
    }
    let shape = "--num-layers 4 --hidden-size 512 --num-attention-heads 8 --load /ckpt/Qwen3-8B";
    assert_eq!(asked(&resolved(&[("run.sh", &format!("{RUN} {shape}"))], &[])), None);
    // A given configuration states the shape as well.
    let config = r#"{"model_type": "llama", "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8,
        "intermediate_size": 1024, "vocab_size": 32000, "architectures": ["LlamaForCausalLM"]}"#;
    let script = format!("{RUN} --load /ckpt/Qwen3-8B");
    let both = resolved(&[("run.sh", script.as_str()), ("config.json", config)], &[]);
    assert_eq!(asked(&both), None);
}
