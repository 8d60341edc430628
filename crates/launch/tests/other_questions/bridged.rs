//! Hygon's Megatron-LM, which has Megatron-Bridge build the model of a checkpoint's configuration: what its command line does
//! not state is the configuration's, and was Megatron's default, or not modelled.

use super::{script, stopped, value};
use shardscope_launch::{Asked, Resolution};
use shardscope_plan::Field;

/// A script with sizes of its own, as its examples repeat those of the checkpoint.
fn run(more: &str) -> Resolution {
    let line = "torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py --num-layers 36 --hidden-size 4096 --ffn-hidden-size 12288 \
        --num-attention-heads 32 --group-query-attention --num-query-groups 8 --swiglu --normalization RMSNorm --disable-bias-linear \
        --position-embedding-type rope --seq-length 4096 --micro-batch-size 1 --global-batch-size 32 --bf16 \
        --tensor-model-parallel-size 2 --sequence-parallel --tokenizer-type HuggingFaceTokenizer --tokenizer-model $DIR";
    script(&format!("{line} {more}\n"))
}

#[test]
fn what_the_command_line_leaves_out_is_the_configurations() {
    let read = run("--use-bridge --bridge-hf-model Qwen/Qwen3-8B");
    let plan = read.plan.as_ref().unwrap_or_else(|| panic!("{:?}", read.diagnostics));
    // Neither is among the options: the norms of queries and keys, the vocabulary without padding, the provider's loss.
    assert!(plan.model().qk_layernorm);
    assert_eq!(plan.model().padded_vocab_size, 151_936);
    assert_eq!(value(&read, Field::UntieEmbeddingsAndOutputWeights), "true");
    assert_eq!(value(&read, Field::CrossEntropyLossFusion), "true");
    assert_eq!(value(&read, Field::HiddenDropout), "0");
    // What it states replaces the configuration's, which has 36 layers.
    let fewer = run(
        "--use-bridge --bridge-hf-model Qwen/Qwen3-8B --num-layers 4 --untie-embeddings-and-output-weights",
    );
    assert_eq!(fewer.plan.expect("a plan").model().num_layers, 4);
}

#[test]
fn a_model_in_a_variable_is_asked_for_once() {
    let read = run("--use-bridge --bridge-hf-model $DIR --bridge-language-model-only");
    assert!(read.plan.is_none());
    assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
    let asked: Vec<_> = read.questions.iter().map(|question| question.asks.clone()).collect();
    assert_eq!(asked, [Asked::Setting(Field::Model)]);
    stopped(&run("--use-bridge"), &["use-bridge"]);
}

/// `hcu_megatron/training/training.py:_bridge_apply_runtime_overrides` leaves positions of mrope and yarn alone.
#[test]
fn positions_that_are_not_stated_are_megatrons_except_mrope_and_yarn() {
    let of = |model: &str| {
        let line = "torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py --use-bridge --seq-length 4096 --micro-batch-size 1 \
            --global-batch-size 32 --bf16 --tokenizer-type NullTokenizer";
        let read = script(&format!("{line} --bridge-hf-model {model}\n"));
        let asked = read
            .questions
            .iter()
            .any(|question| question.asks == Asked::Setting(Field::PositionEmbeddingType));
        (value(&read, Field::PositionEmbeddingType), asked)
    };
    assert_eq!(of("Qwen/Qwen3-8B"), ("learned_absolute".to_owned(), false));
    assert_eq!(of("openai/gpt-oss-20b"), ("rope".to_owned(), false));
    assert_eq!(of("Qwen/Qwen2.5-VL-7B-Instruct"), ("rope".to_owned(), false));
    assert!(of("$DIR").1);
    assert!(of("/data/unknown").1);
}
