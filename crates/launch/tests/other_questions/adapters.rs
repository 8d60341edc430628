//! Adapters: which modules have them, with which kernels, and over which weights.

use super::{said, script, stopped, value};
use shardscope_plan::{
    Field, LinearModule, LoraModules, Objective, PreferenceLogits, Quantization, Reference,
};

#[test]
fn axolotl_turns_its_kernels_for_adapters_on_by_itself() {
    let read = |more: &str| {
        let text = "base_model: meta-llama/Llama-3.1-8B\nsequence_len: 2048\nmicro_batch_size: 2\nadapter: lora\n\
                    lora_r: 16\nlora_target_linear: true\nbf16: true\ngradient_accumulation_steps: 4\n";
        said("a.yaml", &format!("{text}{more}"), &[("world_size", "8")])
    };
    let kernels = |more: &str| value(&read(more), Field::LoraKernels);
    // `axolotl/utils/schemas/config.py:check_auto_enable_lora_kernels`.
    for on in ["", "lora_dropout: 0.05\n", "fsdp_version: 2\nfsdp_config:\n  reshard_after_forward: true\n"] {
        assert_eq!(kernels(on), "qkv o mlp", "{on}");
    }
    for off in [
        "lora_mlp_kernel: false\n",
        "load_in_8bit: true\n",
        "trust_remote_code: true\n",
        "fsdp_config:\n  fsdp_reshard_after_forward: FULL_SHARD\n",
    ] {
        assert_eq!(kernels(off), "", "{off}");
    }
    assert_eq!(kernels("lora_mlp_kernel: true\nlora_o_kernel: true\nlora_qkv_kernel: false\n"), "o mlp");
    assert!(read("").plan.is_some(), "{:?}", read("").diagnostics);
    stopped(&read("peft_use_dora: true\n"), &["lora_kernels"]);
}

#[test]
fn a_rank_without_a_known_switch_is_asked_about() {
    let run = |program: &str, more: &str| {
        script(&format!(
            "torchrun --nproc_per_node 4 {program} --model_name_or_path meta-llama/Llama-2-7b-hf --lora_r 8 --lora_alpha 16 --bf16 True \
             --per_device_train_batch_size 2 --gradient_accumulation_steps 16 --model_max_length 2048 {more}"
        ))
    };
    let trains = |program: &str, more: &str| value(&run(program, more), Field::TrainType);
    // FastChat's program always trains adapters, and its name says so; a quantized base is asked for separately.
    assert_eq!(trains("fastchat/train/train_lora.py", "--q_lora False"), "lora");
    assert_eq!(trains("train.py", "--lora True"), "lora");
    assert_eq!(trains("train.py", "--use_lora False"), "full");
    let open = run("train.py", "");
    assert!(open.plan.is_none(), "priced as full training before");
    let asked = open.questions.iter().find(|question| question.name() == "train_type");
    assert_eq!(asked.expect("a question").proposal.as_deref(), Some("lora"));
}

/// Lists of all linear layers by name exclude experts, which have none in transformers 5; TRL passes PEFT its own
/// keyword.
#[test]
fn all_linear_layers_by_name_are_none_of_experts() {
    let adapted = |name: &str, text: &str| {
        let resolution = said(name, text, &[("zero_stage", "0"), ("world_size", "8")]);
        let plan = resolution.plan.as_ref().unwrap_or_else(|| panic!("{text}: {:?}", resolution.diagnostics));
        let lora = plan.recipe().tuning.lora.expect("adapters");
        (lora.modules.has(LinearModule::Query), lora.modules.has(LinearModule::Experts))
    };
    let factory = "model_name_or_path: Qwen/Qwen3-30B-A3B\nstage: sft\nfinetuning_type: lora\nlora_target: all\ncutoff_len: 2048\n\
        per_device_train_batch_size: 1\nlearning_rate: 1.0e-4\nbf16: true\ndo_train: true\n";
    assert_eq!(adapted("lora.yaml", factory), (true, false));
    let axolotl = "base_model: Qwen/Qwen3-30B-A3B\nadapter: lora\nlora_r: 16\nlora_target_linear: true\nsequence_len: 2048\n\
        micro_batch_size: 1\nlora_qkv_kernel: false\nbf16: true\n";
    assert_eq!(adapted("lora.yaml", axolotl), (true, false));
    let trl = "model_name_or_path: Qwen/Qwen3-30B-A3B\nuse_peft: true\nlora_r: 16\nlora_target_modules: all-linear\nmax_length: 2048\n\
        per_device_train_batch_size: 1\nlearning_rate: 1.0e-4\nbf16: true\ndtype: bfloat16\n";
    assert_eq!(adapted("sft.yaml", trl), (true, true));
}

