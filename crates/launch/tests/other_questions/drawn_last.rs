//! Misreadings found in the eleventh draw of public files, and stops at settings that change nothing.

use super::{said, script, stopped, value};
use shardscope_launch::Asked;
use shardscope_launch::Resolution;
use shardscope_plan::Field;

const VERL: &str = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B \
    data.max_prompt_length=512 data.max_response_length=1024 actor_rollout_ref.actor.ppo_mini_batch_size=64 \
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 actor_rollout_ref.model.use_remove_padding=True \
    actor_rollout_ref.rollout.name=vllm trainer.n_gpus_per_node=8 trainer.nnodes=1";

/// CLR-Lab/SimKO `run_qwen2.5-math-7b_grpo.sh`: Hydra refuses to add an existing key, and verl has had this one since
/// March 31, 2025 (#820). Until April 17 (#1100) `dp_actor.py:update_policy` subtracted the entropy's weight times its
/// mean from the loss for any weight, so its graph was kept even at 0.
#[test]
fn a_key_that_verl_lacked_tells_its_release() {
    let fields =
        [Field::PolicyEntropy, Field::RlReference, Field::RolloutCudaGraphs, Field::GradientCheckpointing];
    let shown = |more: &str| {
        let resolution = script(&format!("{VERL} {more}"));
        assert!(resolution.plan.is_some(), "{:?}", resolution.diagnostics);
        fields.map(|field| value(&resolution, field))
    };
    let early = ["true", "device", "false", "true"];
    assert_eq!(shown("+trainer.val_before_train=False"), early);
    assert_eq!(shown("+trainer.val_before_train=False actor_rollout_ref.actor.entropy_coeff=0"), early);
    let today = ["", "none", "true", "true"];
    assert_eq!(shown("trainer.val_before_train=False"), today);
    // Added whether it exists or not; and another key, which may have been added to any release.
    assert_eq!(shown("++trainer.val_before_train=False"), today);
    assert_eq!(shown("+trainer.remove_previous_ckpt=True"), today);
}

/// `openrlhf.cli.train_pure_ray` (CJReinforce/PURE) was answered as OpenRLHF's own, with a mark for its options.
#[test]
fn a_trainer_made_of_openrlhf_is_its_own() {
    let of = |program: &str| {
        script(&format!(
            "python -m {program} --actor_num_nodes 1 --actor_num_gpus_per_node 4 --ref_num_nodes 1 --ref_num_gpus_per_node 4 \
             --vllm_num_engines 4 --vllm_tensor_parallel_size 1 --advantage_estimator rloo --n_samples_per_prompt 4 \
             --micro_rollout_batch_size 2 --rollout_batch_size 64 --micro_train_batch_size 2 --train_batch_size 128 \
             --pretrain Qwen/Qwen2.5-7B --prompt_max_len 1024 --generate_max_len 8192 --zero_stage 2 --bf16 --flash_attn --remote_rm_url a"
        ))
    };
    for own in ["openrlhf.cli.train_ppo_ray", "openrlhf/cli/train_ppo_ray.py"] {
        let read = of(own);
        assert!(read.plan.is_some(), "{own}: {:?}", read.diagnostics);
    }
    stopped(&of("openrlhf.cli.train_pure_ray"), &["program"]);
}

fn megatron(more: &str) -> Resolution {
    script(&format!(
        "torchrun --nproc_per_node 8 pretrain_gpt.py --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 \
         --global-batch-size 64 --bf16 {more}\n"
    ))
}

/// MindSpeed-LLM's Qwen 7B of 2023 has Llama 2's sizes with biases on queries, keys and values, and 151,936 tokens.
#[test]
fn a_shape_tells_no_vocabulary_where_the_attention_is_anothers() {
    let sizes = "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 11008 --num-attention-heads 32 --swiglu --disable-bias-linear \
        --tokenizer-type PretrainedFromHF --tokenizer-name-or-path your tokenizer path";
    let llama = megatron(sizes);
    assert!(llama.plan.is_some(), "{:?}", llama.diagnostics);
    assert_eq!(value(&llama, Field::VocabSize), "32000");
    for other in ["--add-qkv-bias", "--group-query-attention --num-query-groups 4"] {
        let asked = megatron(&format!("{sizes} {other}"));
        assert!(asked.plan.is_none(), "{other}");
        let question =
            asked.questions.iter().find(|question| question.asks == Asked::Setting(Field::VocabSize));
        assert!(question.is_some(), "{other}: {:?}", asked.diagnostics);
        assert!(asked.diagnostics.iter().any(|said| said.message.contains("path is not given")), "{other}");
    }
}

