//! Programs with training loops of their own around transformers' modules.

use super::{said, script, stopped, value};
use shardscope_bash::Environment;
use shardscope_launch::{Asked, Request, Resolution, read};
use shardscope_plan::{Field, NumberFormat};
use shardscope_source::Source;

/// SalesforceAIResearch/xLAM `actionstudio/examples/trainings/sft_bf16_single_pods.sh`, shortened.
const XLAM: &str = "torchrun --nproc_per_node 8 src/foundation_modeling/train/train_sft.py --model_name Qwen/Qwen2.5-7B-Instruct \
    --project_name a --run_name b --model_save_id c --fc_mode True --ds_config_path examples/deepspeed_configs/config_ds_03.json \
    --data_save_dir d --data_mix_recipe_yaml_config e.yaml --hf_credential_json_config f.json --learning_rate 5e-6 \
    --num_nodes 1 --num_gpus_per_node 8 --shuffle_buffer_size 500000 --output_dir g --gradient_accumulation_steps 3 \
    --per_device_train_batch_size 2";

#[test]
fn xlams_program_is_read_with_its_defaults() {
    let resolution = script(&format!("{XLAM} --ds_stage 3 --weight_precision bf16"));
    let plan = resolution.plan.as_ref().unwrap_or_else(|| panic!("{:?}", resolution.diagnostics));
    let recipe = plan.recipe();
    assert!(recipe.marks.not_read.is_empty(), "{:?}", recipe.marks);
    assert_eq!((plan.model().seq_length, recipe.micro_batch_size, recipe.num_micro_batches), (4096, 2, 3));
    assert_eq!((recipe.params_dtype, recipe.transformers.autocast), (NumberFormat::Bf16, None));
    let said = [
        Field::ZeroStage,
        Field::DataParallelEngine,
        Field::AttnImplementation,
        Field::GradientCheckpointing,
        Field::OptimizerForeach,
        Field::LogitsHeld,
    ];
    assert_eq!(
        said.map(|field| value(&resolution, field)),
        ["3", "deepspeed", "flash_attention_2", "true", "true", "true"]
    );
    assert_eq!(recipe.tuning.lora, None);
}

