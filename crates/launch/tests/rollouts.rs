//! Reinforcement-learning launches whose engine differs from what their other options suggest.

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::{Field, NumberFormat, Recompute, Residence, RolloutEngine};
use shardscope_source::{Code, Source};

/// A policy of 4B parameters under slime, with some accelerators only for generation.
const SLIME: &str = "python3 train_async.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 --hf-checkpoint /root/Qwen3-4B \
    --ref-load /root/ref --use-kl-loss --rollout-batch-size 128 --n-samples-per-prompt 8 --global-batch-size 128 --seq-length 4096 \
    --rollout-num-gpus 8 --micro-batch-size 1 --bf16 --use-distributed-optimizer --attention-backend flash";

fn resolved(name: &str, text: &str) -> Resolution {
    let source = Source::from_files([(name, text)]);
    let environment = Environment::default();
    read(&Request { source: &source, environment: &environment, overrides: &[] })
}

fn slime(options: &str) -> Resolution {
    resolved("run.sh", &format!("{SLIME} {options}\n"))
}

/// Names of the settings that stop the verdict.
fn stopped_by(resolution: &Resolution) -> Vec<&str> {
    resolution.not_modelled.iter().map(|item| item.name.as_str()).collect()
}

fn own_gpus(resolution: &Resolution) -> Option<u64> {
    let plan = resolution.plan.as_ref().unwrap_or_else(|| panic!("{:?}", resolution.diagnostics));
    let rollout = plan.recipe().rollout.as_ref().unwrap_or_else(|| panic!("no rollouts"));
    assert_eq!(rollout.engine, RolloutEngine::Sglang);
    rollout.own_gpus
}

#[test]
fn training_alone_starts_no_engine_whatever_stands_around_it() {
    assert_eq!(own_gpus(&slime("")), Some(8));
    let tuning = "--loss-type sft_loss --disable-compute-advantages-and-returns --debug-train-only";
    assert_eq!(own_gpus(&slime(tuning)), Some(0));
    assert_eq!(own_gpus(&slime("--debug-train-only --colocate --rollout-num-gpus 16")), Some(0));
    assert_eq!(stopped_by(&slime("--debug-rollout-only")), ["--debug-rollout-only"]);
    assert_eq!(stopped_by(&slime("--loss-type custom_loss")), ["--loss-type"]);
}

#[test]
fn attention_over_data_parallel_ranks_is_recognised_by_their_number() {
    let lone = slime("--sglang-enable-dp-attention --sglang-enable-dp-lm-head --sglang-dp-size 1");
    assert!(stopped_by(&lone).is_empty());
    assert_eq!(own_gpus(&slime("--sglang-enable-dp-attention")), Some(8));
    let several = slime("--sglang-enable-dp-attention --sglang-dp-size 8");
    assert_eq!(stopped_by(&several), ["--sglang-dp-size"]);
}

#[test]
fn a_teacher_waits_on_the_host() {
    let taught = slime("--use-opd --opd-type megatron --opd-kl-coef 1.0 --opd-teacher-load /root/teacher");
    assert!(stopped_by(&taught).is_empty());
    assert!(
        taught.diagnostics.iter().all(|said| said.code != Code::UnknownFlags),
        "{:?}",
        taught.diagnostics
    );
}

#[test]
fn the_engines_weights_have_the_checkpoints_format() {
    let width = |resolution: &Resolution| {
        let plan = resolution.plan.as_ref()?;
        Some(plan.recipe().rollout.as_ref()?.weights.width())
    };
    let with = |name: &str| {
        let command = SLIME.replace("/root/Qwen3-4B ", &format!("/root/{name} "));
        resolved(
            "run.sh",
            &format!(
                "{command} --num-layers 36 --hidden-size 2560 --num-attention-heads 32 --vocab-size 151936\n"
            ),
        )
    };
    assert_eq!(width(&with("Qwen3-4B")), Some(2));
    assert_eq!(width(&with("Qwen3-4B-FP8")), Some(1));
    assert_eq!(stopped_by(&with("Qwen3-4B-INT4")), ["--hf-checkpoint"]);
}