/// GPT-3's shape with a custom tokenizer (bigcode's santacoder has 49,280 tokens); a file named after the model is
/// accepted.
#[test]
fn a_shape_tells_no_vocabulary_beside_a_tokenizer_of_somebodys_own() {
    let gpt = "--num-layers 24 --hidden-size 2048 --num-attention-heads 16 --tokenizer-type HuggingFaceTokenizer --tokenizer-model";
    assert!(megatron(&format!("{gpt} /data/tokenizers/ours")).plan.is_none());
    assert!(megatron(&format!("{gpt} /path/to/tokenizer")).plan.is_some());
    let llama = "--num-layers 40 --hidden-size 5120 --ffn-hidden-size 13824 --num-attention-heads 40 --swiglu --disable-bias-linear \
        --tokenizer-type HuggingFaceTokenizer --tokenizer-model /workspace/llama-tokenizer";
    assert_eq!(value(&megatron(llama), Field::VocabSize), "32000");
}

/// A file of transformers' arguments was read as Megatron's flags because of `bf16` and `seed`. Whether adapters train
/// depends on its program (CrowdStrike/automaldesc `configs/train.yaml`, QLoRA-FineTuning-Platform
/// `qlora_default.yaml`).
#[test]
fn arguments_without_their_program_ask_what_it_trains() {
    let file = "output_dir: a\nnum_train_epochs: 3\nper_device_train_batch_size: 4\ngradient_accumulation_steps: 8\nlearning_rate: 1e-4\n\
        bf16: true\nseed: 1\nmax_length: 2048\ngradient_checkpointing: true\n";
    let given = [("model", "Qwen/Qwen2.5-7B"), ("world_size", "8")];
    let open = said("a.yaml", file, &given);
    assert!(open.plan.is_none());
    let asked: Vec<_> = open.questions.iter().map(|question| question.name()).collect();
    assert_eq!(asked, ["train_type"]);
    let full = said("a.yaml", file, &[given[0], given[1], ("train_type", "full")]);
    assert!(full.plan.is_some(), "{:?}", full.diagnostics);
    assert_eq!([Field::MicroBatchSize, Field::NumMicroBatches].map(|field| value(&full, field)), ["4", "8"]);
    // With rollouts, the questions are entirely different.
    let rollouts =
        said("a.yaml", &format!("{file}num_generations: 8\nmax_completion_length: 1024\n"), &given);
    assert!(rollouts.plan.is_none());
    assert!(!rollouts.questions.iter().any(|question| question.name() == "train_type"));
}

/// NeMo-RL's `converter_type` names how weights are converted; axolotl's `base_model_config` repeats the model.
#[test]
fn names_of_what_is_the_same_change_nothing() {
    let axolotl = "base_model: Qwen/Qwen2.5-7B\nsequence_len: 2048\nmicro_batch_size: 1\ngradient_accumulation_steps: 1\nadapter: lora\nlora_r: 8\n\
        lora_target_linear: true\nbf16: true\nbase_model_config: ";
    let given = [("world_size", "8")];
    let same = said("a.yml", &format!("{axolotl}Qwen/Qwen2.5-7B\n"), &given);
    assert!(same.plan.is_some(), "{:?}", same.diagnostics);
    stopped(&said("a.yml", &format!("{axolotl}mine/config\n"), &given), &["base_model_config"]);
    let nemo = "defaults: ../../grpo_math_1B.yaml\npolicy:\n  model_name: Qwen/Qwen2.5-7B\n  dtensor_cfg:\n    enabled: false\n  megatron_cfg:\n    \
        enabled: true\n    converter_type: Qwen2ForCausalLM\n    tensor_model_parallel_size: 4\ncluster:\n  gpus_per_node: 8\n  num_nodes: 1\n";
    let read = said("a.yaml", nemo, &[]);
    assert!(read.plan.is_some(), "{:?} {:?}", read.diagnostics, read.not_modelled);
}