#[test]
fn adapters_of_llm_foundry_are_no_full_training() {
    let text = "max_seq_len: 2048\nmodel:\n  name: hf_causal_lm\n  pretrained_model_name_or_path: meta-llama/Llama-2-7b-hf\n  \
        peft_config: {r: 16, peft_type: LORA}\ntrain_loader: {name: finetuning}\nglobal_train_batch_size: 64\n\
        device_train_microbatch_size: 2\nprecision: amp_bf16\nfsdp_config: {sharding_strategy: FULL_SHARD}\n";
    stopped(&said("lora.yaml", text, &[("world_size", "8")]), &["model.peft_config"]);
}

/// The arguments of Firefly's `train.py` have no switch for adapters: it trains QLoRA unless `train_mode` says
/// otherwise.
#[test]
fn fireflys_adapters_are_no_full_training() {
    let file = |more: &str| {
        format!(
            "{{\"model_name_or_path\": \"meta-llama/Llama-2-7b-hf\", \"train_file\": \"a.jsonl\", \"template_name\": \"llama2\", \
             \"per_device_train_batch_size\": 1, \"gradient_accumulation_steps\": 16, \"learning_rate\": 1e-4, \
             \"max_seq_length\": 1024, \"gradient_checkpointing\": true, \"bf16\": true{more}}}"
        )
    };
    let read = |more: &str| said("args.json", &file(more), &[("world_size", "1")]);
    let usual = read("");
    assert!(usual.plan.is_some(), "{:?}", usual.diagnostics);
    assert_eq!(value(&usual, Field::TrainType), "qlora");
    assert_eq!(
        (value(&usual, Field::BaseQuantization), value(&usual, Field::LoraRank)),
        ("nf4".into(), "64".into())
    );
    assert_eq!(value(&read(", \"train_mode\": \"full\""), Field::TrainType), "full");
    let lora = read(", \"train_mode\": \"lora\", \"lora_rank\": 16");
    assert_eq!((value(&lora, Field::TrainType), value(&lora, Field::LoraRank)), ("lora".into(), "16".into()));
    stopped(&read(", \"task_type\": \"dpo\""), &["task_type"]);
}

/// Firefly's DPO is that of TRL 0.7.11 (yangjianxin1/Firefly@22b406: train_args/dpo/lora/minicpm3-4b-dpo-lora.json and
/// others): a reference if weights train, none if adapters do, whose dropout is off; in bf16 its casts over 4 bits
/// differ from all others.
#[test]
fn fireflys_preferences_are_pairs_beside_a_reference() {
    let read = |format: &str, more: &str| {
        let text = format!(
            "{{\"model_name_or_path\": \"meta-llama/Llama-2-7b-hf\", \"train_file\": \"a.jsonl\", \"template_name\": \"llama2\", \
             \"task_type\": \"dpo\", \"beta\": 0.1, \"max_prompt_length\": 300, \"per_device_train_batch_size\": 1, \
             \"gradient_accumulation_steps\": 16, \"learning_rate\": 1e-4, \"max_seq_length\": 1024, \
             \"gradient_checkpointing\": true, \"lora_dropout\": 0.05, \"{format}\": true{more}}}"
        );
        said("args.json", &text, &[("world_size", "1")])
    };
    for (more, reference) in [
        ("", Reference::Adapters),
        (", \"train_mode\": \"lora\"", Reference::Adapters),
        (", \"train_mode\": \"full\"", Reference::Loaded),
    ] {
        let read = read("fp16", more);
        let plan = read.plan.as_ref().unwrap_or_else(|| panic!("{more}: {:?}", read.diagnostics));
        let recipe = plan.recipe();
        assert_eq!(recipe.tuning.objective, Objective::Dpo { reference }, "{more}");
        assert_eq!(recipe.transformers.preference_logits, PreferenceLogits::Fp32, "{more}");
        assert!(recipe.tuning.lora.is_none_or(|lora| !lora.dropout), "{more}");
    }
    stopped(&read("bf16", ""), &["task_type"]);
    assert!(read("bf16", ", \"train_mode\": \"lora\"").plan.is_some());
}

