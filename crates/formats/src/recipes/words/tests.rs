use super::read_words;
use crate::Argument;
use shardscope_plan::Field;

#[track_caller]
fn check(line: &str, expected: &[(Field, &str)]) {
    let reading = read_words(&Argument::split(line), None).expect("a recipe");
    for (field, value) in expected {
        assert_eq!(reading.value(*field), Some(*value), "{}", field.name());
    }
}

#[test]
fn a_recipe_by_name_with_what_the_words_change() {
    check(
        "run_recipe.py --recipe llama3_70b_pretrain_config train.micro_batch_size=2 model.seq_length=16384",
        &[
            (Field::TensorModelParallelSize, "4"),
            (Field::PipelineModelParallelSize, "4"),
            (Field::ContextParallelSize, "2"),
            (Field::SequenceParallel, "true"),
            (Field::Bf16, "true"),
            (Field::UseDistributedOptimizer, "true"),
            (Field::NumLayers, "80"),
            (Field::MicroBatchSize, "2"),
            (Field::SeqLength, "16384"),
        ],
    );
    check(
        "setup_experiment.py --gpu b200 --model_family_name qwen --model_recipe_name qwen3_235b_a22b --gpus_per_node 8 \
         --num_gpus 256 --compute_dtype bf16 --global_batch_size 4096 --expert_model_parallel_size 8",
        &[
            (Field::NumExperts, "128"),
            (Field::GlobalBatchSize, "4096"),
            (Field::ExpertModelParallelSize, "8"),
            (Field::WorldSize, "256"),
            (Field::Accelerator, "B200"),
        ],
    );
}

#[test]
fn graphs_capture_what_the_words_say() {
    let recipe = "setup_experiment.py --gpu b200 --model_family_name qwen --model_recipe_name qwen3_235b_a22b --gpus_per_node 8 \
         --num_gpus 256 --compute_dtype bf16";
    let graphs = |how: &'static str, modules: &'static str| {
        [(Field::CudaGraphImpl, how), (Field::CudaGraphModules, modules)]
    };
    check(
        &format!(
            "{recipe} --cuda_graph_impl transformer_engine --cuda_graph_scope moe_router,moe_preprocess"
        ),
        &graphs("transformer_engine", "moe_router,moe_preprocess"),
    );
    check(
        &format!("{recipe} --cuda_graph_impl local --cuda_graph_scope full_iteration"),
        &graphs("full_iteration", "full_iteration"),
    );
    check(
        "run_recipe.py --recipe llama3_70b_pretrain_config model.cuda_graph_impl=local model.cuda_graph_modules=[attn]",
        &graphs("local", "[attn]"),
    );
}

/// AI-Hypercomputer/gpu-recipes, `training/a4x-max/{deepseek-v3,kimi-k2}/megatron-bridge-gke/nemo2604`.
#[test]
fn stages_are_written_out_as_the_performance_scripts_do() {
    let line = |model: &str, gpu: &str, more: &str| {
        format!(
            "run_script.py --model_recipe_name {model} --gpu {gpu} --num_gpus 256 --gpus_per_node 4 --compute_dtype fp8_mx {more}"
        )
    };
    let stages = |line: &str, expected: &str| {
        check(line, &[(Field::PipelineModelParallelLayout, expected)]);
    };
    let given = "--pipeline_model_parallel_size 2 --virtual_pipeline_model_parallel_size 8 \
                 --pipeline_model_parallel_layout 'Et*4|(t*4|)*14tmL'";
    stages(&line("deepseek_v3", "gb300", given), "Et*4|(t*4|)*14tmL");
    // Recomputed for these stages; as in the recipe; and a case without a layout, which keeps the recipe's own.
    let whole = "--pipeline_model_parallel_size 8 --virtual_pipeline_model_parallel_size None";
    stages(&line("deepseek_v3", "b200", whole), "Et*8|(t*8|)*6t*5mL");
    stages(&line("deepseek_v3", "b200", ""), "Et*4|(t*4|)*14t*1mL");
    stages(&line("deepseek_v3", "gb300", "--pipeline_model_parallel_size 3"), "Et*4|(t*4|)*14tmL");
    let chunks = "--pipeline_model_parallel_size 4 --virtual_pipeline_model_parallel_size 4";
    stages(&line("kimi_k2", "gb300", chunks), "Et*4|(t*4|)*14t*1L");
    stages("run_recipe.py --recipe moonlight_16b_sft_8gpu_h100_bf16_config", "Et*14|t*13L");
}

