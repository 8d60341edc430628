//! What programs in the tenth draw of public files define themselves: settings, trainers, tokenizers and samples that
//! no framework has.

use super::{launch, said, script, stopped, value};
use shardscope_launch::Asked;
use shardscope_plan::Field;
use shardscope_source::Code;

#[test]
fn an_option_that_nobody_knows_stops_the_verdict() {
    let line = launch("pretrain_gpt.py", "--my-own-attention 3 --wandb-project x --save /a");
    stopped(&script(&line), &["--my-own-attention"]);
    let gone = said("run.sh", &line, &[("without", "my-own-attention")]);
    let marks = gone.plan.as_ref().map(|plan| plan.recipe().marks.clone()).unwrap_or_default();
    assert_eq!((marks.without, marks.not_read), (vec!["--my-own-attention".to_owned()], Vec::new()));
    // Switched off, or, judging by its name, about something other than the training: the verdict is marked.
    for (more, name) in
        [("--my-own-attention false", "--my-own-attention"), ("--my-own-test-files a", "--my-own-test-files")]
    {
        let marked = script(&launch("pretrain_gpt.py", more));
        let marks = marked.plan.as_ref().map(|plan| plan.recipe().marks.clone()).unwrap_or_default();
        assert_eq!(marks.not_read, [name]);
    }
}

/// A user who knows the fork continues without all of its options at once: they are distinguished from known ones that
/// are not modelled.
#[test]
fn options_that_nobody_knows_are_distinguished_from_those_that_are_not_modelled() {
    let read = script(&launch("pretrain_gpt.py", "--my-own-attention 3 --optimizer came --my-own-moe 8"));
    let reported: Vec<(&str, bool)> =
        read.not_modelled.iter().map(|item| (item.name.as_str(), item.is_known)).collect();
    assert_eq!(reported, [("--my-own-attention", false), ("--my-own-moe", false), ("optimizer", true)]);
}

/// Options that, according to the sources of frameworks and forks, change nothing (listed in `options/*.txt`), and
/// settings that train nothing.
#[test]
fn options_whose_source_was_read_are_no_strangers() {
    let unread = |read: &shardscope_launch::Resolution| {
        let names = read.not_modelled.iter().map(|item| item.name.clone());
        (names.collect::<Vec<_>>(), value(read, Field::NotRead))
    };
    // mlcommons/training, retired_benchmarks/gpt3/megatron-lm/run_gpt3.sh.
    let mlperf = "--do-layernorm-bias-weight-decay --no-scaled-init --no-seq-len-plus-one-tokens";
    let read = script(&launch("pretrain_gpt.py", mlperf));
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    assert_eq!(unread(&read), (Vec::new(), String::new()));
    // argilla-io/notus, v1/fine-tune/configs/accelerate/a100_40gb/deepspeed_zero3.yaml.
    let accelerate = "compute_environment: LOCAL_MACHINE\ndeepspeed_config:\n  bf16_enabled: true\n  offload_optimizer_device: cpu\n  \
        offload_param_device: cpu\n  offload_param_pin_memory: true\n  zero_stage: 3\ndistributed_type: DEEPSPEED\n\
        mixed_precision: bf16\nnum_machines: 1\nnum_processes: 8\n";
    assert_eq!(unread(&said("zero3.yaml", accelerate, &[])), (Vec::new(), String::new()));
    // NVIDIA/NeMo-Framework-Launcher, launcher_scripts/conf/training/llama/llama3_1_8b.yaml.
    let nemo = "trainer:\n  num_nodes: 1\n  devices: 8\n  precision: bf16\nmodel:\n  micro_batch_size: 1\n  global_batch_size: 8\n  \
        num_layers: 2\n  hidden_size: 64\n  num_attention_heads: 4\n  encoder_seq_length: 32\n  scale_positional_embedding: true\n";
    assert_eq!(unread(&said("llama.yaml", nemo, &[])), (Vec::new(), String::new()));
}

