//! Fine-tuning programs, switches and defaults that were formerly read as those of another training.

use super::{said, script, stopped, value};
use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::Field;
use shardscope_source::{Code, Severity, Source};

fn read_all(files: &[(&str, &str)]) -> Resolution {
    let source = Source::from_files(files.iter().copied());
    read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
}

fn program(text: &str) -> Resolution {
    said("train.py", text, &[("world_size", "8"), ("seq_length", "2048"), ("model", "Qwen/Qwen2.5-7B")])
}

/// lm-sys/FastChat `fastchat/train/train.py`, shortened: every training argument is on the command line.
const PARSED: &str = "import transformers\nfrom transformers import Trainer\n\n@dataclass\n\
    class TrainingArguments(transformers.TrainingArguments):\n    optim: str = field(default=\"adamw_torch\")\n\n\
    parser = transformers.HfArgumentParser((ModelArguments, DataArguments, TrainingArguments))\n\
    model_args, data_args, training_args = parser.parse_args_into_dataclasses()\n\
    model = transformers.AutoModelForCausalLM.from_pretrained(model_args.model_name_or_path)\n\
    trainer = Trainer(model=model, args=training_args)\ntrainer.train()\n";

#[test]
fn a_program_that_parses_its_command_line_has_no_defaults_of_a_training() {
    let open = program(PARSED);
    let asked: Vec<&str> = open.questions.iter().map(|asked| asked.name()).collect();
    assert!(open.plan.is_none() && open.not_modelled.is_empty() && asked == ["command_line"], "{asked:?}");
    // A program without a trainer does not ask, and one that sets the arguments itself states them.
    assert!(
        read_all(&[("chat.py", "parser = HfArgumentParser(ModelArguments)\nmodel.generate()\n")])
            .not_modelled
            .is_empty()
    );
    let filled =
        PARSED.replace("trainer = ", "args = TrainingArguments(per_device_train_batch_size=4)\ntrainer = ");
    let filled = program(&filled);
    assert!(filled.plan.is_some(), "{:?}", filled.diagnostics);
    assert_eq!(value(&filled, Field::MicroBatchSize), "4");
    // The given command line states everything.
    let line = "torchrun --nproc_per_node=8 train.py --model_name_or_path Qwen/Qwen2.5-7B --bf16 True --model_max_length 4096 \
        --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --gradient_checkpointing True";
    for files in [[("run.sh", line), ("train.py", PARSED)], [("train.py", PARSED), ("run.sh", line)]] {
        let both = read_all(&files);
        assert!(both.plan.is_some(), "{:?}", both.diagnostics);
        let shown =
            [Field::MicroBatchSize, Field::SeqLength, Field::WorldSize].map(|field| value(&both, field));
        assert_eq!(shown, ["2", "4096", "8"]);
    }
    // Preference and reward losses are recognised by the trainer.
    stopped(&program(&PARSED.replace("Trainer(model", "BCOTrainer(model")), &["BCOTrainer"]);
    let dpo = program(&PARSED.replace("Trainer(model", "DPOTrainer(model"));
    assert_eq!(value(&dpo, Field::TrainingObjective), "dpo");
}

