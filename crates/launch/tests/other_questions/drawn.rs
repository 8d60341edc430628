//! Misreadings found in a random draw of public launch files, each in a text of a few lines.

use super::{MODEL, said, script, stopped, value};
use shardscope_bash::Environment;
use shardscope_launch::Asked;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::Field;
use shardscope_source::{Code, Severity, Source};

fn proposal(resolution: &Resolution, field: Field) -> Option<String> {
    let asked = resolution.questions.iter().find(|question| question.asks == Asked::Setting(field));
    asked.and_then(|question| question.proposal.clone())
}

/// Evaluations and data preparation that take training options.
#[test]
fn megatrons_tasks_and_tools_are_no_training() {
    for program in ["./tasks/msdp/main.py", "../analyze_data.py"] {
        let text = format!(
            "python -m torch.distributed.launch --nproc_per_node 1 {program} {MODEL} --task MSDP-EVAL-F1\n"
        );
        stopped(&script(&text), &["program"]);
    }
}

/// fms-fsdp's program was read as Megatron's: fp32, no sharding.
#[test]
fn a_program_with_options_of_its_own_is_not_taken_for_megatrons() {
    let text = "torchrun --nnodes 1 --nproc_per_node=8 main_training.py --ckpt_load_path=/a --sharding_strategy=hsdp --batch_size=2 \
        --fsdp_activation_checkpointing=False --low_cpu_fsdp=False --report_interval=200 --use_torch_compile=False\n";
    stopped(&said("run.sh", text, &[("model", "Qwen/Qwen2.5-7B"), ("seq_length", "4096")]), &["program"]);
    // A Megatron command with a few options of a fork remains one, and stops only at those.
    let ours = launch_of_a_fork();
    let named: Vec<_> = ours.not_modelled.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(named, ["--my-own", "--other-own", "--third-own"]);
}

fn launch_of_a_fork() -> Resolution {
    script(&format!(
        "torchrun --nnodes 1 --nproc_per_node 8 train.py {MODEL} --my-own 1 --other-own 2 --third-own 3\n"
    ))
}

/// Primus runs torchtitan as well as Megatron.
#[test]
fn primus_runs_torchtitan_with_its_settings() {
    let text = "modules:\n  pre_trainer:\n    framework: torchtitan\n    config: pre_trainer.yaml\n    model: qwen3_4b.yaml\n    overrides:\n      \
        training:\n        local_batch_size: 4\n        seq_len: 4096\n      primus_turbo:\n        enable_primus_turbo: true\n        \
        enable_attention_float8: false\n";
    let of = |text: &str| said("exp.yaml", text, &[("world_size", "8")]);
    let read = of(text);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    let expected = [
        (Field::Software, "torchtitan"),
        (Field::NumLayers, "36"),
        (Field::MicroBatchSize, "4"),
        (Field::SeqLength, "4096"),
        (Field::ZeroStage, "3"),
        (Field::CompiledLayers, "true"),
        (Field::LossKind, "compiled"),
        (Field::RecomputeGranularity, ""),
    ];
    for (field, expected) in expected {
        assert_eq!(value(&read, field), expected, "{}", field.name());
    }
    stopped(&of(&text.replace("float8: false", "float8: true")), &["primus_turbo.enable_attention_float8"]);
    stopped(&of(&text.replace("framework: torchtitan", "framework: maxtext")), &["framework"]);
    // The files of fp8 models turn converters on.
    let fp8 = of(&text.replace("qwen3_4b.yaml", "llama3.1_8B-fp8.yaml"));
    assert!(fp8.not_modelled.iter().any(|item| item.name == "model"), "{:?}", fp8.not_modelled);
}

