//! Pre-training: missing files, and models other than decoders.

use super::{MODEL, launch, said, script, stopped, value};
use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::Field;
use shardscope_source::{Code, Source};

/// The names of the settings that are asked for, with their proposals.
pub(super) fn asked(resolution: &Resolution) -> Vec<(&str, &str)> {
    let questions = resolution.questions.iter();
    questions.map(|asked| (asked.name(), asked.proposal.as_deref().unwrap_or(""))).collect()
}

/// microsoft/Megatron-DeepSpeed, `examples_deepspeed/MoE`: the engine shards as its file says, which `sed` creates from
/// a template. Both were formerly read as a run that shards nothing.
#[test]
fn the_stage_of_a_file_that_is_not_here_is_asked_for() {
    let run = |more: &str| {
        format!(
            "{more}\ndeepspeed --num_nodes 1 --num_gpus 8 pretrain_gpt.py {MODEL} --deepspeed --deepspeed_config ds.json\n"
        )
    };
    let open = script(&run(""));
    assert!(open.plan.is_none());
    assert_eq!(asked(&open), [("zero_stage", "")]);
    let by_sed = "stage=2\nsed \"s/BATCH/64/\" T.json \\\n | sed \"s/ZERO_STAGE/${stage}/\" > ds.json";
    assert_eq!(asked(&script(&run(by_sed))), [("zero_stage", "2")]);
    assert_eq!(asked(&script(&run("sed 's/ZERO_STAGE/1/' T.json > ds.json"))), [("zero_stage", "1")]);
    // The flag of that name is not the engine's (nightingal3/llm-pretraining-behaviours: read as decided by it).
    let flagged = |text: &str| text.replace("--deepspeed_config", "--zero-stage 1 --deepspeed_config");
    assert_eq!(asked(&script(&flagged(&run("")))), [("zero_stage", "1")]);
    // A script that writes the file itself is not asked.
    let here = "cat > ds.json <<EOF\n{\"train_batch_size\": 64, \"zero_optimization\": {\"stage\": 1}}\nEOF";
    assert_eq!(asked(&script(&run(here))), []);
    assert_eq!(asked(&script(&flagged(&run(here)))), []);
    // Without its switch the engine does not run.
    assert!(script(&run("").replace("--deepspeed ", "")).plan.is_some());
    // deepspeedai/DeepSpeedExamples, `training/bing_bert`: none of Megatron's options.
    let other =
        "deepspeed --num_gpus 8 deepspeed_train.py --cf bert.json --deepspeed --deepspeed_config ds.json\n";
    assert!(asked(&script(other)).iter().all(|(name, _)| *name != "zero_stage"));
    let on_host = run(here).replace("--deepspeed ", "--deepspeed --checkpoint-in-cpu ");
    stopped(&script(&on_host), &["--checkpoint-in-cpu"]);
}

/// NVIDIA/NeMo-Framework-Launcher, `examples/training/gpt/a100/40b_8node.sh`: formerly read as torchtitan's on one GPU.
const LAUNCHER: &str = "python3 launcher_scripts/main.py training=gpt3/40b stages=[training] data_dir=/d \
    training.run.name=40b training.trainer.num_nodes=8 training.model.global_batch_size=256 training.model.micro_batch_size=2 \
    training.model.pipeline_model_parallel_size=4 +training.model.optim.grad_sync_dtype=bf16\n";
const TRAINING: &str = "trainer:\n  devices: 8\n  num_nodes: 128\n  precision: bf16\nmodel:\n  encoder_seq_length: 2048\n  \
    max_position_embeddings: 2048\n  num_layers: 48\n  hidden_size: 8192\n  ffn_hidden_size: 32768\n  \
    num_attention_heads: 64\n  micro_batch_size: 4\n  global_batch_size: 2048\n  tensor_model_parallel_size: 2\n  \
    pipeline_model_parallel_size: 1\n  optim:\n    name: fused_adam\n";