/// AI-Hypercomputer/gpu-recipes, `training/a4x/llama31_405b/…/128gpus-fp8cs-seq8192-gbs64` (one stage, FSDP and layers
/// offloaded to the host), `a4x/llama3_70b/…/128gpu-fp8mx-lustre` (`--num_gpus ${WORLD_SIZE}`),
/// `a4/qwen3_235b_a22b/…/128gpus-bf16-seq4096-gbs4096`.
#[test]
fn options_of_the_performance_scripts_change_what_they_say() {
    let line = "run_script.py --model_family_name llama --model_recipe_name llama31_405b --config_variant v1 --gpu gb200 \
                --num_gpus 256 --compute_dtype fp8_cs --pipeline_model_parallel_size 1 --use_megatron_fsdp true --max_step 30";
    check(line, &[(Field::PipelineModelParallelSize, "1"), (Field::UseMegatronFsdp, "true")]);
    let read = |more: &str| read_words(&Argument::split(&format!("{line} {more}")), None).expect("a recipe");
    assert_eq!(read("").value(Field::VirtualPipelineModelParallelSize).unwrap_or_default(), "");
    assert!(read("").not_modelled.is_empty(), "{:?}", read("").not_modelled);
    let full = read("--recompute_num_layers 4");
    let shown = [Field::RecomputeGranularity, Field::RecomputeMethod, Field::RecomputeNumLayers];
    assert_eq!(shown.map(|field| full.value(field).unwrap_or_default()), ["full", "block", "4"]);
    let stops = |more: &str| read(more).not_modelled.iter().map(|item| item.name.clone()).collect::<Vec<_>>();
    assert_eq!(stops("--use_tokendrop true --nccl_ub false"), ["--use_tokendrop"]);
    assert_eq!(stops("--lora_of_mine 8"), ["lora_of_mine"]);
    assert_eq!(read("--activation_offload_layers 95").value(Field::CpuOffloadingNumLayers), Some("95"));
    let h100 = "run_script.py --model_recipe_name deepseek_v3 --gpu h100 --num_gpus 64 --compute_dtype bf16";
    let alone = read_words(&Argument::split(h100), None).expect("a recipe");
    assert!(alone.not_modelled.iter().any(|item| item.name == "ddp.overlap_param_gather"));
    let open = "run_script.py --gpu gb200 --model_family_name llama --model_recipe_name llama3_70b --num_gpus $WORLD_SIZE \
                --compute_dtype fp8_mx --tensor_model_parallel_size 2";
    let mut words = Argument::split(open);
    let hole = words.iter_mut().find(|word| word.text == "$WORLD_SIZE").expect("a variable");
    hole.hole = Some("WORLD_SIZE".to_owned());
    let asked = read_words(&words, None).expect("asked").questions.remove(0);
    assert_eq!(asked.proposal.as_deref(), Some("llama3_70b_pretrain_64gpu_gb200_fp8mx_config"));
    let answered = read_words(&words, asked.proposal.as_deref()).expect("a recipe");
    assert_eq!((answered.value(Field::WorldSize), answered.value(Field::NumLayers)), (None, Some("80")));
    let near =
        "run_script.py --gpu b200 --model_recipe_name qwen3_235b_a22b --num_gpus 128 --compute_dtype bf16";
    let asked = read_words(&Argument::split(near), None).expect("asked").questions.remove(0);
    assert_eq!(asked.proposal.as_deref(), Some("qwen3_235b_a22b_pretrain_64gpu_b200_bf16_config"));
}