/// TRL, ms-swift, axolotl and LLaMA-Factory turn off adapters' dropout for preference learning, and only there.
#[test]
fn trainers_of_preferences_turn_dropout_off() {
    let dropout = |text: &str| {
        let read = said("train.yaml", text, &[("zero_stage", "0"), ("world_size", "8")]);
        let plan = read.plan.unwrap_or_else(|| panic!("{text}: {:?}", read.diagnostics));
        plan.recipe().tuning.lora.expect("adapters").dropout
    };
    let factory = |stage: &str| {
        format!(
            "model_name_or_path: Qwen/Qwen2.5-7B\nstage: {stage}\ndo_train: true\nfinetuning_type: lora\nlora_rank: 8\nlora_target: all\n\
             lora_dropout: 0.1\ntemplate: qwen\ncutoff_len: 2048\nper_device_train_batch_size: 1\nlearning_rate: 5e-6\nbf16: true\n"
        )
    };
    assert!(dropout(&factory("sft")));
    assert!(!dropout(&factory("dpo")) && !dropout(&factory("kto")));
    let trl = "model_name_or_path: Qwen/Qwen2.5-7B\nuse_peft: true\nlora_r: 16\nlora_dropout: 0.1\nbeta: 0.1\nmax_length: 2048\nbf16: true\n\
               per_device_train_batch_size: 2\nlearning_rate: 5e-6\noutput_dir: data/zephyr-7b-dpo\ndtype: bfloat16\n";
    assert!(!dropout(trl));
    assert!(dropout(&format!("{trl}disable_dropout: false\n")));
    let axolotl = "base_model: Qwen/Qwen2.5-7B\nrl: dpo\nadapter: lora\nlora_r: 8\nlora_dropout: 0.1\nlora_target_linear: true\n\
                   sequence_len: 2048\nmicro_batch_size: 1\ngradient_accumulation_steps: 4\nbf16: true\n";
    assert!(!dropout(axolotl));
    assert!(dropout(&axolotl.replace("rl: dpo\n", "lora_qkv_kernel: false\n")));
    // Recognised only by the program's name.
    let by_name = |program: &str| {
        let read = script(&format!(
            "torchrun --nproc_per_node 8 {program} --model_name_or_path Qwen/Qwen2.5-7B --use_peft --lora_r 16 --lora_dropout 0.1 \
             --lora_target_modules q_proj v_proj --max_length 2048 --per_device_train_batch_size 1 --learning_rate 5e-6 --bf16 True"
        ));
        let plan = read.plan.unwrap_or_else(|| panic!("{program}: {:?}", read.diagnostics));
        plan.recipe().tuning.lora.expect("adapters").dropout
    };
    assert!(by_name("sft.py") && !by_name("scripts/dpo.py"));
}

/// PEFT writes LoftQ's weights back in their own type (`peft/utils/loftq_utils.py:loftq_init`):
/// examples/llama-2/loftq.yml of axolotl.
#[test]
fn loftq_starts_adapters_and_changes_no_more() {
    let text = "base_model: NousResearch/Llama-2-7b-hf\nsequence_len: 4096\nmicro_batch_size: 2\ngradient_accumulation_steps: 4\nadapter: lora\n\
        lora_r: 32\nlora_target_linear: true\nlearning_rate: 2e-4\nbf16: auto\npeft:\n  loftq_config:\n    loftq_bits: 4\n";
    let read = said("loftq.yml", text, &[("world_size", "8")]);
    assert!(read.plan.is_some() && value(&read, Field::NotRead).is_empty(), "{:?}", read.not_modelled);
    assert_eq!(value(&read, Field::TrainType), "lora");
}