#[test]
fn nemos_launcher_changes_the_file_that_it_names() {
    let open = script(LAUNCHER);
    assert!(open.plan.is_none());
    assert_eq!(value(&open, Field::Software), "megatron_core_te");
    let named = open.diagnostics.iter().any(|said| said.message.contains("40b.yaml, which is not here"));
    assert!(named, "{:?}", open.diagnostics);
    let source = Source::from_files([("run.sh", LAUNCHER), ("40b.yaml", TRAINING)]);
    let vocabulary = [("vocab_size".to_owned(), "50257".to_owned())];
    let request = Request { source: &source, environment: &Environment::default(), overrides: &vocabulary };
    let both = read(&request);
    assert!(both.plan.is_some(), "{:?}", both.diagnostics);
    for (field, expected) in [
        (Field::WorldSize, "64"),
        (Field::GlobalBatchSize, "256"),
        (Field::MicroBatchSize, "2"),
        (Field::TensorModelParallelSize, "2"),
        (Field::PipelineModelParallelSize, "4"),
        (Field::GradsDtype, "bf16"),
        (Field::NumLayers, "48"),
    ] {
        assert_eq!(value(&both, field), expected, "{field:?}");
    }
}

/// `launcher_scripts/conf` of the same repository: each was formerly read as the training of a decoder.
#[test]
fn nemos_other_files_are_no_training_of_a_decoder() {
    let file = |more: &str| said("a.yaml", &format!("{TRAINING}{more}"), &[("vocab_size", "50257")]);
    assert!(file("").plan.is_some());
    for (more, name) in [
        ("  mm_cfg:\n    llm:\n      freeze: true\n", "model.mm_cfg.llm.freeze"),
        ("  vision_pretraining_type: classify\n", "model.vision_pretraining_type"),
        ("  mcore_bert: true\n", "model.mcore_bert"),
        ("  encoder:\n    num_layers: 12\n", "model.encoder.num_layers"),
        ("  unet_config:\n    in_channels: 4\n", "model.unet_config.in_channels"),
        ("  retro:\n    num_neighbors: 2\n", "model.retro.num_neighbors"),
        ("  peft:\n    peft_scheme: ia3\n", "model.peft.peft_scheme"),
        ("  peft:\n    peft_scheme: lora\n    lora_tuning:\n      adapter_dim: 32\n", "train_type"),
    ] {
        stopped(&file(more), &[name]);
    }
    let (trains, _) = TRAINING.split_once("  optim:").expect("an optimizer");
    let evaluates = format!("{trains}inference:\n  greedy: true\n");
    stopped(&said("a.yaml", &evaluates, &[("vocab_size", "50257")]), &["inference.greedy"]);
    let converts = format!("{trains}run:\n  nemo_file_name: a.nemo\n");
    stopped(&said("a.yaml", &converts, &[("vocab_size", "50257")]), &["run.nemo_file_name"]);
    assert!(file("inference:\n  greedy: true\n").plan.is_some());
}

/// `configs/local_setup.yml` and `text_generation.yml` of the same repository, for which a model was formerly asked.
#[test]
fn paths_of_gpt_neox_are_no_training() {
    for text in [
        "{\n  \"data_path\": \"data/enwik8\",\n  \"vocab_file\": \"a\",\n  \"merge_file\": \"b\",\n  \"save\": \"c\"\n}\n",
        "text_gen_type: unconditional\nmaximum_tokens: 102\ntemperature: 1.0\n",
    ] {
        let read = said("local_setup.yml", text, &[]);
        assert!(read.questions.is_empty(), "{:?}", read.questions);
        assert!(read.diagnostics.iter().any(|said| said.message.contains("not a training run")), "{text}");
    }
}

/// yanring/Megatron-MoE-ModelZoo, `ckpt_convert_scripts/DeepSeek-V3`; aws-samples, `3.test_cases/megatron/bionemo`;
/// Pai's `examples/baichuan/run_finetune_huggingface_baichuan.sh`; ColossalAI's `examples/tutorial/opt`: each was
/// formerly read as the training of a decoder.
#[test]
fn programs_of_other_purposes_are_recognised_by_their_names_and_options() {
    for (program, more) in [
        ("/w/deepseek_v3_hf_to_mg.py", "--target-tensor-model-parallel-size 1"),
        ("esm2/scripts/train_esm2.py", ""),
        ("examples/protein/esm1nv/pretrain.py", ""),
    ] {
        assert!(script(&launch("pretrain_gpt.py", "")).plan.is_some());
        stopped(&script(&launch(program, more)), &["program"]);
    }
    stopped(&script(&launch("finetune.py", "--transformer-type huggingface")), &["--transformer-type"]);
    assert!(script(&launch("finetune.py", "--transformer-type megatron")).plan.is_some());
    let opt = "torchrun --nproc_per_node 4 run_clm.py --model_name_or_path facebook/opt-125m --per_device_train_batch_size 16 \
        --block_size 1024 --mem_cap 0\n";
    stopped(&script(opt), &["program"]);
}

