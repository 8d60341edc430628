//! Misreadings found in the twenty-third draw of public files, and such as were known before it.

use super::{said, script, stopped, value};
use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::Field;
use shardscope_source::Source;

fn files(texts: &[(&str, &str)]) -> Resolution {
    let source = Source::from_files(texts.iter().copied());
    read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
}

/// The sequences and graphs of verl's engine that `more` of a command leaves to its defaults.
fn verls(more: &str) -> [String; 2] {
    let read = script(&format!(
        "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=128 data.max_prompt_length=512 \
         data.max_response_length=512 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B actor_rollout_ref.model.use_remove_padding=True \
         actor_rollout_ref.actor.ppo_mini_batch_size=32 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \
         actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=8 trainer.n_gpus_per_node=8 trainer.nnodes=1 {more}\n"
    ));
    [Field::RolloutSequences, Field::RolloutCudaGraphs].map(|field| value(&read, field))
}

/// bdsaglam/docvqa-verl (0.8), yuki-younai/verl-alignment and antoinegg1/verl-internvl (0.4.1): `max_num_seqs` is 1024 in 0.2 to 0.8.0
/// and 256 in 0.9.0 and 0.9.1, `enforce_eager` true in 0.2 to 0.5.0.
#[test]
fn keys_that_verl_no_longer_has_tell_its_engines_defaults() {
    assert_eq!(verls(""), ["256", "true"]);
    for older in [
        "critic.model.fsdp_config.param_offload=False",
        "trainer.use_legacy_worker_impl=disable",
        "actor_rollout_ref.rollout.update_weights_bucket_megabytes=512",
        "reward_model.micro_batch_size_per_gpu=4",
        "actor_rollout_ref.rollout.skip_rollout=False",
        "actor_rollout_ref.rollout.mode=sync",
    ] {
        assert_eq!(verls(older), ["1024", "true"], "{older}");
    }
    for oldest in [
        "ray_init.num_cpus=16",
        "trainer.npu_profile.options.level=level1",
        "trainer.profile_steps=[1]",
        "actor_rollout_ref.rollout.engine_kwargs.vllm.swap_space=null",
    ] {
        assert_eq!(verls(oldest), ["1024", "false"], "{oldest}");
    }
    // Keys that are added may be added to any release, and longer names are other keys.
    for other in ["+ray_init.num_cpus=16", "+data.sampler.class_path=a", "critic.model.fsdp_configuration=1"]
    {
        assert_eq!(verls(other)[0], "256", "{other}");
    }
    assert_eq!(verls("actor_rollout_ref.rollout.mode=async")[0], "256");
    let stated = "critic.model.fsdp_config.param_offload=False actor_rollout_ref.rollout.max_num_seqs=64";
    assert_eq!(verls(stated)[0], "64");
    assert_eq!(verls("\npip install verl==0.8.0"), ["1024", "true"]);
    assert_eq!(verls("\npip install verl==0.9.1"), ["256", "true"]);
}

/// LeonLixyz/r2e-verl `run_qwen2.5_7b_sp4.sh`: `strategy: fsdp2` in `sft_trainer.yaml` of 0.4.0 to 0.7.0.
#[test]
fn verls_fsdp_trainer_shards_by_fsdp2() {
    let of = |program: &str, more: &str| {
        script(&format!(
            "torchrun --nnodes=1 --nproc_per_node=8 -m verl.trainer.{program} data.max_length=2048 data.train_batch_size=64 \
             data.micro_batch_size_per_gpu=2 data.train_files=a.parquet optim.lr=1e-6 trainer.total_epochs=1 {more}\n"
        ))
    };
    let engine = |program: &str, more: &str| value(&of(program, more), Field::DataParallelEngine);
    let model = "model.partial_pretrain=Qwen/Qwen2.5-7B";
    assert_eq!(engine("fsdp_sft_trainer", model), "fsdp2");
    assert_eq!(engine("fsdp_sft_trainer", &format!("{model} model.strategy=fsdp")), "fsdp1");
    assert_eq!(engine("fsdp_sft_trainer", &format!("{model} model.strategy=fsdp2")), "fsdp2");
    assert_eq!(engine("sft_trainer", "model.path=Qwen/Qwen2.5-7B"), "fsdp1");
    // Padding is removed under Ulysses alone.
    let padded = |more: &str| {
        let read = of("fsdp_sft_trainer", &format!("{model} {more}"));
        [Field::Packing, Field::PaddingMask].map(|field| value(&read, field))
    };
    assert_eq!(padded("use_remove_padding=true"), ["false", "true"]);
    assert_eq!(padded("use_remove_padding=true ulysses_sequence_parallel_size=2"), ["true", "false"]);
}