/// Programs of Chinese-LLaMA-Alpaca (ymcui/Chinese-LLaMA-Alpaca-2: scripts/training/run_sft.sh), where `trainable`
/// lists the layers with adapters.
#[test]
fn chinese_llamas_trainable_layers_have_adapters() {
    let read = |more: &str| {
        script(&format!(
            "torchrun --nnodes 1 --nproc_per_node 2 run_clm_sft_with_peft.py --model_name_or_path meta-llama/Llama-2-7b-hf \
             --dataset_dir data --per_device_train_batch_size 1 --gradient_accumulation_steps 8 --max_seq_length 512 --fp16 \
             --learning_rate 1e-4 --lora_rank 64 --trainable q_proj,v_proj,down_proj --gradient_checkpointing \
             --torch_dtype float16 {more}"
        ))
    };
    let usual = read("--modules_to_save embed_tokens,lm_head --load_in_kbits 16");
    let tuning = &usual.plan.as_ref().unwrap_or_else(|| panic!("{:?}", usual.diagnostics)).recipe().tuning;
    let lora = tuning.lora.expect("adapters");
    assert_eq!(
        (lora.rank, lora.dropout, tuning.embedding, tuning.head, tuning.copies),
        (64, true, true, true, true)
    );
    let named = [LinearModule::Query, LinearModule::Value, LinearModule::Down].into_iter();
    assert_eq!(lora.modules, named.fold(LoraModules::default(), LoraModules::with));
    let four = read("--load_in_kbits 4");
    let tuning = &four.plan.as_ref().unwrap_or_else(|| panic!("{:?}", four.diagnostics)).recipe().tuning;
    assert_eq!(tuning.quantization, Quantization::FourBit { double: true });
    assert!(!tuning.embedding && tuning.input_gradients);
    assert_eq!(value(&read("--full_finetuning"), Field::TrainType), "full");
    stopped(&read("--peft_path lora"), &["peft_path"]);
}

/// LLaMA-Factory's examples/extras/adam_mini/qwen2_full_sft.yaml.
#[test]
fn adam_mini_is_an_optimizer_of_its_own() {
    let text = "model_name_or_path: Qwen/Qwen2-1.5B-Instruct\nstage: sft\ndo_train: true\nfinetuning_type: full\nuse_adam_mini: true\n\
        template: qwen\ncutoff_len: 2048\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 8\nlearning_rate: 1.0e-5\nbf16: true\n";
    let read = said("train.yaml", text, &[("world_size", "1")]);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    assert_eq!(value(&read, Field::Optimizer), "adam_mini");
    stopped(
        &said("train.yaml", &format!("{text}fsdp: full_shard\n"), &[("world_size", "8")]),
        &["use_adam_mini"],
    );
}

/// QwenLM/Qwen2.5-Coder's finetuning/sft/scripts/sft_qwencoder_with_lora.sh and BELLE's train/scripts/run_pt.sh,
/// shortened.
#[test]
fn adapters_in_a_file_of_their_own_are_asked_for_by_its_name() {
    for option in
        ["--use_peft True --peft_config_path ./configs/lora", "--use_lora --lora_config ./configs/lora"]
    {
        let read = script(&format!(
            "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-Coder-7B --model_max_length 1280 \
             --per_device_train_batch_size 4 --gradient_accumulation_steps 2 --learning_rate 5e-5 --bf16 True {option}"
        ));
        let asked: Vec<&str> = read.questions.iter().map(|question| question.name()).collect();
        for name in ["lora_rank", "lora_target_modules"] {
            assert!(asked.contains(&name), "{option}: {asked:?}");
            assert!(
                read.diagnostics
                    .iter()
                    .any(|said| said.message.contains(name) && said.message.contains("./configs/lora"))
            );
        }
        assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
    }
}