/// alibaba/Pai-Megatron-Patch, `examples/llama2/run_finetune_megatron_llama.sh`: written for releases whose parser
/// defaults to 1.
#[test]
fn layers_recomputed_as_one_are_asked_for_or_those_of_the_release() {
    let full = "--recompute-granularity full --recompute-method uniform";
    assert_eq!(asked(&script(&launch("pretrain_gpt.py", full))), [("recompute_num_layers", "1")]);
    let old = script(&launch("pretrain_gpt.py", &format!("{full} --DDP-impl local")));
    assert_eq!((old.plan.is_some(), value(&old, Field::RecomputeNumLayers)), (true, "1".into()));
}

/// `examples/qwen2/run_mcore_qwen2_moe.sh` of the same repository: a degree that only one model size uses.
#[test]
fn degrees_behind_a_script_are_proposed_as_one() {
    let text = format!(
        "SIZE=$1\nA=$2\nB=$3\nC=$4\nEP=$5\nif [ $SIZE = 1B ]; then\n  MOE=\"\"\nelif [ $SIZE = A3B ]; then\n  \
         MOE=\"--num-experts 8 --expert-model-parallel-size $EP\"\nfi\ntorchrun --nproc_per_node 8 pretrain_gpt.py {MODEL} \
         --train-iters $A --tensor-model-parallel-size $B --pipeline-model-parallel-size $C --log-interval $A $MOE\n"
    )
    .replace("--micro-batch-size 1", "--micro-batch-size $A");
    let open = script(&text);
    let line =
        asked(&open).into_iter().find(|(name, _)| *name == "arguments").map(|(_, line)| line.to_owned());
    assert_eq!(line.as_deref(), Some("1B 1 1 1 1"), "{:?}", open.questions);
}

/// AMD-AGI/Primus, `examples/customer_package/run_llama3.1_8b_pretrain_mi355x.sh`: formerly read only from Megatron's
/// words, in fp32.
#[test]
fn an_experiment_of_primus_that_the_environment_names_is_asked_for() {
    let text = "export EXP=\"examples/megatron/configs/MI355X/llama3.1_8B-pretrain.yaml\"\nexport NNODES=1\n\
        bash ./examples/run_slurm_pretrain.sh --micro_batch_size 8 --global_batch_size 256 --seq_length 4096\n";
    let open = script(text);
    let named = open
        .diagnostics
        .iter()
        .any(|said| said.message.contains("llama3.1_8B-pretrain.yaml, which is not here"));
    assert!(open.plan.is_none() && named, "{:?}", open.diagnostics);
    let cli = text.replace(
        "./examples/run_slurm_pretrain.sh",
        "./primus-cli direct -- train pretrain --config \"$EXP\"",
    );
    assert!(script(&cli).diagnostics.iter().any(|said| said.message.contains("which is not here")));
    let experiment = "modules:\n  pre_trainer:\n    framework: megatron\n    config: pre_trainer.yaml\n    model: llama3.1_8B.yaml\n    \
        overrides:\n      seq_length: 8192\n      micro_batch_size: 4\n      recompute_granularity: full\n      recompute_method: block\n      \
        recompute_num_layers: 2\n";
    let source = Source::from_files([("run.sh", text), ("llama3.1_8B-pretrain.yaml", experiment)]);
    let world = [("world_size".to_owned(), "8".to_owned())];
    let both = read(&Request { source: &source, environment: &Environment::default(), overrides: &world });
    let shown = [Field::SeqLength, Field::MicroBatchSize, Field::RecomputeNumLayers, Field::ParamsDtype]
        .map(|field| value(&both, field));
    assert_eq!(shown, ["4096", "8", "2", "bf16"]);
    assert!(both.plan.is_some(), "{:?}", both.diagnostics);
}

/// FlagOpen/FlagScale, `examples/aquila/conf/train/7b.yaml`: formerly Megatron's own 10,880.
#[test]
fn flagscales_inner_width_is_a_multiple() {
    let model = MODEL.replace("--ffn-hidden-size 12288 ", "");
    let width = |more: &str| {
        let text = format!("torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py {model} {more}\n");
        value(&script(&text), Field::FfnHiddenSize)
    };
    assert_eq!(width(""), "10880");
    assert_eq!(width("--multiple-of 256"), "11008");
    assert_eq!(width("--multiple-of 4096 --hidden-dim-multiplier 1.3"), "16384");
    assert_eq!(width("--multiple-of 256 --ffn-hidden-size 512"), "512");
}

