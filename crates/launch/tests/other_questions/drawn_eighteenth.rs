//! Misreadings found in the eighteenth draw of public files, and questions that the text already answers.

use super::{said, script, stopped, value};
use shardscope_bash::Environment;
use shardscope_launch::{Request, read};
use shardscope_plan::Field;
use shardscope_source::{Code, Source};

/// okoge-kaz/prime-rl `configs/basic/wordle/sft.toml`: fine-tuning names its machines `num_gpus` and `num_nodes`
/// (`prime_rl/configs/sft.py`), without the word that sets trainers apart from rollouts. One GPU was read.
#[test]
fn fine_tuning_of_prime_rl_has_machines_of_one_kind() {
    let of = |deployment: &str| {
        let text = format!(
            "max_steps = 20\n[deployment]\n{deployment}\n[model]\nname = \"Qwen/Qwen3-1.7B\"\n[data]\nname = \"willcb/V3-wordle\"\n\
             seq_len = 1024\nbatch_size = 64\nmicro_batch_size = 1\n[optim]\nlr = 1e-5\n"
        );
        let read = said("sft.toml", &text, &[]);
        [Field::NumNodes, Field::GpusPerNode, Field::NumMicroBatches].map(|field| value(&read, field))
    };
    assert_eq!(of("num_gpus = 2"), ["1", "2", "32"]);
    assert_eq!(of("type = \"multi_node\"\nnum_nodes = 4"), ["4", "8", "2"]);
}

/// rohitrango/NeMo-RL `sft-llama3.2-1b-1n8g-fsdp2tp1.v2.yaml`: `attn_implementation="flash_attention_2" if
/// enable_seq_packing else None` of its workers. Flash attention over packs was read.
#[test]
fn nemo_rl_without_packs_leaves_attention_to_transformers() {
    let of = |packs: &str| {
        let text = format!(
            "sft: {{max_num_steps: 500}}\npolicy:\n  model_name: meta-llama/Llama-3.2-1B\n  train_global_batch_size: 32\n  \
             train_micro_batch_size: 1\n  max_total_sequence_length: 1024\n  precision: bfloat16\n  \
             dtensor_cfg: {{enabled: true, activation_checkpointing: false, tensor_parallel_size: 1, context_parallel_size: 1}}\n  \
             sequence_packing: {{enabled: {packs}}}\ncluster: {{gpus_per_node: 8, num_nodes: 1}}\n"
        );
        let read = said("sft.yaml", &text, &[]);
        assert!(read.plan.is_some(), "{:?}", read.diagnostics);
        [Field::AttnImplementation, Field::Packing].map(|field| value(&read, field))
    };
    assert_eq!(of("false"), ["sdpa", "false"]);
    assert_eq!(of("true"), ["flash_attention_2", "true"]);
}

/// YerongLi/LLaMA-Factory `train4user.sh`: LLaMA-Factory's first program, of a time when samples were cut at 1,024 tokens
/// and a folder of adapters was called `checkpoint_dir`. 2,048 were read.
#[test]
fn llama_factorys_first_program_cuts_samples_at_1024_tokens() {
    let of = |program: &str, more: &str| {
        let read = script(&format!(
            "python {program} --stage sft --model_name_or_path Qwen/Qwen2.5-7B --do_train --dataset user --template user \
             --finetuning_type lora --lora_target q_proj,v_proj --per_device_train_batch_size 8 \
             --gradient_accumulation_steps 2 {more}\n"
        ));
        // The rank of adapters that train on is their own.
        assert_eq!(read.plan.is_none(), more.contains("checkpoint_dir"), "{:?}", read.diagnostics);
        assert!(!read.diagnostics.iter().any(|said| said.message.contains("checkpoint_dir")));
        value(&read, Field::SeqLength)
    };
    assert_eq!(
        of("src/train_bash.py", "--checkpoint_dir user4/checkpoint-4150 --lora_rank 8 --flash_attn"),
        "1024"
    );
    assert_eq!(of("src/train_bash.py", "--cutoff_len 512 --flash_attn"), "512");
    assert_eq!(of("src/train.py", ""), "2048");
}