/// verl's `trainer/config/generation.yaml` was read as NeMo settings with fourteen unknown options.
#[test]
fn settings_of_a_generation_are_no_training() {
    let text = "trainer:\n  nnodes: 1\n  n_gpus_per_node: 8\ndata:\n  path: test.parquet\n  n_samples: 5\n  output_path: out.parquet\n  \
        batch_size: 128\nmodel:\n  path: Qwen2-7B-Instruct\nrollout:\n  name: vllm\n  prompt_length: 1536\n  response_length: 512\n  \
        tensor_model_parallel_size: 1\n";
    let read = said("generation.yaml", text, &[]);
    assert!(read.plan.is_none());
    let reported = read.diagnostics.iter().find(|said| said.code == Code::NoTraining);
    let message = reported.map(|said| said.message.as_str());
    assert_eq!(message, Some("verl generation settings (main_generation), not a training run"));
    assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
    // With an actor it trains.
    let trains = format!("{text}actor_rollout_ref:\n  model:\n    path: Qwen/Qwen3-8B\n");
    let read = said("ppo.yaml", &trains, &[]);
    assert!(!read.diagnostics.iter().any(|said| said.code == Code::NoTraining));
}

/// nanotron-infini's memory, torchtitan's DiLoCo and MaskLLM's masks were answered as plain training, with a mark.
#[test]
fn settings_of_a_fork_stop_whatever_they_are_called() {
    let nanotron = "model:\n  dtype: bfloat16\n  model_config:\n    is_llama_config: true\n    hidden_size: 1024\n    intermediate_size: 4096\n    \
        num_hidden_layers: 12\n    num_attention_heads: 8\n    num_key_value_heads: 8\n    vocab_size: 49152\n    max_position_embeddings: 8192\n    \
        tie_word_embeddings: false\nparallelism:\n  dp: 4\n  tp: 1\n  pp: 1\ntokens:\n  micro_batch_size: 1\n  sequence_length: 8192\n  \
        batch_accumulation_per_replica: 1\n  train_steps: 10\noptimizer:\n  zero_stage: 0\n  accumulate_grad_in_fp32: true\n";
    assert!(said("a.yaml", nanotron, &[]).plan.is_some(), "{:?}", said("a.yaml", nanotron, &[]).diagnostics);
    let infini = format!("{nanotron}infini_attention:\n  segment_length: 1024\n  turn_on_memory: true\n");
    stopped(&said("a.yaml", &infini, &[]), &["infini_attention.segment_length"]);
    let titan = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 1\nseq_len = 8192\n[fault_tolerance]\n";
    let of = |more: &str| said("a.toml", &format!("{titan}{more}"), &[("world_size", "8")]);
    assert!(of("enable = false\n").plan.is_some());
    stopped(&of("enable = true\nsemi_sync_method = \"diloco\"\n"), &["fault_tolerance.enable"]);
    stopped(&script(&launch("pretrain_maskllm.py", "--mask-only --N 2 --M 4")), &["--mask-only"]);
}

/// SAGE's `recipe.hint.main_hint` generates hints with the policy itself, Reinforce-Ada repeats rounds of rollouts
/// until they differ.
#[test]
fn trainers_made_of_verl_are_their_own() {
    let of = |program: &str, more: &str| {
        script(&format!(
            "python3 {program} algorithm.adv_estimator=grpo data.train_batch_size=128 data.max_prompt_length=1024 \
             data.max_response_length=1024 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B \
             actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 \
             actor_rollout_ref.rollout.n=8 actor_rollout_ref.rollout.name=vllm trainer.n_gpus_per_node=8 trainer.nnodes=1 {more}"
        ))
    };
    for program in ["-m verl.trainer.main_ppo", "/w/verl/trainer/main_ppo.py", "-m recipe.dapo.main_dapo"] {
        let read = of(program, "trainer.log_val_generations=10 trainer.resume_mode=auto");
        assert!(read.plan.is_some(), "{program}: {:?} {:?}", read.not_modelled, read.diagnostics);
        assert_eq!(value(&read, Field::NotRead), "");
    }
    for program in ["-m recipe.hint.main_hint", "-m verl.trainer.main_ppo_w_sft", "own/train_verl.py"] {
        stopped(&of(program, ""), &["program"]);
    }
    let more = "algorithm.multiround_adaptive_downsampling=True trainer.method=sage";
    stopped(
        &of("-m verl.trainer.main_ppo", more),
        &["algorithm.multiround_adaptive_downsampling", "trainer.method"],
    );
}