#[test]
fn xlams_adapters_are_of_its_own_rank_and_need_whole_weights() {
    let adapters = "--use_lora True --lora_target_modules q_proj,v_proj,k_proj,o_proj";
    let of_two = XLAM.replace("config_ds_03.json", "config_ds_02.json");
    for (precision, way, base) in [("bf16", "lora", ""), ("nf4", "qlora", "nf4")] {
        let read = script(&format!("{of_two} --ds_stage 2 --weight_precision {precision} {adapters}"));
        assert!(read.plan.is_some(), "{:?}", read.diagnostics);
        let fields = [Field::TrainType, Field::BaseQuantization, Field::LoraRank, Field::LoraTargetModules];
        assert_eq!(fields.map(|field| value(&read, field)), [way, base, "32", "q_proj v_proj k_proj o_proj"]);
    }
    stopped(&script(&format!("{XLAM} --ds_stage 3 --weight_precision bf16 {adapters}")), &["ds_stage"]);
    // The stage is the file's, whatever its name says.
    let asked = format!("{XLAM} {adapters}");
    assert!(script(&asked).not_modelled.is_empty());
    stopped(&said("run.sh", &asked, &[("zero_stage", "3")]), &["ds_config_path"]);
    let unnamed = format!("{} {adapters}", XLAM.replace("config_ds_03.json", "ours.json"));
    for (stage, known) in [("3", false), ("2", true)] {
        let file = format!(r#"{{"bf16": {{"enabled": true}}, "zero_optimization": {{"stage": {stage}}}}}"#);
        let source = Source::from_files([("run.sh", unnamed.as_str()), ("ours.json", file.as_str())]);
        let read = read(&Request { source: &source, environment: &Environment::default(), overrides: &[] });
        assert_eq!(read.plan.is_some(), known, "{stage}: {:?}", read.diagnostics);
        assert_eq!(read.not_modelled.is_empty(), known, "{stage}");
    }
    stopped(&script(&format!("{of_two} --ds_stage 2 --weight_precision fp8")), &["weight_precision"]);
}

/// accelerate keeps the number in DeepSpeed's file whatever `ds_stage` says, 2 where it is left out.
#[test]
fn xlams_stage_is_that_of_deepspeeds_file() {
    let asks = |read: &Resolution| {
        let mut stages = read.questions.iter().filter(|asked| asked.asks == Asked::Setting(Field::ZeroStage));
        stages.next().map(|asked| asked.proposal.clone().unwrap_or_default())
    };
    let of_two = XLAM.replace("config_ds_03.json", "config_ds_02.json");
    let unnamed = XLAM.replace("config_ds_03.json", "ours.json");
    let none = XLAM.replace("--ds_config_path examples/deepspeed_configs/config_ds_03.json", "");
    for (text, stage, asked) in [
        (format!("{XLAM} --ds_stage 3"), "3", None),
        (of_two.clone(), "2", None),
        (none.clone(), "2", None),
        (format!("{unnamed} --ds_stage 3"), "3", None),
        // What the file says is not known, or its name says another stage.
        (XLAM.to_owned(), "", Some("3")),
        (format!("{XLAM} --ds_stage 2"), "", Some("3")),
        (format!("{of_two} --ds_stage 3"), "", Some("2")),
        (format!("{none} --ds_stage 3"), "", Some("2")),
        (unnamed, "", Some("")),
    ] {
        let read = script(&text);
        assert_eq!(asks(&read).as_deref(), asked, "{text}");
        assert_eq!(read.plan.is_some(), asked.is_none(), "{text}: {:?}", read.diagnostics);
        if asked.is_none() {
            assert_eq!(value(&read, Field::ZeroStage), stage, "{text}");
        }
    }
    let file = r#"{"bf16": {"enabled": true}, "zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": 2}"#;
    for option in ["", "--ds_stage 2", "--ds_stage 3"] {
        let command = format!("{XLAM} {option}");
        let source = Source::from_files([("run.sh", command.as_str()), ("config_ds_03.json", file)]);
        let read = read(&Request { source: &source, environment: &Environment::default(), overrides: &[] });
        assert!(read.plan.is_some(), "{:?}", read.diagnostics);
        assert_eq!((value(&read, Field::ZeroStage), asks(&read)), ("3".to_owned(), None), "{option}");
    }
}

/// `model_config_files/xlam_bf16_lora_1.json` of the same folder, shortened.
#[test]
fn xlams_record_of_a_run_says_what_deepspeed_was_given() {
    let text = r#"{"training_configuration": {"per_device_train_batch_size": 8, "per_device_eval_batch_size": 1,
        "num_processes (num_nodes * num_gpus_per_node)": 8, "gradient_accumulation_steps": 1, "save_steps": 250,
        "logging_steps": 10}, "model_configuration": {"model_name": "Qwen/Qwen2.5-7B-Instruct", "seq_length": 4096,
        "use_lora": true, "fc_mode": true, "gradient_checkpointing": true},
        "optimizer_configuration": {"optimizer_type": "adamw", "learning_rate": 5e-05},
        "deepspeed_configuration": {"ds_stage": 2, "ds_config_path": "config_ds_02.json", "weight_precision": "bf16"},
        "logging_configuration": {"model_save_id": "xlam_bf16_lora_1"},
        "lora_configuration": {"lora_alpha": 64, "lora_dropout": 0.05, "lora_r": 32,
        "lora_target_modules": "q_proj,v_proj,k_proj,o_proj"},
        "deepspeed_actual_full_config": {"bf16": {"enabled": true}, "optimizer": {"type": "adamw", "params": {"lr": 5e-05,
        "torch_adam": true}}, "zero_optimization": {"stage": 2, "overlap_comm": true, "allgather_bucket_size": 500000000.0,
        "reduce_bucket_size": "auto"}, "gradient_accumulation_steps": "auto", "train_micro_batch_size_per_gpu": 8}}"#;
    let read = said("xlam_bf16_lora_1.json", text, &[]);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    let fields = [
        Field::WorldSize,
        Field::MicroBatchSize,
        Field::ZeroStage,
        Field::TrainType,
        Field::LoraRank,
        Field::OptimizerForeach,
    ];
    assert_eq!(fields.map(|field| value(&read, field)), ["8", "8", "2", "lora", "32", "true"]);
}

/// `DeepSpeed-Chat/training/step1_supervised_finetuning/main.py` keeps a reference to its output until it has the next, and evaluates with a
/// cache; step 2's reward models have `num_padding_at_beginning`, also where it is 0
/// (`step2_reward_model_finetuning/training_scripts/llama2/run_llama2_7b.sh`, which was read as step 1).
#[test]
fn deepspeed_chat_holds_its_output_and_evaluates_with_a_cache() {
    let chat = |more: &str| {
        script(&format!(
            "deepspeed --num_gpus 8 main.py --model_name_or_path meta-llama/Llama-2-7b-hf --per_device_train_batch_size 4 \
             --data_split 2,4,4 --max_seq_len 512 --gradient_accumulation_steps 1 --zero_stage 3 --deepspeed \
             --gradient_checkpointing {more}"
        ))
    };
    let of = |more: &str| {
        let read = chat(&format!("--output_dir step1 {more}"));
        let plan = read.plan.unwrap_or_else(|| panic!("{:?}", read.diagnostics));
        let own = &plan.recipe().transformers;
        (own.holds_output, own.evaluation_cache, own.evaluation_batch)
    };
    assert_eq!(of(""), (true, true, 16));
    assert_eq!(of("--per_device_eval_batch_size 4"), (true, true, 4));
    stopped(&chat("--num_padding_at_beginning 0"), &["num_padding_at_beginning"]);
}
