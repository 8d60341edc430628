//! ms-swift until 2.6, whose options have other names and defaults than today's
//! (`swift/llm/utils/argument.py:SftArguments` of 2.6.1).

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::Field;
use shardscope_source::Source;

fn resolved(text: &str) -> Resolution {
    let source = Source::from_files([("sft.sh", text)]);
    read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
}

fn value(resolution: &Resolution, field: Field) -> String {
    resolution.setting(field).map(|setting| setting.value.written()).unwrap_or_default()
}

/// Names of the settings that stop the verdict.
fn stopped_by(resolution: &Resolution) -> Vec<&str> {
    resolution.not_modelled.iter().map(|item| item.name.as_str()).collect()
}

fn swift(options: &str) -> Resolution {
    let world = "NPROC_PER_NODE=2 CUDA_VISIBLE_DEVICES=0,1";
    resolved(&format!("{world} swift sft --gradient_accumulation_steps 8 --dataset a {options}\n"))
}

/// After `examples/pytorch/llm/scripts/llama3_8b_instruct/lora_ddp_zero2/sft.sh`.
#[test]
fn old_names_are_todays() {
    let read = resolved(
        "nproc_per_node=2\n\
         NPROC_PER_NODE=$nproc_per_node MASTER_PORT=29500 CUDA_VISIBLE_DEVICES=0,1 swift sft \\\n\
             --model_id_or_path LLM-Research/Meta-Llama-3-8B-Instruct --model_revision master --sft_type lora \\\n\
             --tuner_backend peft --template_type AUTO --dtype AUTO --output_dir output --ddp_backend nccl \\\n\
             --dataset blossom-math-zh --train_dataset_sample -1 --num_train_epochs 5 --max_length 2048 \\\n\
             --check_dataset_strategy warning --lora_rank 8 --lora_alpha 32 --lora_dropout_p 0.05 \\\n\
             --lora_target_modules ALL --gradient_checkpointing true --batch_size 1 --weight_decay 0.1 \\\n\
             --gradient_accumulation_steps $(expr 16 / $nproc_per_node) --deepspeed default-zero2\n",
    );
    assert!(read.plan.is_some(), "{:?} {:?}", read.not_modelled, read.diagnostics);
    for (field, known) in [
        (Field::MicroBatchSize, "1"),
        (Field::SeqLength, "2048"),
        (Field::GlobalBatchSize, "16"),
        (Field::TrainType, "lora"),
        (Field::LoraTargetModules, "all-linear"),
        (Field::LoraDropout, "0.05"),
        (Field::ParamsDtype, "bf16"),
        (Field::ZeroStage, "2"),
        // Its file overlaps, which today's does not.
        (Field::ReduceBuckets, "2"),
        (Field::NumLayers, "32"),
        (Field::AttnImplementation, "sdpa"),
    ] {
        assert_eq!(value(&read, field), known, "{field:?}");
    }
}

/// A model by its type, and what is not stated: adapters on the type's own modules, 2,048 tokens, one sample at a time.
#[test]
fn old_defaults_are_its_own() {
    let read = swift("--model_type qwen2_5-7b-instruct");
    assert!(read.plan.is_some(), "{:?} {:?}", read.not_modelled, read.diagnostics);
    assert_eq!(value(&read, Field::HiddenSize), "3584");
    assert_eq!(value(&read, Field::LoraTargetModules), "q_proj k_proj v_proj");
    assert_eq!((value(&read, Field::LoraRank), value(&read, Field::LoraAlpha)), ("8".into(), "32".into()));
    assert_eq!(
        (value(&read, Field::SeqLength), value(&read, Field::MicroBatchSize)),
        ("2048".into(), "1".into())
    );
    // A path of one's own: the type says what lies there.
    let own = swift("--model_type qwen2_5-7b-instruct --model_id_or_path /data/ckpt --use_flash_attn true");
    assert_eq!(value(&own, Field::HiddenSize), "3584");
    assert_eq!(value(&own, Field::AttnImplementation), "flash_attention_2");
    let wide =
        swift("--model_type qwen2_5-7b-instruct --lora_target_modules DEFAULT o_proj --quantization_bit 4");
    assert_eq!(value(&wide, Field::LoraTargetModules), "q_proj k_proj v_proj o_proj");
    assert_eq!(value(&wide, Field::BaseQuantization), "nf4");
    assert_eq!(value(&wide, Field::DoubleQuantization), "true");
}

/// Weights that train in fp16 stay in fp32, under autocast (`select_dtype`).
#[test]
fn old_formats_of_weights() {
    let of = |options: &str| {
        let read = swift(&format!("--model_type llama3-8b-instruct {options}"));
        assert!(read.plan.is_some(), "{options}: {:?} {:?}", read.not_modelled, read.diagnostics);
        (value(&read, Field::ParamsDtype), value(&read, Field::Autocast))
    };
    assert_eq!(of("--sft_type full --dtype bf16"), ("bf16".into(), "bf16".into()));
    assert_eq!(of("--sft_type full --dtype fp16"), ("fp32".into(), "fp16".into()));
    assert_eq!(of("--dtype fp16"), ("fp16".into(), "fp16".into()));
    assert_eq!(of("--dtype fp32"), ("fp32".into(), "none".into()));
    // Its file for ZeRO-3 with offloading leaves the states on the device.
    let offloads = swift("--model_type llama3-8b-instruct --sft_type full --deepspeed zero3-offload");
    assert_eq!(value(&offloads, Field::OffloadParam), "true");
    assert_ne!(value(&offloads, Field::OffloadOptimizer), "true");
}

/// What is not modelled stops by its name.
#[test]
fn old_commands_that_stop() {
    assert_eq!(stopped_by(&swift("--model_type mixtral-moe-7b-instruct")), ["model"]);
    assert_eq!(stopped_by(&swift("--model_type qwen2_5-7b-instruct-awq")), ["model"]);
    // Modules that a pattern decides, of a vision-language model or of a type that is not known.
    assert!(stopped_by(&swift("--model_type llava1_5-7b-instruct")).contains(&"lora_target_modules"));
    assert!(stopped_by(&swift("--model_type my-own --model_id_or_path x")).contains(&"lora_target_modules"));
    // One process that sees two devices spreads the model over them.
    let spread = resolved(
        "CUDA_VISIBLE_DEVICES=0,1 python llm_sft.py --model_type llama3-8b-instruct --gradient_accumulation_steps 8\n",
    );
    assert_eq!(stopped_by(&spread), ["CUDA_VISIBLE_DEVICES"]);
    // Today's names are left as they are.
    let today = swift("--model Qwen/Qwen2.5-7B-Instruct --train_type lora --max_length 1024");
    assert_eq!(value(&today, Field::LoraTargetModules), "all-linear");
}