/// torchrun's `-m` comes before its other options, and `--nproc_per_node=8` was taken for the module.
#[test]
fn torchruns_switch_for_a_module_stands_anywhere() {
    let of = |start: &str| {
        script(&format!(
            "torchrun {start} verl.trainer.fsdp_sft_trainer data.max_length=2048 data.micro_batch_size_per_gpu=1 \
             data.train_batch_size=256 model.partial_pretrain=Qwen/Qwen2.5-7B optim.lr=1e-5"
        ))
    };
    for start in ["--nproc_per_node=8 -m", "-m --nproc_per_node=8", "-m --nnodes 1 --nproc_per_node 8"] {
        let read = of(start);
        assert!(read.plan.is_some(), "{start}: {:?}", read.diagnostics);
        assert_eq!(value(&read, Field::WorldSize), "8", "{start}");
    }
}

/// Viking's tokenizer of 131,072 tokens was read as GPT-2's.
#[test]
fn gpt2s_tokenizer_reads_words_of_anybodys_own() {
    let shape = "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 11008 --num-attention-heads 32 --seq-length 4096 \
        --micro-batch-size 1 --global-batch-size 64 --bf16 --swiglu --tokenizer-type GPT2BPETokenizer";
    let of = |more: &str| script(&format!("torchrun --nproc_per_node 8 pretrain_gpt.py {shape} {more}\n"));
    for (file, proposed) in
        [("/t/nordic_tokenizer_131072/vocab.json", "131072"), ("/t/own/vocab.json", "50257")]
    {
        let open = of(&format!("--vocab-file {file}"));
        assert!(open.plan.is_none(), "{file}");
        let asked = open.questions.iter().find(|question| question.asks == Asked::Setting(Field::VocabSize));
        assert_eq!(asked.and_then(|question| question.proposal.as_deref()), Some(proposed));
    }
    for file in ["", "--vocab-file /data/gpt2-vocab.json"] {
        assert_eq!(value(&of(file), Field::VocabSize), "50257");
    }
}

/// `megatron_patch/tokenizer/__init__.py`: four tokenizers have their own number of rows, and Qwen 2's the stated
/// number in addition.
#[test]
fn pais_tokenizers_have_the_rows_it_gives_them() {
    let shape = "--num-layers 22 --hidden-size 2176 --num-attention-heads 16 --seq-length 4096 --max-position-embeddings 4096 \
        --micro-batch-size 1 --global-batch-size 8 --bf16";
    let of = |more: &str| {
        script(&format!(
            "torchrun --nproc_per_node 8 pretrain_megatron.py {shape} --tensor-model-parallel-size 8 {more}\n"
        ))
    };
    for (tokenizer, rows) in [
        ("BloomTokenizerFromHF --extra-vocab-size 0", "250880"),
        ("ChatGLMTokenizerFromHF", "130528"),
        ("GLM10BZHTokenizerFromHF", "50048"),
        ("IcetkGLM130BTokenizer", "150528"),
        ("Qwen2Tokenizer --extra-vocab-size 293", "151936"),
        ("Qwen3Tokenizer --extra-vocab-size 421", "152064"),
    ] {
        let read = of(&format!("--patch-tokenizer-type {tokenizer}"));
        assert_eq!(value(&read, Field::PaddedVocabSize), rows, "{tokenizer}");
        assert!(read.plan.is_some(), "{tokenizer}: {:?}", read.diagnostics);
    }
    stopped(&of("--patch-tokenizer-type FalconTokenizer --extra-vocab-size 64"), &["--extra-vocab-size"]);
    let padded = |length: u64| {
        of(&format!("--patch-tokenizer-type ChatGLMTokenizerFromHF --max-padding-length {length}"))
    };
    assert!(padded(4096).plan.is_some());
    stopped(&padded(2048), &["--max-padding-length"]);
}