#[test]
fn a_nemo_rl_recipe_of_little_more_than_its_base_asks_for_it_by_name() {
    let text = "defaults: ./grpo-mine-1n8g.yaml\ncluster:\n  gpus_per_node: 4\n";
    let said = resolved("recipe.yaml", text).diagnostics;
    let named = |code, word: &str| said.iter().any(|said| said.code == code && said.message.contains(word));
    assert!(named(Code::MissingFile, "grpo-mine-1n8g.yaml"), "{said:?}");
    assert!(said.iter().all(|said| said.code != Code::UnknownSettings), "{said:?}");
    // A Hydra list of defaults is not a recipe.
    let hydra = "defaults:\n  - base.yaml\ncluster:\n  gpus_per_node: 4\n";
    let said = resolved("other.yaml", hydra).diagnostics;
    assert!(said.iter().any(|said| said.code == Code::UnknownSettings), "{said:?}");
    let draft = "policy:\n  model_name: Qwen/Qwen3-1.7B\n  train_global_batch_size: 64\n  draft:\n    enabled: true\ngrpo:\n  \
        num_prompts_per_step: 8\n";
    assert!(stopped_by(&resolved("draft.yaml", draft)).contains(&"policy.draft.enabled"));
}

#[test]
fn openrlhfs_older_names_make_the_same_plan() {
    let old = "python3 -m openrlhf.cli.train_ppo_ray --ref_num_nodes 1 --ref_num_gpus_per_node 8 --actor_num_nodes 1 \
        --actor_num_gpus_per_node 8 --vllm_num_engines 2 --vllm_tensor_parallel_size 4 --colocate_all_models \
        --vllm_gpu_memory_utilization 0.6 --advantage_estimator group_norm --pretrain Qwen/Qwen3-8B --remote_rm_url reward.py \
        --micro_train_batch_size 2 --train_batch_size 64 --micro_rollout_batch_size 4 --rollout_batch_size 32 \
        --n_samples_per_prompt 8 --prompt_max_len 1024 --generate_max_len 2048 --zero_stage 3 --bf16 --flash_attn \
        --gradient_checkpointing --packing_samples --enforce_eager --vllm_enable_sleep --deepspeed_enable_sleep --adam_offload \
        --init_kl_coef 1e-3 --actor_learning_rate 5e-7 --save_path out --use_wandb key";
    let new = "python3 -m openrlhf.cli.train_ppo_ray --ref.num_nodes 1 --ref.num_gpus_per_node 8 --actor.num_nodes 1 \
        --actor.num_gpus_per_node 8 --vllm.num_engines 2 --vllm.tensor_parallel_size 4 --train.colocate_all \
        --vllm.gpu_memory_utilization 0.6 --algo.advantage.estimator group_norm --actor.model_name_or_path Qwen/Qwen3-8B \
        --reward.remote_url reward.py --train.micro_batch_size 2 --train.batch_size 64 --rollout.micro_batch_size 4 \
        --rollout.batch_size 32 --rollout.n_samples_per_prompt 8 --data.max_len 3072 --ds.zero_stage 3 --ds.param_dtype bf16 \
        --ds.attn_implementation flash_attention_2 --actor.gradient_checkpointing_enable --ds.packing_samples --vllm.enforce_eager \
        --vllm.enable_sleep --ds.enable_sleep --ds.adam_offload --algo.kl.init_coef 1e-3 --actor.adam.lr 5e-7";
    let [old, new] = [old, new].map(|text| resolved("run.sh", text));
    assert!(old.plan.is_some(), "{:?}", old.diagnostics);
    assert_eq!(old.plan, new.plan);
    assert!(old.not_modelled.is_empty(), "{:?}", old.not_modelled);
    // One step of supervised fine-tuning.
    let old = "deepspeed --module openrlhf.cli.train_sft --max_len 4096 --dataset d --train_batch_size 256 --micro_train_batch_size 2 \
        --pretrain meta-llama/Meta-Llama-3-8B --zero_stage 3 --max_epochs 1 --bf16 --flash_attn --learning_rate 5e-6 \
        --gradient_checkpointing --packing_samples --lora_rank 16";
    let new = "deepspeed --module openrlhf.cli.train_sft --data.max_len 4096 --data.dataset d --train.batch_size 256 \
        --train.micro_batch_size 2 --model.model_name_or_path meta-llama/Meta-Llama-3-8B --ds.zero_stage 3 --train.max_epochs 1 \
        --ds.param_dtype bf16 --ds.attn_implementation flash_attention_2 --adam.lr 5e-6 --model.gradient_checkpointing_enable \
        --ds.packing_samples --ds.lora.rank 16";
    let [old, new] = [old, new]
        .map(|text| resolved("run.sh", &format!("#SBATCH --nodes=1\n#SBATCH --gpus-per-node=8\n{text}\n")));
    assert!(old.plan.is_some(), "{:?}", old.diagnostics);
    assert_eq!(old.plan, new.plan);
}

