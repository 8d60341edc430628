//! More from the same random draw: which framework's training a text is.

use super::{MODEL, said, script, stopped, value};
use shardscope_plan::Field;

/// GPT-NeoX also trains reward models and preferences from the same files.
#[test]
fn neoxs_other_trainings_stop() {
    let text = "pipe_parallel_size: 0\nmodel_parallel_size: 1\nnum_layers: 2\nhidden_size: 64\nnum_attention_heads: 4\nseq_length: 64\n\
        train_micro_batch_size_per_gpu: 2\ntrain_impl: rm\n";
    stopped(&said("rm.yml", text, &[]), &["train_impl"]);
    let plain = said("sft.yml", &text.replace("rm", "normal"), &[]);
    assert!(plain.not_modelled.is_empty(), "{:?}", plain.not_modelled);
}

/// LLaMA-Factory also trains with Megatron's layers, and writes tokens without training.
#[test]
fn llamafactorys_other_programs_stop() {
    let text = "model_name_or_path: Qwen/Qwen3-4B-Instruct-2507\nstage: sft\ndo_train: true\nfinetuning_type: lora\nlora_target: all\n\
        cutoff_len: 2048\n";
    let more = |more: &str| said("train.yaml", &format!("{text}{more}"), &[("world_size", "8")]);
    stopped(&more("learning_rate: 1e-4\ntensor_model_parallel_size: 1\n"), &["tensor_model_parallel_size"]);
    stopped(&more("tokenized_path: saves/data\n"), &["tokenized_path"]);
    assert!(more("learning_rate: 1e-4\ntokenized_path: saves/data\n").plan.is_some());
}

/// miles trains by FSDP as well as Megatron.
#[test]
fn another_backend_of_miles_stops() {
    let text = "ray job submit -- python3 train.py --train-backend fsdp --hf-checkpoint /root/Qwen3-4B --actor-num-nodes 1 \
        --actor-num-gpus-per-node 8 --colocate --rollout-batch-size 8 --n-samples-per-prompt 8 --global-batch-size 64 \
        --rollout-max-response-len 4096 --use-dynamic-batch-size --max-tokens-per-gpu 9216\n";
    stopped(&script(text), &["train-backend"]);
    let megatron = script(&text.replace("fsdp", "megatron"));
    assert!(!megatron.not_modelled.iter().any(|item| item.is_called("train-backend")));
}

/// Teachers for on-policy distillation are on separate accelerators.
#[test]
fn teachers_of_nemo_rl_stop() {
    let text = "defaults: grpo_math_1B.yaml\ngrpo:\n  num_prompts_per_step: 16\n  adv_estimator:\n    name: opd\npolicy:\n  \
        model_name: Qwen/Qwen3-1.7B\n";
    stopped(&said("mopd.yaml", text, &[]), &["grpo.adv_estimator.name"]);
}

/// OLMo-core classes that have the same names as TRL's.
#[test]
fn olmo_cores_programs_are_none_of_transformers() {
    let text = "from olmo_core.config import Config\nmodel = TransformerConfig.from_pretrained('a/b')\nconfig = SFTConfig(seed=1)\n";
    stopped(&said("sft.py", text, &[]), &["program"]);
}

/// Parts of a MaxText configuration belong to that trainer, however little they say.
#[test]
fn parts_of_maxtext_stop_as_maxtext() {
    for text in ["base_config: base.yml\nuse_sft: true\n", "mesh_axes: [data]\nlogical_axis_rules: []\n"] {
        stopped(&said("part.yml", text, &[]), &["framework"]);
    }
}

/// A third draw, of launches for reinforcement learning and pre-training: cases that were answered although the text
/// trains something else.
#[test]
fn models_of_several_parts_are_no_decoders() {
    for option in
        ["--model-provider llava_avlm", "--audio-encoder-model openai/whisper-base", "--guidance-embed"]
    {
        let text = format!("torchrun --nproc_per_node 8 examples/mimo/train.py {MODEL} {option}\n");
        let name = option.split(' ').next().unwrap_or(option);
        assert!(
            script(&text).not_modelled.iter().any(|item| item.is_called(name.trim_start_matches('-'))),
            "{option}"
        );
    }
    let text = "python3 -m openrlhf.cli.train_ppo_ray --actor.num_nodes 1 --actor.num_gpus_per_node 4 --train.colocate_all \
        --actor.model_name_or_path Qwen/Qwen2.5-1.5B --reward.remote_url r.py --train.micro_batch_size 1 --train.batch_size 64 \
        --rollout.batch_size 8 --rollout.n_samples_per_prompt 8 --data.max_len 4096 --ds.zero_stage 3 --ds.param_dtype bf16 \
        --vllm.num_engines 4 --vllm.gpu_memory_utilization 0.7 --data.image_key images --actor.freeze_visual_encoder\n";
    assert!(script(text).not_modelled.iter().any(|item| item.is_called("data.image_key")));
}

/// verl with validation only takes the same words as a training.
#[test]
fn validation_alone_is_no_training() {
    let text = "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B data.train_batch_size=128 \
        actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \
        trainer.n_gpus_per_node=8 trainer.nnodes=1 algorithm.adv_estimator=grpo trainer.val_only=True\n";
    stopped(&script(text), &["trainer.val_only"]);
}