/// Ascend/MindSpeed-LLM, `examples/mcore/qwen3_moe/dpo_qwen3_30b_a3b_16K_A3_ptd.sh`; bigscience,
/// `train/tr8b-104B/tr8b-104B-bnb.slurm`: formerly read as next-token training, and as Adam in fp32.
#[test]
fn preferences_and_small_states_of_forks_stop() {
    for name in ["--stage dpo", "--use-bnb-optimizer", "--add-output-layer-bias"] {
        stopped(&script(&launch("pretrain_gpt.py", name)), &[name.split(' ').next().unwrap_or(name)]);
    }
    let sft = script(&launch(
        "posttrain_gpt.py",
        "--stage sft --train-weighted-split-paths-path a --loss-on-targets-only",
    ));
    assert!(sft.plan.is_some_and(|plan| plan.recipe().marks.is_empty()));
}

/// HYGON-AI/Megatron-LM-das, `examples/GLM/run_glm5_300B.sh`: the training is missing, not its network variables.
#[test]
fn a_script_that_starts_another_asks_for_that_one() {
    let text = "source requirements/env.sh\nmpirun -np 8 --hostfile hosts bash -c 'source requirements/env.sh && \
        bash train_glm5_300B.sh localhost 25900 --data_path=/d'\n";
    let open = script(text);
    let first = open.diagnostics.first().map(|said| said.message.clone()).unwrap_or_default();
    assert!(first.contains("train_glm5_300B.sh, which is not here"), "{first}");
}

/// Each depth of a hybrid model has its own layer pattern, or there is none: the number of depths never follows from
/// one layer.
#[test]
fn depths_of_hybrid_models_stop() {
    let hybrid = "--is-hybrid-model --spec megatron.core.models.mamba.mamba_layer_specs mamba_stack_spec --num-layers 6 \
        --hybrid-override-pattern M-M*M- --position-embedding-type rope";
    for depths in ["--mtp-num-layers 1", "--mtp-num-layers 2 --mtp-hybrid-override-pattern *E"] {
        let line = launch("pretrain_mamba.py", &format!("{hybrid} {depths}"));
        stopped(&script(&line), &["--mtp-num-layers"]);
    }
    let none = script(&launch("pretrain_mamba.py", &format!("{hybrid} --mtp-num-layers 0")));
    assert!(none.plan.is_some(), "{:?}", none.diagnostics);
    let dense = script(&launch("pretrain_gpt.py", "--mtp-num-layers 1 --position-embedding-type rope"));
    assert!(dense.plan.is_some(), "{:?}", dense.diagnostics);
}

/// `--hybrid-layer-pattern` (megatron/core/models/hybrid/hybrid_layer_allocation.py): symbols give the number of
/// layers, bars the end of a stage, slashes introduce depths of multi-token prediction; earlier releases had ratios.
#[test]
fn patterns_of_hybrid_models_are_spelt_out() {
    let sizes =
        "--mamba-num-heads 16 --mamba-head-dim 64 --mamba-num-groups 4 --position-embedding-type rope";
    let run = |more: &str| {
        let line = "torchrun --nproc_per_node 8 pretrain_mamba.py --hidden-size 1024 --num-attention-heads 16 --seq-length 4096 \
            --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 64 --bf16 --vocab-size 50000";
        script(&format!("{line} {sizes} {more}\n"))
    };
    let layers = |resolution: &Resolution| {
        let plan = resolution.plan.as_ref().unwrap_or_else(|| panic!("{:?}", resolution.diagnostics));
        (plan.model().num_layers, plan.model().count_layers(|kind| kind.mixer.attends()))
    };
    assert_eq!(layers(&run("--hybrid-layer-pattern M-M*M-")), (6, 1));
    let renamed = launch(
        "pretrain_hybrid.py",
        "--num-layers 6 --hybrid-layer-pattern M-M*M- --spec megatron.core.models.hybrid.hybrid_layer_specs hybrid_stack_spec \
         --position-embedding-type rope",
    );
    assert!(script(&renamed).plan.is_some(), "{:?}", script(&renamed).diagnostics);
    let staged = run("--hybrid-layer-pattern M-M-|M-M*- --pipeline-model-parallel-size 2");
    assert_eq!(layers(&staged), (9, 1));
    let stages = &staged.plan.as_ref().unwrap_or_else(|| panic!("{:?}", staged.diagnostics)).layout().stages;
    let ends: Vec<u64> = stages.stages.iter().map(shardscope_plan::Stage::layers).collect();
    assert_eq!(ends, [4, 5]);
    // `pattern_from_ratios(6, 0.25, 0.25)`: two attention layers, two MLPs.
    assert_eq!(layers(&run("--num-layers 6 --hybrid-attention-ratio 0.25 --hybrid-mlp-ratio 0.25")), (6, 2));
    stopped(&run("--hybrid-layer-pattern M-M*/M-/M-"), &["mtp_num_layers"]);
    stopped(&run("--hybrid-layer-pattern GMG*"), &["hybrid_override_pattern"]);
}