/// thinganhado/ms-swift `examples/yaml/sft.sh`: the command's only settings are in the file. A verdict was given from
/// ms-swift's defaults.
#[test]
fn the_file_beneath_a_command_of_ms_swift_is_asked_for() {
    const LINE: &str = "CUDA_VISIBLE_DEVICES=0 swift sft --config sft.yaml\n";
    let answers = [("model", "Qwen/Qwen2.5-7B"), ("seq_length", "2048"), ("num_micro_batches", "16")];
    let alone = said("sft.sh", LINE, &answers);
    assert!(alone.plan.is_none());
    assert!(alone.diagnostics.iter().any(|said| said.code == Code::MissingFile), "{:?}", alone.diagnostics);
    let file = "model: Qwen/Qwen2.5-7B-Instruct\ntuner_type: lora\ntorch_dtype: bfloat16\nlora_rank: 16\nmax_length: 4096\n\
                per_device_train_batch_size: 1\ngradient_accumulation_steps: 16\nlearning_rate: 0.0001\n";
    let source = Source::from_files([("sft.sh", LINE), ("sft.yaml", file)]);
    let both = read(&Request { source: &source, environment: &Environment::default(), overrides: &[] });
    assert!(both.plan.is_some(), "{:?}", both.diagnostics);
    assert_eq!([Field::SeqLength, Field::LoraRank].map(|field| value(&both, field)), ["4096", "16"]);
}

/// yohankhan/att2 `llm-ent/train/sft.py`: weights are quantized if a settings file says so, and no adapters are added. A
/// QLoRA with TRL's default adapters was read.
#[test]
fn weights_quantized_by_a_file_or_without_adapters_stop() {
    let of = |condition: &str, adapters: &str| {
        said(
            "sft.py",
            &format!(
                "cfg = yaml.safe_load(open(path))\nbnb = None\nif {condition}:\n    bnb = BitsAndBytesConfig(load_in_4bit=True)\n\
                 model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-7B', quantization_config=bnb)\n{adapters}\n\
                 args = SFTConfig(max_length=2048, per_device_train_batch_size=1, bf16=True)\n\
                 trainer = SFTTrainer(model=model, args=args, train_dataset=rows)\ntrainer.train()\n"
            ),
            &[("world_size", "1")],
        )
    };
    const ADAPTERS: &str = "model = get_peft_model(model, LoraConfig(r=8, target_modules='all-linear'))";
    stopped(&of("cfg.get('use_qlora', False)", ADAPTERS), &["BitsAndBytesConfig"]);
    stopped(&of("True", ""), &["quantization_config"]);
    let known = of("True", ADAPTERS);
    assert!(known.plan.is_some(), "{:?}", known.diagnostics);
    assert_eq!(value(&known, Field::TrainType), "qlora");
}

/// kapilw25/finetuning_evaluation `01a_SFT_Baseline/Llama3_4bit.ipynb`: a copy of unsloth's notebook for Colab's T4 that
/// ran on an A100 elsewhere, as its outputs say. The T4 was read, and fp16 with it.
#[test]
fn what_a_notebook_printed_goes_before_what_its_template_asked_for() {
    let of = |output: &str| {
        let text = format!(
            "{{\"cells\": [{{\"cell_type\": \"code\", \"source\": [\"from unsloth import FastLanguageModel\\n\", \
             \"model, tokenizer = FastLanguageModel.from_pretrained(model_name='unsloth/llama-3-8b-bnb-4bit', max_seq_length=2048, load_in_4bit=True)\\n\", \
             \"model = FastLanguageModel.get_peft_model(model, r=16, target_modules=['q_proj'], use_gradient_checkpointing='unsloth')\\n\", \
             \"trainer = SFTTrainer(model=model, args=SFTConfig(per_device_train_batch_size=2, gradient_accumulation_steps=4))\\n\", \
             \"trainer.train()\\n\"], \"outputs\": [{{\"output_type\": \"stream\", \"text\": [\"{output}\\n\"]}}]}}], \
             \"metadata\": {{\"accelerator\": \"GPU\", \"colab\": {{\"gpuType\": \"T4\"}}}}, \"nbformat\": 4}}"
        );
        let read = said("a.ipynb", &text, &[]);
        (value(&read, Field::Accelerator), read)
    };
    let (name, read) = of("GPU = NVIDIA A100-SXM4-40GB. Max memory = 39.495 GB.");
    assert_eq!((name.as_str(), value(&read, Field::Autocast).as_str()), ("A100-SXM-40GB", "bf16"));
    assert_eq!(of("Num examples = 10").0, "T4");
    let (_, read) = of("   /|    NVIDIA GeForce RTX 3090. Num GPUs = 1. Max memory: 23.6 GB.");
    stopped(&read, &["accelerator"]);
}

