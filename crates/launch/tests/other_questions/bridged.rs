//! Hygon's Megatron-LM, which has Megatron-Bridge build the model of a checkpoint's configuration: what its command line does
//! not state is the configuration's, and was Megatron's default, or not modelled.

use super::{script, stopped, value};
use shardscope_launch::{Asked, Resolution};
use shardscope_plan::{Field, TowerGradients, TowerModules};

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

/// A line of `examples/qwen3/train_qwen3vl_30B_A3B.sh`, whose model is a folder that its caller names.
fn vision(model: &str, more: &str) -> Resolution {
    let line = "torchrun --nnodes 1 --nproc_per_node 8 pretrain_vlm.py --num-layers 48 --hidden-size 2048 --ffn-hidden-size 6144 \
        --moe-ffn-hidden-size 768 --num-attention-heads 32 --num-query-groups 4 --group-query-attention --num-experts 128 \
        --moe-router-topk 8 --normalization RMSNorm --swiglu --disable-bias-linear --untie-embeddings-and-output-weights \
        --expert-model-parallel-size 8 --expert-tensor-parallel-size 1 --seq-length 4096 --micro-batch-size 1 \
        --global-batch-size 64 --bf16 --use-distributed-optimizer --transformer-impl transformer_engine \
        --tokenizer-type HuggingFaceTokenizer --tokenizer-model $DIR --model-arch qwen3vl --processor-path $DIR \
        --vlm-data-config-path $DATA --use-bridge";
    script(&format!("{line} --bridge-hf-model {model} {more}\n"))
}

fn asks(read: &Resolution) -> Vec<Asked> {
    read.questions.iter().map(|question| question.asks.clone()).collect()
}

/// `pretrain_vlm.py` is a model with a vision tower that Megatron-Bridge builds, not one of its own; its positions are mrope's.
#[test]
fn a_vision_model_in_a_variable_is_asked_for_once() {
    let read = vision("$DIR", "");
    assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
    assert_eq!(asks(&read), [Asked::Setting(Field::Model)]);
    // Heads whose width is the configuration's do not have to divide what the command line states.
    let odd = vision("$DIR", "--num-attention-heads 24 --num-query-groups 4 --hidden-size 5120");
    assert_eq!(asks(&odd), [Asked::Setting(Field::Model)], "{:?}", odd.diagnostics);
    assert!(odd.diagnostics.iter().all(|said| !said.message.contains("cannot be split over 24 heads")));
}

/// `hcu_megatron/training/training.py:_bridge_apply_vlm_overrides` replaces what a provider of experts freezes by what the options
/// say, which are off unless given.
#[test]
fn hygons_options_say_which_parts_of_a_vision_model_train() {
    let trained = vision("Qwen/Qwen3-VL-30B-A3B-Instruct", "");
    assert!(trained.not_modelled.is_empty(), "{:?}", trained.not_modelled);
    assert_eq!(asks(&trained), [Asked::Setting(Field::ImagePatches)]);
    let frozen = vision("Qwen/Qwen3-VL-30B-A3B-Instruct", "--freeze-vision-model --freeze-vision-projection");
    let plan = frozen.plan.as_ref().unwrap_or_else(|| panic!("{:?}", frozen.diagnostics));
    let tower = plan.model().vision.expect("a tower");
    assert_eq!((tower.modules, tower.gradients), (TowerModules::Core, TowerGradients::None));
    assert!(!tower.projector_trains && !tower.deep_trains);
    // Qwen2.5-VL's tower is transformers', whole on every tensor rank.
    let whole = vision("Qwen/Qwen2.5-VL-7B-Instruct", "--freeze-vision-model --freeze-vision-projection");
    assert_eq!(whole.plan.expect("a plan").model().vision.expect("a tower").modules, TowerModules::Whole);
}