/// taegyeong-lee/Qwen3-VL-SFT-RL-Tutorial `single.yaml`: settings of a program that calls TRL's DPO were read as those of `swift sft`.
#[test]
fn a_programs_own_settings_are_not_ms_swifts() {
    let of = |rate: &str| {
        let text = format!(
            "model: Qwen/Qwen3-4B\noutput_dir: o\nsave_steps: 100\nlora_rank: 16\nlora_alpha: 32\nper_device_train_batch_size: 1\n\
             gradient_accumulation_steps: 8\n{rate}bf16: true\nbeta: 0.1\nmax_length: 2048\nmax_prompt_length: 1024\n"
        );
        said("single.yaml", &text, &[("world_size", "1")])
    };
    let says = |read: &Resolution| read.diagnostics.iter().any(|said| said.message.contains("ms-swift"));
    assert!(says(&of("learning_rate: 1.0e-4\n")));
    for own in ["lr: 5.0e-6\n", "lr_scheduler: cosine\n", "quantize_4bit: false\n", "dataset_path: a.jsonl\n"]
    {
        let read = of(own);
        assert!(read.plan.is_none() && !says(&read), "{own}: {:?}", read.diagnostics);
    }
}

/// `run_clm.py` loads by `AutoModelForCausalLM`, which refuses T5; TRL's collators have labels of their own.
#[test]
fn programs_for_decoders_stop_at_an_encoder_decoder() {
    let clm = |program: &str, model: &str| {
        let command = format!(
            "torchrun --nproc_per_node 1 {program} --model_name_or_path {model} --dataset_name a --do_train --bf16 --output_dir o \
             --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --block_size 1024 --torch_dtype bfloat16\n"
        );
        said("run.sh", &command, &[("source_length", "512"), ("seq_length", "128")])
    };
    for program in ["run_clm.py", "examples/pytorch/language-modeling/run_clm.py", "run_clm_no_trainer.py"] {
        stopped(&clm(program, "google/flan-t5-base"), &["seq2seq"]);
    }
    assert!(clm("run_summarization.py", "google/flan-t5-base").plan.is_some());
    let decoder = "torchrun --nproc_per_node 1 run_clm.py --model_name_or_path Qwen/Qwen2.5-0.5B --dataset_name a --do_train --bf16 \
                   --output_dir o --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --block_size 1024\n";
    assert!(script(decoder).not_modelled.is_empty(), "{:?}", script(decoder).not_modelled);
    let lengths = [("source_length", "512"), ("seq_length", "128"), ("world_size", "1")];
    let trl = "trl sft --model_name_or_path google/flan-t5-base --dataset_name a --per_device_train_batch_size 2 --bf16 \
               --dtype bfloat16 --max_length 1024\n";
    stopped(&said("run.sh", trl, &lengths), &["seq2seq"]);
    let file = "model_name_or_path: google/flan-t5-base\nper_device_train_batch_size: 2\nlearning_rate: 1e-4\nbf16: true\n";
    stopped(&said("sft.yaml", file, &lengths), &["seq2seq"]);
    let program = "from trl import SFTConfig, SFTTrainer\nargs = SFTConfig(output_dir='o', per_device_train_batch_size=2, bf16=True)\n\
                   SFTTrainer(model='google/flan-t5-base', args=args, train_dataset=data).train()\n";
    stopped(&said("sft.py", program, &lengths), &["seq2seq"]);
}