/// richardodliu/OpenRLHF `examples/scripts/train_iterative_dpo.sh`: `--packing_samples` is a switch of these releases
/// (`openrlhf/cli/train_dpo.py`), and `--ref_pretrain` is the policy's model unless stated. Packs were read.
#[test]
fn openrlhf_packs_samples_only_if_told_to() {
    let of = |more: &str| {
        let read = script(&format!(
            "deepspeed --num_gpus 8 --module openrlhf.cli.train_dpo --pretrain Qwen/Qwen2.5-7B --ref_pretrain Qwen/Qwen2.5-7B \
             --max_len 4096 --train_batch_size 128 --micro_train_batch_size 2 --zero_stage 3 --param_dtype bf16 \
             --gradient_checkpointing {more}\n"
        ));
        assert!(read.plan.is_some(), "{:?}", read.diagnostics);
        assert!(!read.diagnostics.iter().any(|said| said.message.contains("ref_pretrain")));
        value(&read, Field::Packing)
    };
    assert_eq!(of(""), "false");
    assert_eq!(of("--packing_samples"), "true");
}

/// A file of DeepSpeed that does not mention ZeRO runs none (`deepspeed/runtime/zero/config.py`); beside a command that
/// names it, the stage was told to be in a file that is not here.
#[test]
fn a_deepspeed_file_without_zero_is_stage_0_for_the_command_that_names_it() {
    const FILE: &str =
        "{\"train_batch_size\": 64, \"train_micro_batch_size_per_gpu\": 4, \"bf16\": {\"enabled\": true}}";
    for line in [
        "deepspeed --num_gpus 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 \
         --micro-batch-size 4 --global-batch-size 64 --vocab-size 50304 --bf16 --deepspeed --deepspeed_config ds.json \
         --no-pipeline-parallel\n",
        "deepspeed --num_gpus 8 train.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 4 \
         --gradient_accumulation_steps 2 --bf16 --model_max_length 2048 --deepspeed ds.json --output_dir x\n",
    ] {
        let source = Source::from_files([("run.sh", line), ("ds.json", FILE)]);
        let read = read(&Request { source: &source, environment: &Environment::default(), overrides: &[] });
        assert!(read.plan.is_some(), "{:?}", read.diagnostics);
        assert_eq!(value(&read, Field::ZeroStage), "0");
    }
}

/// `evaluators` begins like an evaluation's options, but is none of them.
#[test]
fn what_only_begins_like_an_evaluations_option_is_not_passed_over() {
    let of = |key: &str| {
        let text = format!(
            "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: full\ncutoff_len: 1024\n\
             per_device_train_batch_size: 1\n{key}\nbf16: true\n"
        );
        said("sft.yaml", &text, &[("world_size", "8")])
    };
    stopped(&of("evaluators: mine"), &["evaluators"]);
    assert!(of("eval_steps: 100").plan.is_some());
}

/// The accelerator is not stated by a comment, which may be about another run, but it is told beside the one assumed.
#[test]
fn an_accelerator_of_a_comment_is_proposed_where_one_is_assumed() {
    let of = |comment: &str| {
        let read = script(&format!(
            "# {comment}\ntorchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-7B --model_max_length 2048 \
             --per_device_train_batch_size 1 --gradient_accumulation_steps 8 --bf16 --output_dir x\n"
        ));
        assert_eq!(value(&read, Field::Accelerator), "H100-SXM");
        let told = read.diagnostics.into_iter().find(|said| said.code == Code::AcceleratorInComment);
        told.and_then(|said| said.hint)
    };
    let proposed = |name: &str| Some(format!("if that is where it runs, set accelerator to {name}"));
    assert_eq!(of("tested on 8xA100 80GB"), proposed("A100-SXM-80GB"));
    assert_eq!(of("2 nodes of 8 x A100-40GB"), proposed("A100-SXM-40GB"));
    assert_eq!(of("8xH100"), None);
    assert_eq!(of("needs more than 8xA100"), None);
}