/// Primus-Turbo's switches have no effect without the first one.
#[test]
fn primus_turbo_counts_where_it_is_on() {
    let text = "modules:\n  pre_trainer:\n    framework: megatron\n    model: qwen2.5_7B.yaml\n    overrides:\n      seq_length: 4096\n      \
        micro_batch_size: 1\n      global_batch_size: 8\n      enable_primus_turbo: false\n      enable_turbo_attention_float8: true\n      \
        use_turbo_grouped_gemm: true\n      use_turbo_attention: true\n";
    let of = |text: &str| said("exp.yaml", text, &[("world_size", "8")]);
    let off = of(text).plan.expect("a plan");
    assert!(off.recipe().marks.not_read.is_empty(), "{:?}", off.recipe().marks);
    let on = text.replace("turbo: false", "turbo: true");
    stopped(&of(&on), &["enable_turbo_attention_float8"]);
    assert!(of(&on.replace("float8: true", "float8: false")).plan.is_some());
}

/// Keys without a dot at the top of verl's supervised trainer.
#[test]
fn verls_supervised_trainer_cuts_sequences() {
    let read = script(
        "torchrun --standalone --nnodes=1 --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer data.train_files=a.parquet \
         model.partial_pretrain=Qwen/Qwen2.5-0.5B-Instruct data.micro_batch_size_per_gpu=4 ulysses_sequence_parallel_size=2 \
         use_remove_padding=true\n",
    );
    assert_eq!(value(&read, Field::ContextParallelSize), "2");
    assert_eq!(value(&read, Field::CpCommType), "a2a");
}

/// Depths that share one layer have the parameters of a single layer.
#[test]
fn depths_of_nemo_rl_that_share_a_layer_stop() {
    let text = |more: &str| {
        format!(
            "defaults: grpo_math_1B.yaml\ngrpo:\n  num_prompts_per_step: 16\npolicy:\n  model_name: Qwen/Qwen2.5-7B\n  \
             megatron_cfg:\n    enabled: true\n    mtp_num_layers: 2\n    {more}\n"
        )
    };
    stopped(
        &said("grpo.yaml", &text("mtp_use_repeated_layer: true"), &[]),
        &["policy.megatron_cfg.mtp_use_repeated_layer"],
    );
}

/// DoReMi's proxy model trains next to its reference.
#[test]
fn doremis_reference_stops() {
    let text = "model:\n  model_config:\n    num_hidden_layers: 2\nparallelism:\n  dp: 2\ndoremi:\n  \
        ref_model_resume_checkpoint_path: checkpoints/ref\n  domain_names: a, b\n";
    stopped(&said("config.yaml", text, &[]), &["doremi.ref_model_resume_checkpoint_path"]);
}

/// The defaults of a custom program are not PEFT's.
#[test]
fn ranks_that_only_the_program_knows_are_asked_for() {
    let text = |more: &str| {
        format!(
            "torchrun --nproc_per_node 2 finetune.py --model_name_or_path Qwen/Qwen2.5-7B --bf16 True --per_device_train_batch_size 2 \
             --gradient_accumulation_steps 8 --model_max_length 512 --gradient_checkpointing True --use_lora {more}\n"
        )
    };
    let open = script(&text("True"));
    assert_eq!(proposal(&open, Field::LoraRank).as_deref(), Some("8"));
    assert!(open.plan.is_none());
    let targets = script(&text("True --lora_r 4"));
    assert_eq!(proposal(&targets, Field::LoraTargetModules).as_deref(), Some("q_proj v_proj"));
    assert!(script(&text("True --lora_r 4 --lora_target_modules q_proj,v_proj")).plan.is_some());
    // Qwen's own program: `LoraArguments`, and GPTQ below them.
    let qwen = script(&text("True --lazy_preprocess True"));
    assert_eq!(value(&qwen, Field::LoraRank), "64");
    assert_eq!(value(&qwen, Field::ModulesToSave), "embed_tokens lm_head");
    stopped(&script(&text("True --lazy_preprocess True --q_lora True")), &["q_lora"]);
}