/// Polygl0t/llm-foundry `alignment/dpo_trainer.sh`: a program recognised as DPO by its name was given a reference next
/// to the policy, whatever its options said about that.
#[test]
fn a_reference_that_is_run_before_the_training_is_none_beside_it() {
    let line = "torchrun --nproc_per_node 4 dpo_trainer.py --model_name_or_path Qwen/Qwen2.5-0.5B --max_length 4096 --beta 0.1 \
        --per_device_train_batch_size 8 --gradient_accumulation_steps 4 --bf16 --gradient_checkpointing --output_dir a --num_proc 8";
    let shown = |more: &str| {
        let read = script(&format!("{line} {more}"));
        assert!(read.plan.is_some(), "{:?} {:?}", read.diagnostics, read.not_modelled);
        [Field::TrainingObjective, Field::ReferenceModel].map(|field| value(&read, field))
    };
    assert_eq!(shown("--precompute_ref_log_probs"), ["dpo", "precomputed"]);
    assert_eq!(shown(""), ["dpo", ""]);
}

/// Hong-Lab-UMN-ECE/RoSTE `train_qa_sft_roste.py`: its own quantizing layers, under a name that begins like that of
/// transformers.
#[test]
fn a_class_of_models_from_beside_the_program_is_its_own() {
    let of = |import: &str| {
        let text = format!(
            "from trl import SFTConfig, SFTTrainer\n{import}\nmodel = Qwen2Quantized.from_pretrained('Qwen/Qwen2.5-7B')\n\
             args = SFTConfig(per_device_train_batch_size=1, max_length=2048, bf16=True)\n\
             trainer = SFTTrainer(model=model, args=args)\ntrainer.train()\n"
        );
        said("train.py", &text, &[("world_size", "8")])
    };
    let own = "from models.modeling_qwen2_rq import Qwen2ForCausalLM as Qwen2Quantized";
    stopped(&of(own), &["Qwen2Quantized"]);
    let theirs = of("from transformers import Qwen2ForCausalLM as Qwen2Quantized");
    assert!(theirs.plan.is_some(), "{:?} {:?}", theirs.diagnostics, theirs.not_modelled);
}

/// Values that the text leaves to its program or its environment have a proposal: MeetKai/functionary's
/// `ds3_config.yaml` (accelerate's "auto"), InfoRM's scripts of 23 arguments, swiss-ai/apertus-finetuning-recipes
/// `sft_train.py`.
#[test]
fn what_is_left_open_has_a_proposal_that_makes_a_plan() {
    let accelerate = "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nnum_processes: 8\nmixed_precision: bf16\n\
        deepspeed_config:\n  gradient_accumulation_steps: auto\n  zero_stage: 3\n";
    let given = [("model", "Qwen/Qwen2.5-7B"), ("seq_length", "4096"), ("micro_batch_size", "1")];
    let read = said("a.yaml", accelerate, &given);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    let program = "import sys\nkwargs = {k: v for k, v in load(sys.argv).items()}\n\
        model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-7B', torch_dtype=kwargs['dtype'])\n\
        args = SFTConfig(per_device_train_batch_size=1, max_length=2048, bf16=True)\ntrainer = SFTTrainer(model=model, args=args)\n";
    let open = said("train.py", program, &[("world_size", "8")]);
    let asked = open.questions.iter().find(|question| question.asks == Asked::Setting(Field::ParamsDtype));
    let asked = asked.unwrap_or_else(|| panic!("{:?} {:?}", open.questions, open.diagnostics));
    assert_eq!(asked.proposal.as_deref(), Some("bf16"));
    assert!(asked.choices.iter().any(|choice| choice == "fp32"));
    // A length of 1,000,000,000 was proposed for each of them, beyond the limit.
    let script_of_arguments = "TP=$1\nBS=$2\nGBS=$3\nZERO=$4\nPROMPT_LEN=$5\nGENERATE_LEN=$6\nVLLM_MEMORY=$7\n\
        python3 -m openrlhf.cli.train_ppo_ray --actor_num_nodes 1 --actor_num_gpus_per_node 8 --ref_num_nodes 1 --ref_num_gpus_per_node 8 \
        --vllm_num_engines 4 --vllm_tensor_parallel_size ${TP} --micro_train_batch_size ${BS} --train_batch_size ${GBS} --zero_stage ${ZERO} \
        --prompt_max_len ${PROMPT_LEN} --generate_max_len ${GENERATE_LEN} --vllm_gpu_memory_utilization ${VLLM_MEMORY} \
        --pretrain Qwen/Qwen2.5-7B\n";
    let read = script(script_of_arguments);
    let call = read.questions.iter().find(|question| question.name() == "arguments");
    let line = call.and_then(|question| question.proposal.clone()).unwrap_or_default();
    assert!(line.ends_with("1024 1024 0.5"), "{line} of {:?}", read.questions);
}