#[test]
fn what_a_program_computes_is_no_default() {
    // huggingface/cookbook `notebooks/en/fine_tuning_code_llm_on_single_gpu.ipynb`, shortened.
    let text = |targets: &str, more: &str| {
        format!(
            "from transformers import Trainer\nTARGETS = \"c_proj,c_attn\"\nmodel = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-8B')\n\
             config = LoraConfig(r=8, lora_alpha=32, target_modules={targets}, bias='none')\n\
             args = TrainingArguments(per_device_train_batch_size=2, {more})\ntrainer = Trainer(get_peft_model(model, config), args=args)\n"
        )
    };
    let asks = |text: &str| {
        let read = program(text);
        read.questions.iter().map(|question| question.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(asks(&text("targets_of(model)", "bf16=True")), ["lora_target_modules"]);
    let named = program(&text("TARGETS.split(',')", "bf16=True"));
    assert_eq!(value(&named, Field::LoraTargetModules), "c_proj c_attn");
    assert_eq!(asks(&text("['q_proj', 'v_proj']", "bf16=cfg.bf16")), ["bf16"]);
    assert_eq!(
        asks(&text("['q_proj', 'v_proj']", "bf16=True, gradient_checkpointing=cfg.save")),
        ["gradient_checkpointing"]
    );
    let stated = program(&text("['q_proj', 'v_proj']", "bf16=torch.cuda.is_bf16_supported()"));
    assert!(stated.plan.is_some(), "{:?}", stated.diagnostics);
    assert_eq!([Field::Bf16, Field::Autocast].map(|field| value(&stated, field)), ["true", "bf16"]);
    // Biases train if requested.
    stopped(&program(&text("['q_proj']", "bf16=True").replace("'none'", "'lora_only'")), &["bias"]);
    let bits = "quant = BitsAndBytesConfig(load_in_4bit=args.bits == 4)\n";
    let handed_on =
        text("['q_proj']", "bf16=True").replace("Qwen3-8B'", "Qwen3-8B', quantization_config=quant");
    stopped(&program(&(bits.to_owned() + &handed_on)), &["load_in_4bit"]);
    // A name within a function may have the value of any of its assignments.
    let inside = |more: &str| {
        let program = text("targets", "bf16=True");
        program.replace(
            "TARGETS = ",
            &format!("def train():\n    targets = ['q_proj', 'k_proj']\n{more}TARGETS = "),
        )
    };
    let one = program(&inside(""));
    assert_eq!(value(&one, Field::LoraTargetModules), "q_proj k_proj");
    assert_eq!(asks(&inside("    targets = ['v_proj']\n")), ["lora_target_modules"]);
    // A pasted cell is not TOML, whatever it begins with.
    let cell = "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-8B')\nargs = TrainingArguments(bf16=True)\n";
    assert_eq!(value(&said("", cell, &[]), Field::NumLayers), "36");
}

#[test]
fn trainers_of_trl_in_python_are_read_as_their_files_are() {
    // huggingface/trl `examples/notebooks/openenv_wordle_grpo.ipynb`, shortened; the model loaded after the training is
    // for inference.
    let grpo = "from trl import GRPOTrainer\nname = 'Qwen/Qwen3-1.7B'\nconfig = GRPOConfig(per_device_train_batch_size=1, gradient_accumulation_steps=64, \
        num_generations=2, max_completion_length=1024, use_vllm=True, vllm_mode='colocate', vllm_gpu_memory_utilization=0.15, \
        vllm_max_model_length=3072)\ntrainer = GRPOTrainer(model=name, args=config)\ntrainer.train()\n\
        model = AutoModelForCausalLM.from_pretrained('me/mine', dtype='float32')\n";
    let read = said("train.py", grpo, &[("world_size", "8")]);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    let shown = [Field::TrainingObjective, Field::SeqLength, Field::RolloutsPerPrompt, Field::NumLayers];
    assert_eq!(shown.map(|field| value(&read, field)), ["policy", "3072", "2", "28"]);
    stopped(
        &said("train.py", &grpo.replace("'colocate'", "args.mode"), &[("world_size", "8")]),
        &["vllm_mode"],
    );
    let rewards = "from trl import RewardTrainer\nmodel = AutoModelForSequenceClassification.from_pretrained('Qwen/Qwen3-0.6B', num_labels=1)\n\
        args = RewardConfig(per_device_train_batch_size=2, max_length=1024)\ntrainer = RewardTrainer(model=model, args=args)\n";
    let read = said("train.py", rewards, &[("world_size", "8")]);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    assert_eq!(value(&read, Field::TrainingObjective), "reward");
    let kto = "from trl import KTOTrainer\nmodel = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-0.6B')\nargs = KTOConfig(max_length=1024)\n\
        trainer = KTOTrainer(model=model, args=args)\n";
    assert_eq!(value(&said("train.py", kto, &[("world_size", "8")]), Field::TrainingObjective), "kto");
    // unsloth compiles these losses.
    let fast = kto.replace("AutoModelForCausalLM", "FastLanguageModel");
    stopped(&said("train.py", &fast, &[]), &["KTOConfig"]);
}

/// IBM/Dromedary `training/step3_principle_engraving/scripts/finetune_dromedary2_70b_sft.sh`, shortened: QLoRA's
/// program finds all linear layers itself, and alpha is 16.
#[test]
fn qloras_program_adapts_every_linear_layer() {
    let text = "torchrun --nnodes=1 --nproc-per-node=8 finetune_qlora.py --per_device_train_batch_size 4 --double_quant True \
        --gradient_accumulation_steps 4 --model_name_or_path meta-llama/Llama-2-70b-hf --source_max_len 512 --target_max_len 512 \
        --quant_type nf4 --lora_r 64 --bf16 True";
    let read = script(text);
    let shown = [
        Field::LoraTargetModules,
        Field::LoraByNames,
        Field::LoraAlpha,
        Field::BaseQuantization,
        Field::TrainType,
    ];
    assert_eq!(shown.map(|field| value(&read, field)), ["all-linear", "true", "16", "nf4", "qlora"]);
    assert_eq!(value(&script(&format!("{text} --bits 16")), Field::TrainType), "lora");
    let full = script(&format!("{text} --bits 16 --full_finetune True"));
    assert_eq!([Field::TrainType, Field::BaseQuantization].map(|field| value(&full, field)), ["full", ""]);
}

/// QwenLM/Qwen3-VL `qwen-vl-finetune/scripts/sft_7b.sh`: everything not named by its three switches is frozen.
#[test]
fn qwens_program_for_vision_trains_what_its_switches_name() {
    let text = |switches: &str| {
        format!(
            "torchrun --nproc_per_node=8 qwenvl/train/train_qwen.py --model_name_or_path Qwen/Qwen2.5-VL-7B-Instruct --bf16 \
             --per_device_train_batch_size 4 --gradient_accumulation_steps 4 --max_pixels 50176 --model_max_length 8192 {switches}"
        )
    };
    let frozen = |switches: &str| value(&script(&text(switches)), Field::FrozenModules);
    // In Qwen3-VL the switch of the merger leaves the deepstack mergers to the tower's switch.
    let merger = frozen("--tune_mm_vision False --tune_mm_mlp True --tune_mm_llm True");
    assert_eq!(merger, "vision_tower deepstack_merger_list");
    assert_eq!(frozen("--tune_mm_vision True --tune_mm_mlp True --tune_mm_llm True"), "");
    let read = script(&text("--tune_mm_mlp True --tune_mm_llm True --data_flatten True"));
    let shown =
        [Field::ImagePixels, Field::AttnImplementation, Field::Packing].map(|field| value(&read, field));
    assert_eq!(shown, ["50176", "flash_attention_2", "true"]);
    stopped(
        &script(&text("--tune_mm_vision True --tune_mm_mlp True --tune_mm_llm False")),
        &["tune_mm_vision"],
    );
    let lora = script(&text("--tune_mm_llm True --lora_enable True"));
    let shown =
        [Field::FrozenModules, Field::LoraTargetModules, Field::LoraRank].map(|field| value(&lora, field));
    assert_eq!(shown, ["vision_tower multi_modal_projector", "q_proj k_proj v_proj o_proj", "64"]);
    // Another program's switch of the same kind is not ignored (OpenBMB/MiniCPM-V `finetune/finetune_ds.sh`).
    let other = text("--tune_vision true --tune_llm false");
    stopped(&script(&other), &["tune_vision", "tune_llm"]);
}

/// dvlab-research/Step-DPO `bash_scrips/qwen2_7b_step_dpo.sh`: a file before the options, and a preference loss.
#[test]
fn a_file_before_the_options_is_asked_for() {
    let text = |file: &str| {
        format!(
            "accelerate launch --num_processes 8 train.py {file} --model_name_or_path=Qwen/Qwen2-7B --bf16=True --beta=0.5 \
             --per_device_train_batch_size=4 --gradient_accumulation_steps=4 --model_max_length 1024 --output_dir=outputs/step-dpo"
        )
    };
    let read = script(&text("configs/config_full.yaml"));
    assert!(read.plan.is_none());
    let missing = |said: &&shardscope_source::Diagnostic| {
        said.code == Code::MissingFile && said.severity == Severity::Error
    };
    let reported = read.diagnostics.iter().find(missing).expect("the file is asked for");
    assert!(reported.message.contains("config_full.yaml"), "{}", reported.message);
    // A preference weight is not a sample weight; the run's names indicate the loss.
    assert_eq!(value(&script(&text("")), Field::TrainingObjective), "dpo");
    let open = script(&text("").replace("step-dpo", "out"));
    assert!(open.questions.iter().any(|question| question.name() == "training_objective"));
}

#[test]
fn of_two_whole_runs_one_is_answered_and_named() {
    let one = "torchrun --nproc_per_node=8 train.py --model_name_or_path Qwen/Qwen2.5-7B --bf16 True --model_max_length 4096 \
        --per_device_train_batch_size 2 --gradient_accumulation_steps 4";
    let other = one.replace("Qwen2.5-7B", "Qwen2.5-0.5B");
    let reported = |read: &Resolution| {
        let said = read.diagnostics.iter().find(|said| said.code == Code::SeveralCommands);
        said.filter(|said| said.severity == Severity::Warning).map(|said| said.message.clone())
    };
    let both = read_all(&[("a.sh", one), ("b.sh", &other)]);
    assert_eq!(value(&both, Field::NumLayers), "28");
    assert!(
        reported(&both).is_some_and(|said| said.contains("the estimate is for a.sh")),
        "{:?}",
        both.diagnostics
    );
    // A script started by another one belongs to it, and one that starts nothing does not count.
    let starts = "export MODEL=a\nbash b.sh\n";
    assert_eq!(reported(&read_all(&[("a.sh", starts), ("b.sh", &other)])), None);
    assert_eq!(reported(&read_all(&[("a.sh", one), ("env.sh", "export NCCL_DEBUG=INFO\n")])), None);
    // Settings files of one format.
    let file = "base_model: Qwen/Qwen3-8B\nsequence_len: 2048\nmicro_batch_size: 2\nbf16: true\n";
    let both = read_all(&[("a.yaml", file), ("b.yaml", &file.replace("8B", "4B"))]);
    assert!(reported(&both).is_some_and(|said| said.contains("a.yaml") && said.contains("b.yaml")));
    assert_eq!(reported(&read_all(&[("a.yaml", file)])), None);
}

#[test]
fn modelscopes_folders_are_names_of_models() {
    let text = "torchrun --nproc_per_node=8 train.py --model_name_or_path /models/Qwen/Qwen2___5-Coder-1___5B --bf16 True \
        --model_max_length 1280 --per_device_train_batch_size 2 --gradient_accumulation_steps 4";
    assert_eq!(value(&script(text), Field::HiddenSize), "1536");
    // SkyworkAI/Skywork `bash_scripts/skywork_13b_pt.sh` calls the kind of training a task.
    assert!(script(&format!("{text} --task_type pt")).not_modelled.is_empty());
    stopped(&script(&format!("{text} --task_type seq_cls")), &["task_type"]);
}

/// SkyworkAI/Skywork `bash_scripts/skywork_13b_sft_lora.sh`, OptimalScale/LMFlow
/// `scripts/archive/run_finetune_with_qlora.sh`: if the words do not say which layers have adapters, only the program
/// knows.
#[test]
fn targets_that_a_program_keeps_to_itself_are_asked_for() {
    let text = "torchrun --nproc_per_node=8 train.py --model_name_or_path meta-llama/Llama-2-13b-hf --bf16 True --model_max_length 1280 \
        --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --use_lora true --lora_r 32";
    let asks = |text: &str| {
        script(text).questions.into_iter().map(|question| question.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(asks(text), ["lora_target_modules"]);
    assert!(asks(&format!("{text} --lora_target_modules q_proj,k_proj")).is_empty());
    let lmflow = text.replace("--use_lora true --lora_r 32", "--use_qlora 1 --save_aggregated_lora 0");
    let read = script(&lmflow);
    let shown = [Field::LoraRank, Field::LoraAlpha, Field::LoraTargetModules, Field::DoubleQuantization];
    assert_eq!(shown.map(|field| value(&read, field)), ["8", "32", "q_proj v_proj", "true"]);
    let peft = text.replace("--use_lora true", "--use_peft_lora true");
    let every = "q_proj k_proj v_proj o_proj down_proj up_proj gate_proj";
    assert_eq!(value(&script(&peft), Field::LoraTargetModules), every);
}

#[test]
fn other_losses_than_the_next_tokens_are_recognised_by_name() {
    // pytorch/torchtune `recipes/dev/7B_full_early_exit.yaml`, modelscope/ms-swift `examples/ray/gkd/`, shortened.
    let tune = "model:\n  _component_: torchtune.models.llama2.llama2_7b\ntokenizer:\n  _component_: torchtune.models.llama2.llama2_tokenizer\n  \
        max_seq_len: 2048\nbatch_size: 2\ngradient_accumulation_steps: 1\noptimizer:\n  _component_: torch.optim.AdamW\nshuffle: true\ndtype: bf16\n";
    let one = [("world_size", "1")];
    assert!(said("t.yaml", tune, &one).plan.is_some());
    stopped(
        &said("t.yaml", &format!("{tune}early_exit_loss:\n  scale: 1.0\n"), &one),
        &["early_exit_loss.scale"],
    );
    stopped(&said("t.yaml", &format!("{tune}layer_dropout:\n  prob: 0.2\n"), &one), &["layer_dropout.prob"]);
    let swift = "model: Qwen/Qwen2.5-7B\nrlhf_type: gkd\nteacher_model: Qwen/Qwen2.5-32B\ntensor_model_parallel_size: 2\n\
        micro_batch_size: 1\nglobal_batch_size: 16\nmax_length: 8192\nsequence_parallel: true\nrecompute_granularity: selective\n";
    assert!(said("gkd.yaml", swift, &[("world_size", "8")]).plan.is_none());
    // TRL's options with a preference weight (QwenLM/Qwen2.5-Coder `finetuning/dpo/scripts/dpo_qwencoder.sh`).
    let words = "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-7B --dataset_name d --max_length 1280 \
        --per_device_train_batch_size 1 --gradient_accumulation_steps 2 --bf16 True --beta 0.1";
    assert!(script(words).questions.iter().any(|question| question.name() == "training_objective"));
    let named = script(&words.replace("train.py", "examples/scripts/dpo.py"));
    assert!(named.questions.is_empty(), "{:?}", named.questions);
    assert_eq!(value(&named, Field::TrainingObjective), "dpo");
    stopped(&script(&words.replace("train.py", "examples/scripts/dpo_online.py")), &["program"]);
}

/// The bits in which weights are loaded do not concern checkpoint files, although the option's name begins alike
/// (FlagAlpha/Llama2-Chinese `train/sft/finetune_lora.sh`): QLoRA was formerly read as LoRA over 16 bits.
#[test]
fn bits_of_loaded_weights_are_no_checkpoint_files() {
    let run = |more: &str| {
        script(&format!(
            "torchrun --nproc_per_node 2 finetune_clm_lora.py --model_name_or_path Qwen/Qwen2.5-7B --bf16 --block_size 2048 \
             --per_device_train_batch_size 1 --gradient_checkpointing --lora_r 8 --lora_alpha 32 --target_modules q_proj,v_proj \
             {more}\n"
        ))
    };
    let said = |more: &str| {
        let read = run(more);
        let fields = [Field::TrainType, Field::BaseQuantization, Field::DoubleQuantization];
        fields.map(|field| value(&read, field))
    };
    assert_eq!(said(""), ["lora", "", ""]);
    assert_eq!(said("--load_in_bits 4"), ["qlora", "nf4", "true"]);
    assert_eq!(said("--load_in_bits 8"), ["qlora", "int8", ""]);
    assert_eq!(said("--load_in_kbits 4"), ["qlora", "nf4", "false"]);
    assert_eq!(said("--load_in_kbits 16"), ["lora", "", ""]);
    // An unknown option is reported as unknown, not as changing nothing.
    stopped(&run("--load_in_3bit True --load_best_model_at_end False"), &["load_in_3bit"]);
}

/// tatsu-lab/stanford_alpaca: `train.py` loads without `torch_dtype`, and its README counts 16 bytes per parameter ("7
/// x 4 x 4 = 112 GB"). `evaluation_strategy` is only an option of transformers until 4.46.
#[test]
fn weights_that_transformers_4_loads_for_fsdp_are_fp32() {
    let held = |more: &str| {
        let resolution = script(&format!(
            "torchrun --nproc_per_node=4 train.py --model_name_or_path Qwen/Qwen2.5-7B --bf16 True --model_max_length 512 \
             --per_device_train_batch_size 4 --gradient_accumulation_steps 8 --lr_scheduler_type cosine {more}"
        ));
        value(&resolution, Field::ParamsDtype)
    };
    let fsdp = "--fsdp 'full_shard auto_wrap' --fsdp_transformer_layer_cls_to_wrap Qwen2DecoderLayer";
    assert_eq!(held(&format!("--evaluation_strategy no {fsdp}")), "fp32");
    assert_eq!(held(&format!("--eval_strategy no {fsdp}")), "bf16");
    assert_eq!(held(&format!("--evaluation_strategy no --torch_dtype bfloat16 {fsdp}")), "bf16");
    // DeepSpeed casts the loaded weights.
    assert_eq!(held("--evaluation_strategy no --deepspeed ds_config_zero3.json"), "bf16");
}