/// `train_batch_size` is micro-batch x accumulation x data-parallel ranks
/// (`deepspeed/runtime/config.py:_batch_assertion`).
#[test]
fn a_batch_stated_whole_says_how_many_gpus_there_are() {
    let run = |more: &str, set: &[(&str, &str)]| {
        let text = format!(
            "pipe_parallel_size: 2\nmodel_parallel_size: 2\nnum_layers: 24\nhidden_size: 1024\nnum_attention_heads: 16\n\
             seq_length: 2048\nmax_position_embeddings: 2048\npos_emb: rotary\npadded_vocab_size: 50304\n\
             train_micro_batch_size_per_gpu: 4\nprecision: fp16\n{more}"
        );
        said("neox.yml", &text, set)
    };
    let whole = "train_batch_size: 64\ngradient_accumulation_steps: 2\n";
    let reported = run(whole, &[]);
    assert!(reported.plan.is_some(), "{:?}", reported.diagnostics);
    assert_eq!([value(&reported, Field::WorldSize), value(&reported, Field::NumMicroBatches)], ["32", "2"]);
    // Other machines contradict it, while previously accumulation was adjusted.
    let other = run(whole, &[("world_size", "64")]);
    assert!(other.plan.is_none());
    assert!(
        other.diagnostics.iter().any(|said| said.message.contains("accumulation 2")),
        "{:?}",
        other.diagnostics
    );
    // If two of the three are given, the machines decide the third.
    let open = run("train_batch_size: 64\n", &[("world_size", "16")]);
    assert_eq!(value(&open, Field::NumMicroBatches), "4");
}

/// NeMo 1: fp32 weights under autocast differ from Megatron's, and selective recomputation has a method there.
#[test]
fn nemo_one_without_o2_holds_fp32_weights() {
    let file = "trainer: {num_nodes: 1, devices: 8, precision: bf16}\nmodel:\n  num_layers: 24\n  hidden_size: 2048\n  \
                num_attention_heads: 16\n  encoder_seq_length: 2048\n  micro_batch_size: 1\n  global_batch_size: 64\n  \
                vocab_size: 50257\n  headscale: false\n  transformer_block_type: pre_ln\n  ffn_dropout: 0.0\n  \
                activations_checkpoint_granularity: selective\n  activations_checkpoint_method: uniform\n  \
                activations_checkpoint_num_layers: 1\n  optim: {name: distributed_fused_adam}\n";
    let with = |value: &str| said("nemo.yaml", &format!("{file}  megatron_amp_O2: {value}\n"), &[]);
    let read = with("true");
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    assert_eq!(value(&read, Field::RecomputeGranularity), "selective");
    assert!(read.setting(Field::RecomputeMethod).is_none_or(|setting| setting.value.written().is_empty()));
    stopped(&with("false"), &["megatron_amp_O2"]);
    assert!(!read.diagnostics.iter().any(|said| said.code == Code::KeysNotRead), "{:?}", read.diagnostics);
}

/// Files of Megatron-LM's functional tests name no program (`tests/functional_tests/test_cases/*/model_config.yaml`).
#[test]
fn files_of_flags_say_what_they_are_of() {
    let read = |top: &str, flags: &str| {
        said(
            "model_config.yaml",
            &format!(
                "{top}MODEL_ARGS:\n  --num-layers: 4\n  --hidden-size: 256\n  --num-attention-heads: 8\n  --seq-length: 512\n  \
                 --micro-batch-size: 1\n  --bf16: true\n  --vocab-size: 1000\n{flags}"
            ),
            &[("world_size", "8")],
        )
    };
    let plain = read("", "");
    assert!(plain.plan.is_some(), "{:?}", plain.diagnostics);
    stopped(&read("MODE: inference\n", ""), &["MODE"]);
    stopped(&read("", "  --img-h: 336\n  --patch-dim: 14\n"), &["--img-h"]);
    stopped(&read("", "  --bert-no-binary-head: true\n"), &["--bert-no-binary-head"]);
}