/// A custom generation function, and MindSpeed's products in pieces, only marked the verdict.
#[test]
fn generation_of_ones_own_and_products_in_pieces_stop() {
    stopped(&script(&launch("pretrain_gpt.py", "--use-ascend-coc")), &["--use-ascend-coc"]);
    for flag in ["--use-ascend-mc2", "--use-mc2"] {
        let read = script(&launch("pretrain_gpt.py", flag));
        assert_eq!(value(&read, Field::TpCommOverlap), "true", "{flag}");
    }
    let read = script(&launch("pretrain_gpt.py", "--coc-fused-kernel --coc-parallel-num 2"));
    assert_eq!(value(&read, Field::NotRead), "");
    let of = |more: &str| {
        script(&launch("train.py", &format!("--rollout-batch-size 8 --n-samples-per-prompt 8 {more}")))
    };
    stopped(
        &of("--custom-generate-function-path generate_with_search.generate"),
        &["--custom-generate-function-path"],
    );
    stopped(&of("--rollout-function-path own.rollout"), &["--rollout-function-path"]);
    let ours = of("--rollout-function-path slime.rollout.sglang_rollout.generate_rollout");
    assert!(
        !ours.not_modelled.iter().any(|item| item.is_called("rollout-function-path")),
        "{:?}",
        ours.not_modelled
    );
}

/// A snapshot in a hub cache was read as a model without a name.
#[test]
fn a_hubs_cache_names_the_model() {
    let of = |path: &str| {
        script(&format!(
            "torchrun --nproc_per_node 8 train.py --model_name_or_path {path} --bf16 True --model_max_length 2048 \
             --per_device_train_batch_size 2 --gradient_accumulation_steps 16 --num_train_epochs 1"
        ))
    };
    let cached =
        of("/cache/models--Qwen--Qwen2.5-14B-Instruct/snapshots/cf98f3b3bbb457ad9e2bb7baf9a0125b6b88caa8");
    assert_eq!(value(&cached, Field::NumLayers), "48", "{:?}", cached.diagnostics);
    assert_eq!(value(&of("/cache/models--own--mine/snapshots/cf98f3b3"), Field::NumLayers), "");
}

/// Zyphra's fork of the legacy models has top-1 experts together with Transformer Engine, which were read as Megatron
/// core's.
#[test]
fn experts_of_the_legacy_models_beside_transformer_engine_stop() {
    let experts = "--num-experts 16 --expert-model-parallel-size 8 --use-flash-attn --transformer-impl transformer_engine";
    stopped(&script(&launch("pretrain_gpt.py", experts)), &["--num-experts"]);
    for more in ["--use-mcore-models", "--moe-router-topk 2"] {
        let read = script(&launch("pretrain_gpt.py", &format!("{experts} {more}")));
        assert!(read.plan.is_some(), "{more}: {:?} {:?}", read.not_modelled, read.diagnostics);
    }
}

/// A program that passes its own dictionary to `from_pretrained` states in it what it loads and how.
#[test]
fn keywords_that_a_program_makes_for_its_model_stop() {
    let of = |keywords: &str| {
        let text = format!(
            "from transformers import AutoModelForCausalLM, TrainingArguments, Trainer\nkeywords = make()\n\
             model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-7B', {keywords})\n\
             args = TrainingArguments(per_device_train_batch_size=1, bf16=True)\ntrainer = Trainer(model=model, args=args)\ntrainer.train()\n"
        );
        said("train.py", &text, &[("world_size", "1"), ("seq_length", "2048")])
    };
    assert!(of("torch_dtype='bfloat16'").not_modelled.is_empty());
    stopped(&of("**keywords"), &["from_pretrained"]);
}