/// From January to April 2026 (cd7a434f to ed62d0e2) names had no dots yet and the dtype was given by `--param_dtype`,
/// bf16 by default, with flash attention by default too; a policy's `--max_len` was the length of prompt and response
/// together.
#[test]
fn openrlhfs_names_of_early_2026_make_the_same_plan() {
    let sft = "deepspeed --num_gpus 8 --module openrlhf.cli.train_sft --max_len 4096 --train_batch_size 256 --micro_train_batch_size 2 \
        --pretrain meta-llama/Meta-Llama-3-8B --zero_stage 3 --gradient_checkpointing";
    let [older, newer] = ["--bf16 --flash_attn", "--param_dtype bf16"];
    let of = |more: &str| resolved("run.sh", &format!("{sft} {more}")).plan.expect("a plan");
    assert_eq!(of(older), of(newer));
    let policy = "python3 -m openrlhf.cli.train_ppo_ray --actor_num_nodes 1 --actor_num_gpus_per_node 8 --vllm_num_engines 4 \
        --vllm_tensor_parallel_size 2 --colocate_all_models --advantage_estimator group_norm --n_samples_per_prompt 8 \
        --pretrain Qwen/Qwen3-8B --micro_train_batch_size 4 --train_batch_size 128 --micro_rollout_batch_size 4 \
        --rollout_batch_size 128 --zero_stage 3 --gradient_checkpointing";
    let of = |more: &str| resolved("run.sh", &format!("{policy} {more}")).plan.expect("a plan");
    assert_eq!(
        of("--bf16 --flash_attn --prompt_max_len 1024 --generate_max_len 2048"),
        of("--param_dtype bf16 --max_len 3072"),
    );
    let stopped = resolved("run.sh", &format!("{sft} {newer} --grad_accum_dtype fp32"));
    assert!(stopped_by(&stopped).contains(&"ds.grad_accum_dtype"));
}

#[test]
fn openrlhfs_critic_is_there_with_generalised_advantages() {
    let run = |more: &str| {
        resolved(
            "run.sh",
            &format!(
                "python3 -m openrlhf.cli.train_ppo_ray --actor.num_gpus_per_node 8 --vllm.num_engines 8 --train.colocate_all \
             --actor.model_name_or_path Qwen/Qwen3-8B --reward.remote_url reward.py --ds.zero_stage 3 {more}"
            ),
        )
    };
    let critic = |more: &str| {
        run(more).setting(Field::RlCritic).map(|setting| setting.value.written()).unwrap_or_default()
    };
    // `train_ppo_ray.py`: with gae, its default, and external rewards the critic starts from the policy's model.
    assert_eq!(critic(""), "device");
    assert_eq!(critic("--algo.advantage.estimator reinforce"), "none");
    assert!(run("").not_modelled.is_empty());
    let other = run("--critic.model_name_or_path OpenRLHF/Llama-3-8b-rm-mixture");
    assert!(other.plan.is_none() && other.not_modelled.is_empty());
    let asked = other.questions.iter().find(|question| question.name() == "rl_critic_model");
    assert_eq!(asked.and_then(|asked| asked.proposal.as_deref()), Some("meta-llama/Llama-3-8B"));
}