/// QLoRA's program and similar ones truncate a source and a target, each to its own length.
#[test]
fn a_source_and_a_target_are_one_sample() {
    let text = "accelerate launch --num_processes 4 finetune.py --model_name_or_path Qwen/Qwen2.5-0.5B --source_max_len 16 \
        --target_max_len 512 --per_device_train_batch_size 4 --learning_rate 1e-5 --num_train_epochs 5\n";
    let open = script(text);
    assert_eq!(value(&open, Field::SeqLength), "528");
    assert_eq!(value(&open, Field::GradientCheckpointing), "true");
    assert_eq!(proposal(&open, Field::NumMicroBatches).as_deref(), Some("1"));
    assert!(open.plan.is_none(), "the steps accumulated are the program's");
}

/// PEFT's example has its own names for bitsandbytes' switches.
#[test]
fn pefts_example_quantizes_by_its_own_names() {
    let read = script(
        "accelerate launch --num_processes 2 train.py --model_name_or_path meta-llama/Llama-2-70b-hf --max_length 2048 --bf16 True \
         --packing True --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --gradient_checkpointing True \
         --use_peft_lora True --lora_target_modules all-linear --use_4bit_quantization True --use_nested_quant True \
         --bnb_4bit_compute_dtype bfloat16 --bnb_4bit_quant_storage_dtype bfloat16\n",
    );
    let expected = [
        (Field::TrainType, "qlora"),
        (Field::BaseQuantization, "nf4"),
        (Field::DoubleQuantization, "true"),
        (Field::ParamsDtype, "bf16"),
        (Field::LoraRank, "64"),
    ];
    for (field, expected) in expected {
        assert_eq!(value(&read, field), expected, "{}", field.name());
    }
}

/// The diagnostic code of the reason why a text gives no plan.
fn why(name: &str, text: &str) -> Option<Code> {
    let read = said(name, text, &[]);
    assert!(read.plan.is_none(), "{name}: a verdict");
    read.diagnostics.iter().find(|said| said.severity == Severity::Error).map(|said| said.code)
}

/// Texts that start no training say so, and what to paste instead.
#[test]
fn what_starts_no_training_says_what_to_paste() {
    let files = [
        (
            "values.yaml",
            "queue:\nvolumes:\n  psVolumes: false\nworkload:\n  gpus: 256\n  configFile: nemo-config.yaml\n",
        ),
        (
            "Chart.yaml",
            "apiVersion: v2\nname: a3-training\ntype: application\nversion: 0.1.0\nappVersion: 1.16.0\n",
        ),
        ("pd.toml", "use_deep_gemm = true\n\n[vllm]\nmodel = \"zai-org/GLM-5-FP8\"\n"),
        ("infer.toml", "[model]\nname = \"PrimeIntellect/Qwen3-0.6B-SFT\"\n"),
        ("runtime_env.yaml", "env_vars:\n  NCCL_DEBUG: INFO\n"),
        (
            "data.yaml",
            "input: ./dataset\noutput_prefix: ./out\ntokenizer_type: HuggingFaceTokenizer\nworkers: 16\n",
        ),
        (
            "job.yaml",
            "training_cfg:\n  entry_script: /opt/mnist.py\n  run:\n    nodes: 2\ncluster:\n  instance_type: ml.g5.8xlarge\n",
        ),
        ("set_up.sh", "#!/bin/bash\nset -ex\nsudo apt-get update\npython3 -m venv env\npip install -U pip\n"),
        (
            "serve.slurm",
            "#!/bin/bash\nsrun --nodes=1 -- vllm serve \"$MODEL_PATH\" --tensor-parallel-size 8\n",
        ),
        ("convert.sh", "#!/bin/bash\npython scripts/convert_hf_checkpoint.py --checkpoint_dir out\n"),
    ];
    for (name, text) in files {
        assert_eq!(why(name, text), Some(Code::NoTraining), "{name}");
        let read = said(name, text, &[]);
        assert!(read.diagnostics.iter().any(|said| said.hint.is_some()), "{name}");
    }
}