/// axolotl's examples/llama-2/relora.yml: adapters that are merged periodically are adapters in between.
#[test]
fn adapters_that_begin_anew_are_adapters() {
    let text = "base_model: NousResearch/Llama-2-7b-hf\nload_in_4bit: true\nadapter: qlora\nsequence_len: 4096\nmicro_batch_size: 4\n\
        gradient_accumulation_steps: 4\nlora_r: 8\nlora_target_linear: true\nbf16: auto\noptimizer: adamw_bnb_8bit\n";
    let relora =
        "relora: true\nrelora_prune_ratio: 0.9\nrelora_cpu_offload: false\njagged_restart_steps: 150\n";
    let of = |text: &str| {
        let read = said("relora.yml", text, &[("world_size", "8")]);
        assert_eq!(value(&read, Field::NotRead), "", "{text}");
        read.plan.unwrap_or_else(|| panic!("{:?}", read.diagnostics))
    };
    assert_eq!(of(text), of(&format!("{text}{relora}")));
}

/// `use_unsloth` passes LLaMA-Factory's and Firefly's models to unsloth: its loader, kernels and checkpointing, with
/// the trainer's own batch, optimizer and launch.
#[test]
fn trainers_that_run_unsloths_model_are_read_as_unsloth() {
    let factory = |more: &str| {
        let text = format!(
            "model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct\nfinetuning_type: lora\nlora_target: all\nlora_rank: 8\n\
             use_unsloth: true\ndo_train: true\ncutoff_len: 2048\nper_device_train_batch_size: 1\nflash_attn: sdpa\n\
             gradient_accumulation_steps: 8\nbf16: true\n{more}"
        );
        said("lf.yaml", &text, &[("zero_stage", "0"), ("world_size", "1")])
    };
    let read = factory("stage: sft\nquantization_bit: 4\n");
    assert!(read.plan.is_some() && read.not_modelled.is_empty(), "{:?}", read.diagnostics);
    let shown = [
        Field::Software,
        Field::TrainType,
        Field::BaseQuantization,
        Field::GradientCheckpointing,
        Field::OffloadLayerInputs,
        Field::AttnImplementation,
        Field::LoraRank,
        Field::Optimizer,
    ];
    let expected = ["unsloth", "qlora", "nf4", "true", "true", "flash_attention_2", "8", "adam"];
    assert_eq!(shown.map(|field| value(&read, field)), expected);
    assert_eq!(value(&factory("stage: sft\n"), Field::TrainType), "lora");
    stopped(&factory("stage: dpo\n"), &["unsloth"]);
    stopped(&factory("stage: sft\nquantization_bit: 8\n"), &["quantization_bit"]);
    stopped(&factory("stage: sft\nenable_liger_kernel: true\n"), &["enable_liger_kernel"]);
    stopped(&factory("stage: sft\ndeepspeed: ds_z2_config.json\n"), &["deepspeed"]);
    stopped(&factory("stage: sft\nadditional_target: embed_tokens,lm_head\n"), &["additional_target"]);

    let firefly = r#"{"output_dir": "o", "model_name_or_path": "mistralai/Mistral-7B-Instruct-v0.1", "train_file": "d.jsonl",
        "template_name": "mistral", "per_device_train_batch_size": 1, "gradient_accumulation_steps": 16, "learning_rate": 2e-4,
        "max_seq_length": 1024, "lora_rank": 64, "lora_alpha": 16, "lora_dropout": 0.05, "use_unsloth": true,
        "gradient_checkpointing": true, "optim": "paged_adamw_32bit", "fp16": true}"#;
    let read = said("a.json", firefly, &[("zero_stage", "0"), ("world_size", "2")]);
    let shown = shown.map(|field| value(&read, field));
    assert_eq!(shown[..4], ["unsloth", "qlora", "nf4", "true"]);
    // unsloth is asked for checkpointing that stays on the device.
    assert_ne!(shown[4], "true");
    assert!(read.plan.is_some() && read.not_modelled.is_empty(), "{:?}", read.diagnostics);
}