#[test]
fn a_path_to_the_reference_model_is_one_wherever_it_begins() {
    let reference = |more: &str| {
        let read = slime(more);
        read.setting(Field::RlReference).map(|setting| setting.value.written()).unwrap_or_default()
    };
    assert_eq!(reference("--ref-load ${BASE_FOLDER}/Qwen3-4B_torch_dist"), "host");
    // A variable on its own may be empty.
    let open = slime("--ref-load ${REFERENCE}");
    assert!(open.plan.is_none() && open.questions.iter().any(|question| question.name() == "REFERENCE"));
}

/// slime loads a reference only for a divergence, whatever `--ref-load` says.
#[test]
fn a_reference_of_slime_that_nothing_is_held_against_is_not_loaded() {
    let reference = |text: &str| {
        let read = resolved("run.sh", text);
        read.setting(Field::RlReference).map(|setting| setting.value.written()).unwrap_or_default()
    };
    let without = SLIME.replace("--use-kl-loss ", "");
    assert_eq!(reference(SLIME), "host");
    assert_eq!(reference(&without), "none");
    assert_eq!(reference(&format!("{without} --kl-coef 0.00")), "none");
    assert_eq!(reference(&format!("{without} --kl-coef=0.01")), "host");
}

/// GRPO of open-instruct: four learners and, separately, four engines.
const OPEN_INSTRUCT: &str = "python open_instruct/grpo_fast.py --model_name_or_path Qwen/Qwen3-1.7B --num_learners_per_node 4 \
    --max_prompt_token_length 2048 --response_length 8192 --pack_length 16384 --num_unique_prompts_rollout 64 \
    --num_samples_per_prompt_rollout 16 --vllm_num_engines 4 --beta 0.0 --learning_rate 1e-6 --seed 42";

fn open_instruct(options: &str) -> Resolution {
    resolved("run.sh", &format!("{OPEN_INSTRUCT} {options}\n"))
}

#[test]
fn learners_of_open_instruct_are_apart_from_its_engines_unless_they_share_one_gpu() {
    let apart = open_instruct("--deepspeed_stage 2");
    let plan = apart.plan.as_ref().unwrap_or_else(|| panic!("{:?}", apart.diagnostics));
    let (recipe, rollout) = (plan.recipe(), plan.recipe().rollout.expect("rollouts"));
    assert_eq!((plan.cluster().gpus(), rollout.own_gpus, rollout.fraction), (4, Some(4), 0.9));
    // Layers are always checkpointed, and the reference is held even though beta is 0.
    assert!(recipe.recompute != Recompute::None);
    assert_eq!((rollout.reference, rollout.copies_all, rollout.sleeps), (Residence::Device, true, false));
    assert_eq!((recipe.params_dtype, recipe.transformers.autocast), (NumberFormat::Bf16, None));
    // 64 prompts x 16 samples of up to 10,240 tokens, over 4 learners in packs of 16,384.
    assert_eq!(
        (plan.model().seq_length, recipe.micro_batch_size, recipe.num_micro_batches),
        (16_384, 1, 160)
    );
    assert_eq!(rollout.length, 10_240);
    assert!(recipe.marks.not_read.is_empty(), "{:?}", recipe.marks);

    let halves = open_instruct("--deepspeed_stage 2 --num_mini_batches 2 --load_ref_policy false");
    let recipe = halves.plan.as_ref().expect("a plan").recipe().clone();
    assert_eq!(recipe.num_micro_batches, 80);
    assert_eq!(recipe.rollout.map(|rollout| rollout.reference), Some(Residence::Absent));

    let shared = "--deepspeed_stage 2 --single_gpu_mode --vllm_sync_backend gloo --vllm_gpu_memory_utilization 0.3 \
        --vllm_enforce_eager --gather_whole_model False";
    assert_eq!(stopped_by(&open_instruct(shared)), ["single_gpu_mode"]);
    let one = open_instruct(&format!("{shared} --num_learners_per_node 1"));
    let plan = one.plan.as_ref().unwrap_or_else(|| panic!("{:?}", one.diagnostics));
    let rollout = plan.recipe().rollout.expect("rollouts");
    assert_eq!((plan.cluster().gpus(), rollout.own_gpus, rollout.graphs), (1, None, false));
}