/// Files of only a model: MaxText asks for the rest of a step that XLA was seen to compile, MindSpeed-RL has Megatron
/// keys.
#[test]
fn files_of_a_model_alone_are_reported() {
    let maxtext = "base_emb_dim: 5120\nbase_num_query_heads: 40\nbase_num_kv_heads: 8\nbase_mlp_dim: 17408\nbase_num_decoder_layers: 40\n";
    let read = said("qwen3-14b.yml", maxtext, &[]);
    assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
    assert_eq!(value(&read, Field::Software), "maxtext");
    let other = format!("{maxtext}attention: dot_product\n");
    stopped(&said("qwen3-14b.yml", &other, &[]), &["framework"]);
    let mindspeed = "qwen3_8b:\n  num_layers: 36\n  hidden_size: 4096\n  ffn_hidden_size: 12288\n  num_attention_heads: 32\n  swiglu: true\n";
    let read = said("qwen3_8b.yaml", mindspeed, &[]);
    assert_eq!(value(&read, Field::NumLayers), "36");
    assert!(read.questions.iter().any(|question| question.name() == "world_size"), "{:?}", read.questions);
}

/// An argument of the script is asked for with a value that works.
#[test]
fn a_batch_behind_the_script_is_proposed_as_a_multiple() {
    let text = format!(
        "GLOBAL_BATCH=$4\ntorchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py {} --global-batch-size $GLOBAL_BATCH\n",
        MODEL.replace("--global-batch-size 64", "").replace("--micro-batch-size 1", "--micro-batch-size 4")
    );
    let read = script(&text);
    let asked = read.questions.iter().find(|question| question.name() == "$4").expect("a question");
    let proposed: u64 = asked.proposal.as_deref().and_then(|value| value.parse().ok()).expect("a number");
    assert_eq!(proposed % 64, 0);
}

/// FlagScale's meshes of different accelerators.
#[test]
fn unlike_accelerators_stop() {
    let text = "system:\n  tensor_model_parallel_size: 2\n  hetero:\n    enable_hetero: true\n    hetero_pipeline_layer_split: [11, 6, 7]\n\
        model:\n  num_layers: 24\n  hidden_size: 2048\n  num_attention_heads: 16\n  seq_length: 4096\n";
    stopped(&said("hetero.yaml", text, &[]), &["enable-hetero"]);
}

/// Only the name of a torchtune file says that its recipe runs on one device.
#[test]
fn torchtunes_recipes_on_one_device_are_recognised_by_name() {
    let text = "tokenizer:\n  _component_: torchtune.models.llama2.llama2_tokenizer\n  max_seq_len: 2048\nmodel:\n  _component_: \
        torchtune.models.llama2.llama2_7b\nbatch_size: 2\noptimizer:\n  _component_: torch.optim.AdamW\n";
    assert_eq!(value(&said("7B_full_single_device.yaml", text, &[]), Field::WorldSize), "1");
    let many = said("7B_full.yaml", text, &[]);
    assert!(many.questions.iter().any(|question| question.name() == "world_size"));
}

/// torchtune's builders of Phi give those models, with separate projections where transformers has fused ones.
#[test]
fn torchtunes_phi_is_known_by_its_builder() {
    let read = |builder: &str| {
        let text = format!(
            "tokenizer:\n  _component_: torchtune.models.phi4.phi4_tokenizer\n  max_seq_len: 2048\nmodel:\n  _component_: \
             torchtune.models.{builder}\nbatch_size: 2\noptimizer:\n  _component_: torch.optim.AdamW\n"
        );
        let read = said("full_single_device.yaml", &text, &[]);
        assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
        read.plan.unwrap_or_else(|| panic!("{:?}", read.diagnostics))
    };
    for (builder, layers, width) in [("phi3.phi3_mini", 32, 3072), ("phi4.phi4_14b", 40, 5120)] {
        let plan = read(builder);
        let model = plan.model();
        assert_eq!((model.num_layers, model.hidden_size), (layers, width), "{builder}");
        assert!(!model.arrangement.fused_qkv && !model.arrangement.fused_gate_up, "{builder}");
    }
}