/// A program that loads Qwen 3.5 by `AutoModelForCausalLM` gets the decoder without its tower; a trainer that is given
/// the name gets both, and so does a program that asks for them.
#[test]
fn a_causal_model_of_qwen_3_5_has_no_tower() {
    let program = |class: &str, name: &str| {
        let text = format!(
            "from trl import SFTTrainer, SFTConfig\nfrom peft import LoraConfig\n\
             model = {class}.from_pretrained(\"{name}\", dtype=torch.bfloat16)\n\
             peft_config = LoraConfig(r=8, lora_alpha=8, target_modules=[\"q_proj\", \"v_proj\"])\n\
             args = SFTConfig(per_device_train_batch_size=2, max_length=2048, bf16=True, gradient_checkpointing=True)\n\
             trainer = SFTTrainer(model=model, args=args, train_dataset=d, peft_config=peft_config)\n"
        );
        said("tune.py", &text, &[("world_size", "1")])
    };
    let tower = |class: &str, name: &str| value(&program(class, name), Field::VisionTower).to_owned();
    let read = program("AutoModelForCausalLM", "Qwen/Qwen3.5-4B");
    let plan = read.plan.unwrap_or_else(|| panic!("{:?}", read.diagnostics));
    assert!(plan.model().vision.is_none() && plan.model().num_layers == 32);
    assert_eq!(tower("AutoModelForCausalLM", "Qwen/Qwen3.5-4B"), "false");
    assert_eq!(tower("AutoModelForImageTextToText", "Qwen/Qwen3.5-4B"), "true");
    let medical = "torchrun --nproc_per_node 2 training/pretraining.py --model_name_or_path Qwen/Qwen3.5-2B --use_peft True \
        --train_file_dir ./data --per_device_train_batch_size 4 --block_size 512 --target_modules all --lora_rank 8 --bf16 \
        --torch_dtype bfloat16 --gradient_checkpointing True --gradient_accumulation_steps 8 --do_train";
    let read = script(medical);
    assert!(read.plan.expect("a plan").model().vision.is_none());
    // There is no other class for this model.
    assert_eq!(tower("AutoModelForCausalLM", "google/gemma-3-4b-it"), "true");
}

/// `qlora.py` of artidoro/qlora without any option for adapters (its own `scripts/finetune.sh`, and those of forks) was
/// read as full training.
#[test]
fn qloras_program_trains_adapters_unless_it_is_asked_to_train_all() {
    let run = |more: &str| {
        script(&format!(
            "python3 qlora.py --model_name_or_path huggyllama/llama-30b --do_eval False --do_mmlu_eval False --source_max_len 3072 \
             --target_max_len 384 --per_device_train_batch_size 4 --gradient_accumulation_steps 4 --optim paged_adamw_32bit {more}\n"
        ))
    };
    let fields = [Field::TrainType, Field::BaseQuantization, Field::LoraRank, Field::SeqLength];
    let plain = run("");
    assert!(plain.plan.is_some(), "{:?}", plain.diagnostics);
    assert_eq!(fields.map(|field| value(&plain, field)), ["qlora", "nf4", "64", "3456"]);
    assert_eq!(value(&run("--full_finetune True --bits 16"), Field::TrainType), "full");
}

/// `--rank 16 --lora_alpha 32` for a custom program was given PEFT's rank of 8.
#[test]
fn a_scale_without_a_rank_asks_for_it() {
    let run = |more: &str| {
        script(&format!(
            "torchrun --nproc_per_node 2 sft.py --model_name_or_path Qwen/Qwen2.5-1.5B --bf16 --per_device_train_batch_size 8 \
             --model_max_length 1024 --lora_alpha 32 --use_lora True --lora_target_modules q_proj {more}\n"
        ))
    };
    let rank = |more: &str| {
        let read = run(more);
        let question = read.questions.iter().find(|question| question.name() == "lora_rank").cloned();
        question.and_then(|question| question.proposal)
    };
    assert_eq!(rank("--rank 16").as_deref(), Some("16"));
    assert_eq!(rank("").as_deref(), Some("8"));
    assert_eq!(rank("--lora_r 4"), None);
    let text = "torchrun --nproc_per_node 2 sft.py --model_name_or_path Qwen/Qwen2.5-1.5B --bf16 --per_device_train_batch_size 8 \
        --model_max_length 1024 --rank 16 --lora_alpha 32\n";
    let names: Vec<String> =
        script(text).questions.into_iter().map(|question| question.name().to_owned()).collect();
    assert!(names.contains(&"lora_rank".to_owned()), "{names:?}");
}