#[test]
fn what_deepspeed_does_under_open_instruct_follows_from_its_stage() {
    let third = open_instruct("--deepspeed_stage 3 --sequence_parallel_size 2 --attn_implementation flash_3");
    let plan = third.plan.as_ref().unwrap_or_else(|| panic!("{:?}", third.diagnostics));
    assert_eq!((plan.recipe().grads_dtype, plan.layout().context), (NumberFormat::Fp32, 2));
    assert_eq!((plan.layout().second_shards, plan.layout().second_groups()), (4, 1));
    let single = open_instruct("--deepspeed_stage 3 --deepspeed_zpg 1");
    let recipe = single.plan.as_ref().expect("a plan").recipe();
    assert_eq!(recipe.grads_dtype, NumberFormat::Fp32);
    assert_eq!(single.plan.as_ref().map(|plan| plan.layout().second_shards), Some(0));
    // Groups with fewer ranks than learners, and learners that differ between nodes.
    let nodes = |list: &str| open_instruct(&format!("--deepspeed_stage 3 --num_learners_per_node {list}"));
    assert_eq!(nodes("8 8").plan.map(|plan| plan.layout().second_groups()), Some(2));
    assert_eq!(stopped_by(&nodes("6 6")), ["num_learners_per_node"]);
    assert_eq!(stopped_by(&nodes("2 4")), ["num_learners_per_node"]);
    let wide = open_instruct("--deepspeed_stage 3 --deepspeed_zpg 16 --num_learners_per_node 8 8");
    assert_eq!(wide.plan.map(|plan| plan.layout().second_groups()), Some(1));
    for (options, name) in [
        ("", "deepspeed_stage"),
        ("--deepspeed_stage 1", "deepspeed_stage"),
        ("--deepspeed_stage 3 --deepspeed_offload_param", "deepspeed_offload_param"),
        ("--deepspeed_stage 2 --deepspeed_offload_optimizer True", "deepspeed_offload_optimizer"),
        ("--deepspeed_stage 2 --per_device_train_batch_size 2", "per_device_train_batch_size"),
        ("--deepspeed_stage 2 --record_entropy", "record_entropy"),
        ("--deepspeed_stage 2 --fused_optimizer False", "fused_optimizer"),
        ("--deepspeed_stage 2 --actor_num_gpus_per_node 6", "actor_num_gpus_per_node"),
    ] {
        assert_eq!(stopped_by(&open_instruct(options)), [name], "{options}");
    }
    // Its trainer on OLMo-core is a different one.
    let core = resolved("run.sh", &OPEN_INSTRUCT.replace("grpo_fast.py", "grpo.py --deepspeed_stage 2"));
    assert_eq!(stopped_by(&core), ["program"]);
}