/// AReaL and ROLL, whose files were taken for an inference server's or not recognised.
#[test]
fn trainings_of_areal_and_roll_are_recognised_by_name() {
    let areal = "experiment_name: a\ncluster: {n_nodes: 1, n_gpus_per_node: 8}\ngconfig: {n_samples: 4}\nactor: {path: Qwen/Qwen2.5-7B}\n\
        vllm: {model: '${actor.path}'}\n";
    let roll = "exp_name: a\npretrain: Qwen/Qwen2.5-7B\nactor_train: {training_args: {learning_rate: 1.0e-6}}\nactor_infer: {}\n\
        num_gpus_per_node: 8\n";
    for text in [areal, roll] {
        let read = said("config.yaml", text, &[]);
        stopped(&read, &["framework"]);
        assert_eq!([value(&read, Field::HiddenSize), value(&read, Field::GpusPerNode)], ["3584", "8"]);
    }
}

/// A NeMo 1 decoder with everything that a plan needs.
const NEMO: &str = "trainer:\n  num_nodes: 1\n  devices: 8\n  precision: bf16\n  max_steps: -1\nmodel:\n  micro_batch_size: 1\n  \
    global_batch_size: 16\n  encoder_seq_length: 2048\n  num_layers: 4\n  hidden_size: 1024\n  num_attention_heads: 8\n";

/// NVIDIA/NeMo-Aligner `examples/nlp/gpt/conf` and `examples/nlp/synthetic_data_gen/conf/compute_topk_logits.yaml`; -1
/// steps means as many as the data allow.
#[test]
fn nemo_aligners_trainings_and_tools_are_distinguished_from_pretraining() {
    let steps = "  optim:\n    name: mcore_distributed_optim\n";
    let read = |more: &str| said("a.yaml", &format!("{NEMO}{more}"), &[("vocab_size", "32000")]);
    let plain = read(steps);
    assert!(plain.plan.is_some() && plain.not_modelled.is_empty(), "{:?}", plain.diagnostics);
    assert_eq!(value(&plain, Field::TrainIters), "");
    for (more, name) in [
        ("  dpo:\n    ref_policy_kl_penalty: 0.2\n", "model.dpo."),
        ("  reinforce:\n    num_rollout_samples: 512\n", "model.reinforce."),
        ("  rs:\n    num_rollouts_per_prompt: 8\n", "model.rs."),
        ("  reward_model_type: binary_ranking\n", "model.reward_model_type"),
        ("  knowledge_distillation:\n    target_logits_scale: 1\n", "model.knowledge_distillation."),
    ] {
        let lacks = read(&format!("{steps}{more}")).not_modelled;
        assert!(lacks.iter().any(|item| item.name.starts_with(name)), "{name}: {lacks:?}");
    }
    // It restores a model, and has no optimizer; a file that builds on another one may have its optimizer there.
    stopped(&read("  restore_from_path: a.nemo\n"), &["model.restore_from_path"]);
    assert!(read(&format!("{steps}  restore_from_path: a.nemo\n")).plan.is_some());
    assert!(read("  restore_from_path: a.nemo\ndefaults:\n  - base\n").not_modelled.is_empty());
}

/// NVIDIA/NeMo-Framework-Launcher `auto_configurator/base_configs/chatglm_6b.yaml`;
/// `megatron_gpt_model.py:model_provider_func` uses the vocabulary size without padding.
#[test]
fn a_vocabulary_that_nemo_is_reported_is_not_asked_for_nor_padded() {
    let read = |more: &str| {
        let text = format!(
            "{NEMO}  make_vocab_size_divisible_by: 128\n  tokenizer:\n    library: huggingface\n    type: THUDM/chatglm3-6b\n  optim:\n    \
             name: fused_adam\n{more}"
        );
        said("a.yaml", &text, &[])
    };
    let open = read("");
    assert!(open.plan.is_none() && open.questions.iter().any(|asked| asked.name() == "vocab_size"));
    let reported = read("  override_vocab_size: 65025\n");
    assert_eq!(
        (reported.plan.is_some(), value(&reported, Field::PaddedVocabSize)),
        (true, "65025".to_owned())
    );
}

/// EleutherAI/pythia `models/1B/pythia-1b.yml`: keys with dashes, and accumulation steps under another name.
#[test]
fn neoxs_keys_count_in_both_spellings() {
    let text = "pipe-parallel-size: 1\nmodel-parallel-size: 1\nnum-layers: 2\nhidden-size: 64\nnum-attention-heads: 4\nseq-length: 64\n\
        max-position-embeddings: 64\ntrain_micro_batch_size_per_gpu: 2\nsynchronize-each-layer: true\ndistributed-backend: nccl\n\
        checkpoint-factor: 1000\nextra-save-iters: [0]\ngas: 4\n";
    let given = [("world_size", "8"), ("vocab_size", "50277")];
    let read = said("a.yml", text, &given);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    let shown = [Field::NumMicroBatches, Field::NotRead].map(|field| value(&read, field));
    assert_eq!(shown, ["4", ""]);
}