/// TRL computes entropy and accuracy of evaluation logits in less memory than the loss; those of KTO have no formula.
#[test]
fn trl_evaluates_in_batches_of_its_own() {
    let file = |more: &str| {
        format!(
            "model_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 2\nper_device_eval_batch_size: 8\nlearning_rate: 5e-7\n\
             bf16: true\nmax_length: 1024\ngradient_accumulation_steps: 4\neval_strategy: steps\n{more}\n"
        )
    };
    let read = |more: &str| said("config.yaml", &file(more), &[("zero_stage", "0"), ("world_size", "8")]);
    let tuned = read("output_dir: data/sft");
    assert_eq!(value(&tuned, Field::EvaluationBatchSize), "8");
    assert!(tuned.plan.is_some(), "{:?}", tuned.diagnostics);
    assert!(read("beta: 0.1\noutput_dir: data/zephyr-dpo").plan.is_some());
    // Arguments that TRL had until 0.24 indicate a loss over all logits at once.
    let older = read("beta: 0.1\nmax_prompt_length: 512\noutput_dir: data/zephyr-kto");
    stopped(&older, &["evaluation_batch_size"]);
    let loss = |read: &_| value(read, Field::LossKind);
    assert_eq!((loss(&tuned), loss(&older)), ("fused_tiles".to_owned(), String::new()));
    assert!(read("beta: 0.1\noutput_dir: data/zephyr-kto").plan.is_some());
    // huggingface/open-r1's recipes/OlympicCoder-7B/sft/config_v00.00.yaml, which transformers 5 rejects.
    assert_eq!(loss(&read("overwrite_output_dir: true\noutput_dir: data/OlympicCoder-7B")), "");
    // princeton-nlp/SimPO's training_configs/llama-3-8b-base-simpo.yaml
    let simpo = read("beta: 2.0\ngamma_beta_ratio: 0.5\noutput_dir: outputs/llama-3-8b-base-simpo");
    let shown = [Field::TrainingObjective, Field::ReferenceModel, Field::PreferenceLogits]
        .map(|field| value(&simpo, field));
    assert_eq!(shown, ["dpo", "none", "whole"]);
    assert!(simpo.plan.is_some(), "{:?}", simpo.not_modelled);
    assert!(read("use_liger_kernel: true\nmax_seq_length: 1024\noutput_dir: data/sft").plan.is_none());
}

/// TRL's DPO holds the policy's logits while the reference runs.
#[test]
fn trls_preferences_hold_their_logits() {
    let text = "model_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 2\nlearning_rate: 5e-7\nbf16: true\nmax_length: 1024\n\
        gradient_accumulation_steps: 4\nbeta: 0.1\noutput_dir: data/zephyr-dpo\n";
    let read = said("config.yaml", text, &[("world_size", "8")]);
    assert_eq!(value(&read, Field::PreferenceLogits), "own");
}