/// `torchtune/models/llama2/_component_builders.py`: sizes among the builder's arguments; formerly a model called
/// "llama2" was asked for.
#[test]
fn torchtunes_builders_take_their_sizes() {
    let of = |component: &str, more: &str| {
        let text = format!(
            "model:\n  _component_: torchtune.models.llama2.{component}\n  vocab_size: 102400\n  num_layers: 30\n  num_heads: 32\n  \
             num_kv_heads: 32\n  embed_dim: 4096\n  max_seq_len: 4096\n  attn_dropout: 0.0\n  norm_eps: 1e-5\n{more}tokenizer:\n  \
             _component_: own.Tokenizer\n  max_seq_len: 4096\nbatch_size: 2\noptimizer:\n  _component_: torch.optim.AdamW\n  fused: True\n\
             loss:\n  _component_: torchtune.modules.loss.CEWithChunkedOutputLoss\ngradient_accumulation_steps: 16\ndtype: bf16\n\
             enable_activation_checkpointing: True\ncompile: False\n"
        );
        said("a.yaml", &text, &[("world_size", "1")])
    };
    let read = of("llama2", "");
    let plan = read.plan.as_ref().unwrap_or_else(|| panic!("{:?} {:?}", read.not_modelled, read.diagnostics));
    assert_eq!(value(&read, Field::FfnHiddenSize), "11008");
    assert_eq!((plan.model().num_layers, value(&read, Field::NotRead).as_str()), (30, ""));
    let adapted =
        of("lora_llama2", "  lora_attn_modules: [q_proj, v_proj]\n  lora_rank: 8\n  lora_alpha: 16\n");
    assert!(
        adapted.plan.is_some() && value(&adapted, Field::TrainType) == "lora",
        "{:?}",
        adapted.diagnostics
    );
}

/// The frameworks' own options are known, each with what it changes (`options/*.txt`); a fork's remain unknown.
#[test]
fn options_of_the_frameworks_own_are_known() {
    let swift = |more: &str| {
        script(&format!(
            "NPROC_PER_NODE=4 swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora --torch_dtype bfloat16 --max_length 2048 \
             --per_device_train_batch_size 1 --gradient_accumulation_steps 4 --lora_rank 16 --deepspeed zero2 --save_strategy no {more}\n"
        ))
    };
    for more in [
        "--init_weights olora",
        "--lazy_tokenize true --packing_num_proc 4",
        "--vllm_use_async_engine true --stream true",
    ] {
        let read = swift(more);
        assert!(read.plan.is_some(), "{more}: {:?}", read.not_modelled);
        assert_eq!(value(&read, Field::NotRead), "", "{more}");
    }
    stopped(&swift("--init_weights lora-ga"), &["init_weights"]);
    stopped(&swift("--use_logits_to_keep true"), &["use_logits_to_keep"]);
    stopped(&swift("--my_logits_to_keep true"), &["my_logits_to_keep"]);
    // Packs may be longer than the longest sample (`swift/arguments/base_args/base_args.py`).
    let packed = swift("--packing true --packing_length 16384 --attn_impl flash_attn");
    assert_eq!([Field::SeqLength, Field::Packing].map(|field| value(&packed, field)), ["16384", "true"]);
    assert_eq!(value(&swift("--packing_length 16384"), Field::SeqLength), "2048");
    // 4-bit constants are quantized again unless the text says otherwise.
    let four = |more: &str| {
        value(&swift(&format!("--quant_method bnb --quant_bits 4 {more}")), Field::DoubleQuantization)
    };
    assert_eq!(
        (four(""), four("--bnb_4bit_use_double_quant false")),
        ("true".to_owned(), "false".to_owned())
    );
    let axolotl = "base_model: Qwen/Qwen2.5-7B\nadapter: qlora\nload_in_4bit: true\nsequence_len: 2048\nmicro_batch_size: 1\n\
        gradient_accumulation_steps: 4\nlora_r: 8\nlora_target_linear: true\nbf16: true\n";
    let double = |more: &str| {
        value(&said("a.yaml", &format!("{axolotl}{more}"), &[("world_size", "1")]), Field::DoubleQuantization)
    };
    assert_eq!(double(""), "true");
    assert_eq!(double("bnb_config_kwargs:\n  bnb_4bit_use_double_quant: false\n"), "false");
    // torchtune's `fsdp_reshard_after_forward` (`recipes/full_finetune_distributed.py`).
    let tune = "model:\n  _component_: torchtune.models.llama2.llama2_7b\ntokenizer:\n  _component_: torchtune.models.llama2.llama2_tokenizer\n  \
        max_seq_len: 2048\nbatch_size: 2\ngradient_accumulation_steps: 1\noptimizer:\n  _component_: torch.optim.AdamW\nshuffle: true\ndtype: bf16\n";
    let stage = |more: &str| {
        value(&said("t.yaml", &format!("{tune}{more}"), &[("world_size", "8")]), Field::ZeroStage)
    };
    assert_eq!((stage(""), stage("fsdp_reshard_after_forward: false\n")), ("3".to_owned(), "2".to_owned()));
    // A teacher is held next to the student, whatever else the file says.
    let trl = "model_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 1\nmax_length: 2048\nlearning_rate: 1e-5\n";
    let trl =
        |more: &str| said("a.yaml", &format!("{trl}{more}"), &[("zero_stage", "0"), ("world_size", "8")]);
    assert!(trl("shuffle_dataset: true\nhub_revision: main\n").plan.is_some());
    stopped(&trl("teacher_model_name_or_path: Qwen/Qwen2.5-32B\n"), &["teacher_model_name_or_path"]);
}