#[test]
fn the_recipe_of_the_weights_that_settings_start_from_is_proposed() {
    let text = "checkpoint:\n  pretrained_checkpoint: /w/NVIDIA-Nemotron-3-Super-120B-A12B-Base-BF16\n\
                model:\n  fine_grained_activation_offloading: true\n# sft beside llama3_8b\n";
    let tree = shardscope_config_tree::read_yaml(text, 0);
    let root = tree.documents.first().expect("a tree");
    let asked = super::read_changes(root, None, text);
    let proposal = asked.questions[0].proposal.clone().unwrap_or_default();
    assert!(proposal.starts_with("nemotron_3_super_sft"), "{proposal}");
    // The model's name is a constant of the recipe's program.
    let read = super::read_changes(root, Some(&proposal), text);
    assert_eq!(read.value(Field::NumLayers), Some("88"));
    assert_eq!(read.not_modelled.len(), 0, "{:?}", read.not_modelled);
    assert_eq!(read.value(Field::FineGrainedActivationOffloading), Some("true"));
}

#[test]
fn a_name_that_is_like_others_is_asked_for() {
    let reading =
        read_words(&Argument::split("run_recipe.py --recipe llama3_70b_my_config"), None).expect("asked");
    assert_eq!(reading.questions[0].name(), "recipe");
    assert!(reading.questions[0].choices.iter().all(|name| name.starts_with("llama3_70b")));
    assert!(read_words(&Argument::split("run_recipe.py --recipe rocket_7b"), None).is_none());
}

/// The names of recipes that are not in the table, and `--mode`, say what trains.
#[test]
fn a_recipe_of_adapters_is_none_that_trains_all_weights() {
    let words = Argument::split("run_recipe.py --recipe qwen3_vl_30b_a3b_peft_mine_config --mode lora");
    let stops = |asked: &str| {
        let read = read_words(&words, Some(asked)).expect("a recipe");
        read.not_modelled.iter().any(|item| item.name == "--recipe")
    };
    assert!(stops("qwen3_vl_30b_a3b_sft_config"));
    assert!(!stops("qwen3_30b_a3b_peft_config"));
    let full = Argument::split("run_recipe.py --recipe llama3_70b_sft_mine_config");
    let read = read_words(&full, Some("llama3_70b_peft_config")).expect("a recipe");
    assert!(read.not_modelled.iter().any(|item| item.name == "--recipe"));
    check(
        "run_recipe.py --recipe llama3_8b_peft_config --mode dora",
        &[(Field::TrainType, "lora"), (Field::UseDora, "true")],
    );
}

/// `scripts/performance` call the modules of graphs by the old name, in recipes that have the new one, and the other way round.
#[test]
fn words_replace_what_a_recipe_says_under_the_other_name() {
    let line = "run_script.py --model_recipe_name llama3_8b --gpu b200 --num_gpus 8 --compute_dtype bf16 --cuda_graph_impl \
                transformer_engine --cuda_graph_scope attn";
    let read = read_words(&Argument::split(line), None).expect("a recipe");
    assert_eq!(read.value(Field::CudaGraphModules), Some("attn"));
    assert!(read.found.iter().all(|found| found.field != Field::NotRead), "{:?}", read.found);
}

/// `recipes/kimi/h100/kimi_k2.py`: Muon, by a pair that a function of another file returns.
#[test]
fn a_recipe_has_the_optimizer_of_the_pair_that_it_unpacks() {
    for recipe in ["kimi_k2_pretrain_config", "kimi_k2_pretrain_256gpu_gb200_bf16_config"] {
        check(&format!("run_recipe.py --recipe {recipe}"), &[(Field::Optimizer, "dist_muon")]);
    }
    check("run_recipe.py --recipe deepseek_v4_flash_pretrain_muon_config", &[(Field::Optimizer, "muon")]);
}

#[test]
fn the_distributed_optimizer_is_on_where_either_switch_is() {
    let line = "run_recipe.py --recipe qwen3_8b_sft_config ddp.use_distributed_optimizer=false";
    check(line, &[(Field::UseDistributedOptimizer, "true")]);
    let off = format!("{line} optimizer.use_distributed_optimizer=false");
    check(&off, &[(Field::UseDistributedOptimizer, "false")]);
}