/// Log-probabilities of rollouts without gradients in larger micro-batches than training's, whose logits may be the
/// peak (RLHFlow/Minimal-RL: 32 sequences instead of 4): a phase of its own if it is known what else is in memory.
#[test]
fn larger_micro_batches_of_log_probabilities_are_counted_or_stop() {
    let run = |more: &str, set: &[(&str, &str)]| {
        let text = format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B \
             data.max_prompt_length=1024 data.max_response_length=3072 actor_rollout_ref.actor.ppo_mini_batch_size=256 \
             actor_rollout_ref.rollout.name=vllm trainer.n_gpus_per_node=8 trainer.nnodes=1 {more}\n"
        );
        let source = Source::from_files([("run.sh", text.as_str())]);
        let overrides: Vec<(String, String)> =
            set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        read(&Request { source: &source, environment: &Environment::default(), overrides: &overrides })
    };
    let stop = Field::EvaluationBatchSize.name();
    let batch = |more: &str, set: &[(&str, &str)]| {
        let read = run(more, set);
        let plan =
            read.plan.unwrap_or_else(|| panic!("{more}: {:?} {:?}", read.not_modelled, read.diagnostics));
        plan.recipe().transformers.evaluation_batch
    };
    let own = "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4";
    let of = |sequences: u64| {
        format!("{own} actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu={sequences}")
    };
    assert_eq!(batch(&of(4), &[]), 0);
    assert_eq!(batch(&of(32), &[]), 32);
    // The total over all ranks: 32 sequences are 4 on each of 8.
    let together = "actor_rollout_ref.rollout.log_prob_micro_batch_size=32";
    assert_eq!(batch(&format!("{own} {together}"), &[]), 0);
    // The reference's number, if there is one.
    let reference = format!("{own} actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=8");
    assert_eq!(batch(&reference, &[]), 0);
    assert_eq!(batch(&format!("{reference} actor_rollout_ref.actor.use_kl_loss=True"), &[]), 8);
    assert_eq!(
        batch(&format!("{} actor_rollout_ref.actor.ulysses_sequence_parallel_size=2", of(32)), &[]),
        32
    );
    // Packs by tokens: a multiple of training's, or a number that is none (verl's examples/gspo_trainer).
    let tokens = |more: &str| {
        let read = run(&format!("actor_rollout_ref.actor.use_dynamic_bsz=True {more}"), &[]);
        let plan = read.plan.unwrap_or_else(|| panic!("{more}: {:?}", read.not_modelled));
        let scored = &plan.recipe().transformers;
        (scored.evaluation_batch, scored.log_prob_tokens)
    };
    let pack = "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=20480";
    let scores = "actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu";
    assert_eq!(tokens(&format!("{pack} {scores}=40960")), (2, 0));
    assert_eq!(tokens(&format!("{pack} {scores}=30720")), (0, 30_720));
    assert_eq!(tokens(&format!("{pack} {scores}=16384")), (0, 0));
    // Packs on one side only: 8 samples of 4096 tokens beside a pack, and a pack beside 4 samples.
    let samples = "actor_rollout_ref.rollout.log_prob_use_dynamic_bsz=False \
                   actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=8";
    assert_eq!(tokens(&format!("{pack} {samples}")), (0, 8 * 4096));
    let packs = "actor_rollout_ref.rollout.log_prob_use_dynamic_bsz=True";
    let read = run(&format!("{own} {packs} {scores}=30720"), &[]).plan.expect("a plan");
    assert_eq!(read.recipe().transformers.log_prob_tokens, 30_720);
    let fused = format!("{} actor_rollout_ref.model.use_fused_kernels=True", of(32));
    assert_eq!(batch(&fused, &[]), 32);
    let kernel = "actor_rollout_ref.model.fused_kernel_options.impl_backend";
    assert_eq!(batch(&format!("{fused} {kernel}=triton"), &[]), 32);
    let other = run(&format!("{fused} {kernel}=liger"), &[]);
    assert_eq!(stopped_by(&other), ["actor_rollout_ref.model.use_fused_kernels"]);
    // A setting made by the user has the same effect as one in the text: experts' layers are not known.
    let experts = "actor_rollout_ref.model.path=Qwen/Qwen3-30B-A3B";
    assert_eq!(stopped_by(&run(&format!("{} {experts}", of(32)), &[])), [stop]);
    assert!(run(&format!("{} {experts}", of(32)), &[("micro_batch_size", "32")]).plan.is_some());
    // With padded samples the policy also computes an entropy, and the reference does not.
    let padding = "actor_rollout_ref.model.use_remove_padding=False";
    assert_eq!(batch(&format!("{} {padding}", of(32)), &[]), 32);
    let references = format!("{reference} {padding} actor_rollout_ref.actor.use_kl_loss=True");
    let key = "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu";
    assert_eq!(stopped_by(&run(&references, &[])), [key]);
    assert_eq!(
        batch(&format!("{references} actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=8"), &[]),
        8
    );
    // Counted in tokens, if micro-batches are packed: each follows the actor's own limit.
    let packs = "actor_rollout_ref.actor.use_dynamic_bsz=True actor_rollout_ref.actor.ppo_max_token_len_per_gpu=16384";
    let tokens = "actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu";
    let idle = "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=160";
    assert_eq!(batch(&format!("{packs} {idle} {tokens}=16384"), &[]), 0);
    assert_eq!(batch(&format!("{packs} {tokens}=32768"), &[]), 2);
    let odd = run(&format!("{packs} {tokens}=24000"), &[]).plan.expect("a plan");
    assert_eq!(odd.recipe().transformers.log_prob_tokens, 24_000);
}