/// Options of older versions, and options whose effect is specific to one framework.
#[test]
fn a_word_does_in_each_framework_what_that_does_with_it() {
    // LLaMA-Factory turns `resize_vocab` on for new tokens, and trains the embeddings
    // (`model/patcher.py:patch_tokenizer`).
    let factory = "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: lora\ncutoff_len: 2048\nlora_rank: 8\nbf16: true\n\
        per_device_train_batch_size: 1\ngradient_accumulation_steps: 8\nadd_special_tokens: <a>,<b>\n";
    stopped(&said("a.yaml", factory, &[("world_size", "8")]), &["add_special_tokens"]);
    let axolotl = "base_model: Qwen/Qwen2.5-7B\nsequence_len: 2048\nmicro_batch_size: 1\ngradient_accumulation_steps: 4\nbf16: true\n\
        add_special_tokens: true\n";
    assert!(said("a.yaml", axolotl, &[("world_size", "8")]).plan.is_some());
    let line = |more: &str| {
        script(&format!(
            "torchrun --nproc_per_node=8 train.py --model_name_or_path Qwen/Qwen2.5-7B --bf16 True --model_max_length 2048 \
             --per_device_train_batch_size 1 --evaluation_strategy no --fp16_backend auto --ddp_find_unused_parameters False {more}"
        ))
    };
    assert_eq!(value(&line("--optim adamw_torch --adafactor True"), Field::Optimizer), "adafactor");
    assert_eq!(value(&line("--optim sgd --adafactor False"), Field::Optimizer), "sgd");
}

/// DimensionSTP/llm-fine-tune-hf `configs/sft.yaml` was read as a model configuration without sizes.
#[test]
fn a_key_that_is_called_model_type_makes_no_model() {
    let text = "modality: text\nfine_tune_method: sft\nmodel_type: Qwen3.5-9B\nbatch_size: 16\n";
    let read = said("sft.yaml", text, &[]);
    assert!(read.diagnostics.iter().any(|said| said.code == Code::UnknownSettings), "{:?}", read.diagnostics);
    assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
    // A transformers type has its own sizes.
    assert_eq!(value(&said("config.yaml", "model_type: llama\n", &[]), Field::NumLayers), "32");
}
