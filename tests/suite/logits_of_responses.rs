//! Logits of the responses alone under TRL's GRPO and RLOO and ms-swift's GRPO, of launch files.

use super::formats::resolved;
use shardscope::launch::Resolution;
use shardscope::operators::{Operator, Symbols};
use shardscope::source::Source;

fn read(name: &str, text: &str, stage: &str) -> Resolution {
    let set = [("accelerator", "H100-SXM"), ("world_size", "8"), ("zero_stage", stage)]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    resolved(&Source::from_files([(name, text)]), &set)
}

/// The longest response, rows of logits of a micro-batch, and the bytes of the largest tensor beside what the loss keeps.
#[track_caller]
fn of(name: &str, text: &str, stage: &str) -> (u64, u64, u64) {
    let read = read(name, text, stage);
    let plan = read.plan.as_ref().unwrap_or_else(|| panic!("{:?} {:?}", read.questions, read.diagnostics));
    let x = Symbols::new(plan);
    let moments = Operator::OutputLayer.transients(&x);
    let most = moments.iter().flat_map(|moment| &moment.tensors).map(|tensor| tensor.bytes.get()).max();
    (plan.recipe().rollout.map_or(0, |rollout| rollout.response), x.logit_rows(), most.unwrap_or(0))
}

/// GRPO of code by open-r1, 16 samples of 1,024 and 2,048 tokens; Accelerate hands logits on in fp32.
const CODE: &str = "model_name_or_path: Qwen/Qwen2.5-1.5B-Instruct\ntorch_dtype: bfloat16\nbf16: true\nbeta: 0.01\nuse_vllm: true\n\
    gradient_checkpointing: true\nlearning_rate: 1.0e-06\nmax_prompt_length: 1024\nmax_completion_length: 2048\nnum_generations: 16\n\
    per_device_train_batch_size: 16\noutput_dir: data\n";

/// `trl/trainer/grpo_trainer.py` of 0.18: `logits_to_keep=logits_to_keep + 1`; the gradients are those of the picked logits
/// and of each sequence's sum.
#[test]
fn grpo_of_trl_makes_logits_of_completions() {
    let (rows, vocabulary) = (16 * 2049, 151_936);
    assert_eq!(of("config.yaml", CODE, "0"), (2048, rows, 2 * 16 * 2048 * vocabulary * 4));
    // DeepSpeed leaves them in 16 bits, and so are both gradients.
    assert_eq!(of("config.yaml", CODE, "3"), (2048, rows, 2 * rows * vocabulary * 2));
    // The last token's alone are made beside, whatever the limit.
    let longer =
        CODE.replace("max_completion_length: 2048", "max_completion_length: 2048\nvllm_max_model_len: 1536");
    assert_eq!(of("config.yaml", &longer, "0").1, 16 * 1536);
    // R1-V's programs take those of all tokens.
    assert_eq!(of("config.yaml", &format!("{CODE}max_pixels: 401408\n"), "0").1, 16 * 3072);
}

/// `swift/rlhf_trainers/grpo_trainer.py:_get_logps_via_local_forward` and `_get_logps_via_sp`.
#[test]
fn grpo_of_swift_makes_them_unless_ranks_share_sequences_or_samples_are_packed() {
    let command = "swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-1.5B-Instruct --use_vllm true --vllm_mode colocate --beta 0 \
        --train_type full --torch_dtype bfloat16 --max_length 1024 --max_completion_length 512 --vllm_max_model_len 1536 \
        --per_device_train_batch_size 4 --num_generations 8 --deepspeed zero3";
    let rows = |more: &str| of("run.sh", &format!("{command} {more}\n"), "3").1;
    assert_eq!(rows(""), 4 * 513);
    assert_eq!(rows("--padding_free true"), 4 * 1536);
}