/// Pai-Megatron-Patch scripts take all settings as arguments, which are proposed with the words they are compared with.
#[test]
fn a_whole_call_line_is_proposed() {
    let text = "#!/bin/bash\nENV=$1\nMODEL_SIZE=$2\nBATCH_SIZE=$3\nGLOBAL_BATCH_SIZE=$4\nLR=$5\nSEQ_LEN=$6\nPR=$7\nTP=$8\nPP=$9\n\
        if [ $ENV = dsw ]; then NNODES=1; GPUS_PER_NODE=8; elif [ $ENV = dlc ]; then NNODES=${WORLD_SIZE}; GPUS_PER_NODE=8; fi\n\
        if [ $MODEL_SIZE = 7B ]; then NUM_LAYERS=32; HIDDEN=4096; HEADS=32; elif [ $MODEL_SIZE = 13B ]; then NUM_LAYERS=40; HIDDEN=5120; \
        HEADS=40; fi\n\
        if [ $PR = fp16 ]; then pr=\"--fp16\"; elif [ $PR = bf16 ]; then pr=\"--bf16\"; fi\n\
        torchrun --nnodes $NNODES --nproc_per_node $GPUS_PER_NODE pretrain_gpt.py --num-layers $NUM_LAYERS --hidden-size $HIDDEN \
        --num-attention-heads $HEADS --seq-length $SEQ_LEN --micro-batch-size $BATCH_SIZE --global-batch-size $GLOBAL_BATCH_SIZE \
        --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP --max-position-embeddings 4096 --lr $LR $pr \
        --tokenizer-type GPT2BPETokenizer\n";
    let open = script(text);
    let asked = open.questions.iter().find(|question| question.name() == "arguments").expect("a question");
    let line = asked.proposal.clone().expect("a proposal");
    assert_eq!(line, "dsw 7B 1 256 1e-5 4096 bf16 1 1");
    let source = Source::from_files([("run.sh", text)]);
    let environment =
        Environment { variables: vec![("arguments".to_owned(), line)], ..Environment::default() };
    let answered = read(&Request { source: &source, environment: &environment, overrides: &[] });
    assert!(answered.plan.is_some(), "{:?}", answered.diagnostics);
    assert_eq!(
        (value(&answered, Field::NumLayers), value(&answered, Field::Bf16)),
        ("32".to_owned(), "true".to_owned())
    );
}

/// A trainer of transformers' modules with Megatron's names for its sizes (Pai-Megatron-Patch's
/// `ds_train_huggingface_llama.py`).
#[test]
fn options_that_no_megatron_has_stop() {
    let text = format!(
        "torchrun --nproc_per_node 8 ds_train_huggingface_llama.py {MODEL} --intermediate-size 11008 --gradient-accumulation-steps 4\n"
    );
    stopped(&script(&text), &["program"]);
}

/// A text of which nothing is understood asks for the model; once it is given, only a warning remains.
#[test]
fn a_text_that_tells_nothing_can_be_gone_on_from() {
    for (name, text) in
        [("a.yaml", "colour: red\nsize: 3\n"), ("test_ci.sh", "set -xe\necho 'this test is outdated'\n")]
    {
        let lost = said(name, text, &[]);
        assert!(lost.plan.is_none() && lost.questions.len() == 1, "{:?}", lost.questions);
        assert_eq!(lost.questions[0].name(), "model");
        let answers = [
            ("model", "Qwen/Qwen2.5-7B"),
            ("seq_length", "4096"),
            ("micro_batch_size", "1"),
            ("world_size", "8"),
        ];
        let gone_on = said(name, text, &answers);
        assert!(gone_on.plan.is_some(), "{:?}", gone_on.diagnostics);
        let reported = |said: &&shardscope_source::Diagnostic| {
            matches!(said.code, Code::UnknownSettings | Code::NoTrainingCommand)
                && said.severity == Severity::Warning
        };
        assert!(gone_on.diagnostics.iter().any(|said| reported(&said)), "{:?}", gone_on.diagnostics);
    }
}

/// A script that starts another one names it.
#[test]
fn a_script_that_runs_another_names_it() {
    let text =
        "chmod +x configs/gpt3_175b_base.sh\n./configs/gpt3_175b_base.sh 4 full 1 64 8 run gs://bucket\n";
    let read = script(text);
    let reported = |said: &shardscope_source::Diagnostic| {
        said.code == Code::MissingFile && said.message.contains("gpt3_175b_base.sh") && said.hint.is_some()
    };
    assert!(read.diagnostics.iter().any(reported), "{:?}", read.diagnostics);
}