/// `accelerator.py:prepare_model` of 0.29.3 and 0.30.0.
#[test]
fn accelerate_before_thirty_does_not_lift_the_weights_of_fsdp() {
    let file = "distributed_type: FSDP\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: 8\nfsdp_config:\n  \
                fsdp_sharding_strategy: FULL_SHARD\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n";
    let stops = |install: &str, file: &str| {
        let read = files(&[("fsdp.yaml", file), ("requirements.txt", install)]);
        read.not_modelled.iter().any(|item| item.name == "accelerate")
    };
    assert!(stops("accelerate==0.29.3\n", file));
    assert!(!stops("accelerate==0.30.0\n", file) && !stops("accelerate>=0.26\n", file));
    assert!(!stops("accelerate==0.29.3\n", &file.replace("FSDP\n", "MULTI_GPU\n")));
    assert!(!stops("accelerate==0.29.3\n", &file.replace("bf16", "'no'")));
    // Weights that are loaded in fp32 are stepped in fp32 all the same.
    let run = |line: &str| {
        let text = format!(
            "pip install accelerate==0.28.0\n{line} --per_device_train_batch_size 1 --bf16 --output_dir o\n"
        );
        files(&[("run.sh", &text), ("fsdp.yaml", file)])
            .not_modelled
            .iter()
            .any(|item| item.name == "accelerate")
    };
    let sft = |format: &str| {
        run(&format!(
            "accelerate launch --config_file fsdp.yaml sft.py --model_name_or_path meta-llama/Llama-3.1-8B --max_length 2048 {format}"
        ))
    };
    assert!(!sft("--torch_dtype float32") && sft("--torch_dtype bfloat16"));
    let clm = |more: &str| {
        run(&format!(
            "torchrun --nproc_per_node 8 run_clm.py --model_name_or_path meta-llama/Llama-3.1-8B --block_size 2048 --fsdp 'full_shard auto_wrap' {more}"
        ))
    };
    assert!(!clm("--overwrite_output_dir"), "transformers 4 loads fp32");
    assert!(clm("--overwrite_output_dir --torch_dtype bfloat16"));
}

/// A launch line without options, beside the program that it starts.
#[test]
fn a_line_without_options_starts_the_program_beside_it() {
    let program = "import torch\nfrom transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n\
                   model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-0.5B', torch_dtype=torch.bfloat16)\n\
                   args = TrainingArguments(output_dir='o', per_device_train_batch_size=2, gradient_accumulation_steps=4, bf16=True)\n\
                   Trainer(model=model, args=args, train_dataset=data).train()\n";
    let line = "torchrun --nproc_per_node 2 src/train.py\n";
    let both = files(&[("run.sh", line), ("train.py", program)]);
    assert!(both.not_modelled.is_empty(), "{:?}", both.not_modelled);
    assert_eq!([Field::WorldSize, Field::MicroBatchSize].map(|field| value(&both, field)), ["2", "2"]);
    assert!(both.questions.iter().all(|question| question.name() == "seq_length"));
    // Another program's settings are still elsewhere.
    stopped(&files(&[("run.sh", line), ("other.py", program)]), &["program"]);
    stopped(&files(&[("run.sh", line)]), &["program"]);
}

/// zyzshishui/slime `run-qwen3-30b-a3b-fp8-two-nodes.sh`: the experts' options are in the file of the model, which is not here, and
/// typographic quotes hid the format of the engine's checkpoint. Routers of slime's own run on the host.
#[test]
fn slimes_files_of_models_with_experts_state_how_they_run() {
    let of = |model: &str, checkpoint: &str, more: &str| {
        script(&format!(
            "source models/{model}.sh\nray job submit -- python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 --colocate \
             ${{MODEL_ARGS[@]}} --hf-checkpoint {checkpoint} --ref-load a --rollout-batch-size 16 --n-samples-per-prompt 8 \
             --rollout-max-response-len 4096 --global-batch-size 128 --advantage-estimator grpo --tensor-model-parallel-size 1 \
             --expert-model-parallel-size 8 --use-dynamic-batch-size --max-tokens-per-gpu 8192 --optimizer adam \
             --rollout-num-gpus-per-engine 8 --use-slime-router --slime-router-timeout 60 {more}\n"
        ))
    };
    let fields = [Field::MoeGroupedGemm, Field::MoePermuteFusion, Field::MoeRouterDtype, Field::RolloutDtype];
    let sends = |read: &Resolution| value(read, Field::MoeTokenDispatcherType);
    let shown = |read: &Resolution| fields.map(|field| value(read, field));
    let experts = of("qwen3-30B-A3B", "\u{201c}/root/Qwen3-30B-A3B-FP8/\u{201d}", "");
    assert!(experts.not_modelled.is_empty(), "{:?}", experts.not_modelled);
    assert_eq!(shown(&experts), ["true", "true", "fp32", "fp8"]);
    let stated = of("qwen3-30B-A3B", "/root/Qwen3-30B-A3B", "--moe-router-dtype fp64");
    assert_eq!(shown(&stated), ["true", "true", "fp64", "bf16"]);
    let dense = of("qwen3-8B", "/root/Qwen3-8B", "");
    assert_eq!(shown(&dense)[..3], ["", "", ""]);
    // The files of Qwen3's experts state an all-to-all, which the command may overrule.
    assert_eq!([&experts, &stated, &dense].map(sends), ["alltoall", "alltoall", ""]);
    let fused = of("qwen3-30B-A3B", "/root/Qwen3-30B-A3B", "--moe-token-dispatcher-type flex");
    assert_eq!(sends(&fused), "flex");
}
