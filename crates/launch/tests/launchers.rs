//! Machines given by the launchers of clouds and clusters.

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::{Field, Origin, RlFramework};
use shardscope_source::{Code, Source};

const OPTIONS: &str = "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --micro-batch-size 1 --bf16 \
    --vocab-size 1000";

fn script(text: &str) -> Resolution {
    let source = Source::new(text);
    read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
}

#[track_caller]
fn machines(text: &str, expected: (&str, &str)) {
    let resolution = script(text);
    let value_of = |field| {
        let setting = resolution.setting(field);
        setting.map_or_else(String::new, |setting| setting.value.written())
    };
    let found = (value_of(Field::NumNodes), value_of(Field::GpusPerNode));
    assert_eq!((found.0.as_str(), found.1.as_str()), expected, "{text}");
}

#[track_caller]
fn asks(text: &str, expected: &[(&str, &str)]) {
    let resolution = script(text);
    assert!(resolution.plan.is_none(), "{text}");
    let asked: Vec<(&str, &str)> = resolution
        .questions
        .iter()
        .map(|asked| (asked.name(), asked.proposal.as_deref().unwrap_or("")))
        .collect();
    assert_eq!(asked, expected, "{text}");
}

#[test]
fn accelerate_as_a_module_is_a_launcher() {
    let line = format!(
        "python -u -m accelerate.commands.launch --num_machines 2 --num_processes 16 pretrain_gpt.py {OPTIONS}"
    );
    machines(&line, ("2", "8"));
}

#[test]
fn ranks_that_the_program_is_given_are_the_world() {
    machines(&format!("mpirun -np 16 python pretrain_gpt.py --world-size 16 {OPTIONS}"), ("2", "8"));
    let layout = "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2";
    let line = format!("python pretrain_gpt.py --world-size $OMPI_COMM_WORLD_SIZE {layout} {OPTIONS}");
    asks(&line, &[("world_size", "8")]);
}

/// If mpirun sets all ranks, a variable for nodes belongs to another way of launching: the nodes are asked for, with a
/// proposal that fits the layout; setting them by hand answers the question.
#[test]
fn nodes_are_asked_for_where_mpirun_sets_all_ranks() {
    let layout = "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2";
    let script = format!(
        "NNODES=${{NNODES:-1}}\nGPUS_PER_NODE=${{GPUS_PER_NODE:-2}}\nif [ \"${{BACKEND:-mpirun}}\" = mpirun ]; then\n\
         APP=\"python pretrain_gpt.py --world-size $OMPI_COMM_WORLD_SIZE {layout} {OPTIONS}\"\nelse\n\
         APP=\"torchrun --nnodes $NNODES --nproc_per_node $GPUS_PER_NODE pretrain_gpt.py {layout} {OPTIONS}\"\nfi\n$APP\n"
    );
    asks(&script, &[("num_nodes", "2")]);
    let source = Source::new(&script);
    let overrides = [("num_nodes".to_owned(), "2".to_owned())];
    let set = read(&Request { source: &source, environment: &Environment::default(), overrides: &overrides });
    assert!(set.plan.is_some() && set.questions.is_empty(), "{:?}", set.questions);
}

#[test]
fn a_layout_larger_than_the_machines_asks_for_as_many_as_it_fills() {
    let layout = "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 2 --global-batch-size 48";
    asks(&format!("torchrun --nproc_per_node 8 pretrain_gpt.py {layout} {OPTIONS}"), &[("num_nodes", "2")]);
}

#[test]
fn what_accelerate_launch_is_given_counts_where_the_program_is_given_nothing() {
    let tuned = "train.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 1 --gradient_accumulation_steps 8 \
        --max_seq_length 2048 --num_train_epochs 1";
    let said = |options: &str| {
        let text = format!("accelerate launch --num_processes 8 --num_machines 1 {options} {tuned}");
        let source = Source::new(&text);
        read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
    };
    let value = |resolution: &Resolution, field| {
        resolution.setting(field).map(|setting| setting.value.written()).unwrap_or_default()
    };
    let bare = said("");
    assert_eq!([value(&bare, Field::Autocast), value(&bare, Field::ZeroStage)], ["none", "0"]);
    let fsdp = said("--mixed_precision bf16 --use_fsdp --fsdp_sharding_strategy SHARD_GRAD_OP");
    let shown = [Field::Bf16, Field::ZeroStage, Field::DataParallelEngine].map(|field| value(&fsdp, field));
    assert_eq!(shown, ["true", "2", "fsdp1"]);
    let zero = said("--mixed_precision=bf16 --use_deepspeed --zero_stage 3 --offload_optimizer_device cpu");
    let shown = [Field::ZeroStage, Field::DataParallelEngine, Field::OffloadOptimizer]
        .map(|field| value(&zero, field));
    assert_eq!(shown, ["3", "deepspeed", "true"]);
    let named = said("--use_deepspeed --deepspeed_config_file configs/stage2.conf");
    let asked = named.questions.iter().find(|question| question.name() == "zero_stage").expect("a question");
    assert_eq!(asked.proposal.as_deref(), Some("2"));
    // The program's own precision takes precedence over that of its launcher.
    let source =
        Source::new(&format!("accelerate launch --num_processes 8 --mixed_precision bf16 {tuned} --fp16"));
    let own = read(&Request { source: &source, environment: &Environment::default(), overrides: &[] });
    assert_eq!(value(&own, Field::Autocast), "fp16");
}

#[test]
fn a_command_behind_two_dashes_runs_on_the_machines_of_the_job() {
    let text = "uv run python mason.py --cluster a --num_nodes 2 --gpus 8 -- source setup.sh \\&\\& accelerate launch \
        --mixed_precision bf16 --use_deepspeed --deepspeed_config_file stage3.conf open_instruct/dpo_tune_cache.py \
        --model_name_or_path Qwen/Qwen2.5-7B --max_seq_length 2048 --per_device_train_batch_size 1";
    let source = Source::new(text);
    let resolution = read(&Request {
        source: &source,
        environment: &Environment::default(),
        overrides: &[("zero_stage".to_owned(), "3".to_owned())],
    });
    let plan = resolution.plan.as_ref().expect("a plan");
    assert_eq!(plan.cluster().gpus(), 16);
    let value = |field| resolution.setting(field).map(|setting| setting.value.written()).unwrap_or_default();
    let shown = [Field::TrainingObjective, Field::ReferenceModel, Field::DataParallelEngine].map(value);
    assert_eq!(shown, ["dpo", "precomputed", "deepspeed"]);
    // Its reinforcement learning is not TRL's, and its learners use only some of the job's GPUs.
    let source = Source::new(
        "python mason.py --num_nodes 1 --gpus 8 -- python open_instruct/grpo_fast.py --model_name_or_path Qwen/Qwen3-1.7B \
        --per_device_train_batch_size 1 --pack_length 4096 --num_learners_per_node 4 --lr_scheduler_type constant --deepspeed_stage 2",
    );
    let grpo = read(&Request { source: &source, environment: &Environment::default(), overrides: &[] });
    let plan = grpo.plan.as_ref().expect("a plan");
    assert_eq!(plan.cluster().gpus(), 4);
    assert_eq!(plan.recipe().rollout.map(|rollout| rollout.framework), Some(RlFramework::OpenInstruct));
}

#[test]
fn a_training_that_only_the_head_node_starts_is_found() {
    let text = |command: &str| {
        format!(
            "NNODES=2\nCURRENT_IP=$(ifconfig eth0 | grep inet)\nif [ \"$MASTER\" = \"$CURRENT_IP\" ]; then\n  ray start --head\n  \
             while true; do\n    count=$(ray status | head -1)\n    if [ \"$count\" -eq \"$NNODES\" ]; then\n      {command}\n      break\n    \
             fi\n  done\nelse\n  ray start --address=$MASTER:6766\nfi\n"
        )
    };
    let found = script(&text(&format!("torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py {OPTIONS}")));
    assert!(found.plan.is_some_and(|plan| plan.cluster().gpus() == 16), "{:?}", found.diagnostics);
    // A command that runs takes precedence over one that might run.
    let both = format!(
        "{}\ntorchrun --nproc_per_node 4 pretrain_gpt.py {OPTIONS}\n",
        text("torchrun --nproc_per_node 8 a.py --bf16")
    );
    machines(&both, ("2", "4"));
    // A settings file that the command names is asked for by name, unless it is given.
    let command = text("python cli/train_grpo.py --config-name grpo_qwen25_7b 2>&1 | tee log");
    let named = script(&command);
    let said = |resolution: &Resolution| {
        resolution
            .diagnostics
            .iter()
            .any(|said| said.message.contains("takes its settings from grpo_qwen25_7b.yaml"))
    };
    assert!(named.plan.is_none() && said(&named), "{:?}", named.diagnostics);
    let source = Source::from_files([("run.sh", command.as_str()), ("grpo_qwen25_7b.yaml", "a: 1\n")]);
    let beside = read(&Request { source: &source, environment: &Environment::default(), overrides: &[] });
    assert!(!said(&beside));
}

#[test]
fn a_trainers_command_names_the_file_that_it_takes_its_settings_from() {
    for (text, file) in [
        ("axolotl train examples/llama-3/lora-1b.yml", "lora-1b.yml"),
        ("accelerate launch -m axolotl.cli.train my.yaml --sequence_len 4096", "my.yaml"),
        ("llamafactory-cli train examples/train_lora/llama3_lora_sft.yaml", "llama3_lora_sft.yaml"),
        (
            "tune run --nproc_per_node 4 lora_finetune_distributed --config mine/8B_lora batch_size=8",
            "8B_lora.yaml",
        ),
        ("python ./deepy.py train.py -d configs pythia/1B.yml local_setup.yml", "1B.yml"),
    ] {
        let said = script(text).diagnostics;
        assert!(
            said.iter().any(|said| said.message.contains(&format!("{file}, which is not here"))),
            "{text}: {said:?}"
        );
    }
    // The text after a factory's name is Python; the model is known from the name.
    for text in
        ["nemo llm pretrain --factory llama3_8b", "nemo llm finetune --factory 'llama3_70b(num_nodes=4)' -y"]
    {
        let read = script(text);
        assert!(
            read.not_modelled.iter().any(|item| item.name == "--factory"),
            "{text}: {:?}",
            read.diagnostics
        );
        assert!(
            read.setting(Field::NumLayers).is_some_and(|setting| setting.origin == Origin::Catalog),
            "{text}"
        );
    }
    assert!(
        script("xtuner train llama3_8b_instruct_qlora_alpaca_e3")
            .not_modelled
            .iter()
            .any(|item| item.name == "program")
    );
}

/// A text that starts no training by itself says what to paste instead.
#[test]
fn what_starts_another_file_asks_for_it_by_name() {
    let value_of = |name: &str, text: &str| {
        let source = Source::from_files([(name, text)]);
        let resolution =
            read(&Request { source: &source, environment: &Environment::default(), overrides: &[] });
        let first = resolution.diagnostics.first().expect("a remark").clone();
        (first.code, first.hint.unwrap_or_default())
    };
    let (code, hint) =
        value_of("launch.sh", "srun --nodes=2 --gpus-per-task=8 ./train/sft_slurm.sh --uid 1\n");
    assert_eq!((code, hint.as_str()), (Code::MissingFile, "paste or drop sft_slurm.sh as well"));
    let (code, hint) = value_of("sft.sh", "NPROC_PER_NODE=2 megatron sft sft.yaml\n");
    assert_eq!((code, hint.as_str()), (Code::MissingFile, "paste or drop sft.yaml as well"));
    let (code, _) = value_of("expand.sh", "python scripts/llama_pro.py --num_expand 8\n");
    assert_eq!(code, Code::NoTraining);
    assert_eq!(value_of("letter.sh", "echo hello\n").0, Code::NoTrainingCommand);
    for (name, text) in [
        ("job.yaml", "integrations: []\ncommand: composer train.py x.yaml\nimage: a\ncompute: {gpus: 8}\n"),
        ("fsdp.json", "{\"transformer_layer_cls_to_wrap\": [\"Qwen2DecoderLayer\"]}"),
        ("environment.yml", "name: a\nchannels: [b]\ndependencies: [c]\n"),
    ] {
        assert_eq!(value_of(name, text).0, Code::NoTraining, "{name}");
    }
}

/// The hint for another trainer's command does not suggest Megatron's flags.
#[test]
fn what_is_missing_is_said_in_the_words_of_the_trainer() {
    let hint = |text: &str| {
        let said = script(text).diagnostics.into_iter().find(|said| said.code == Code::MissingSetting);
        said.and_then(|said| said.hint)
    };
    let megatron = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 --bf16";
    assert_eq!(hint(megatron).as_deref(), Some("add --seq-length, --micro-batch-size"));
    let trainer =
        "torchrun --nproc_per_node 8 sft.py --per_device_train_batch_size 1 --bf16 True --output_dir out";
    let named = format!("{trainer} --model_name_or_path Qwen/Qwen2.5-0.5B");
    assert_eq!(hint(&named).as_deref(), Some("answer the questions"));
    let unnamed = format!("{trainer} --max_seq_length 2048");
    let way = "name the model, paste its config.json, or answer the questions";
    assert_eq!(hint(&unnamed).as_deref(), Some(way));
}

/// Settings that a text leaves out have no position in it, so nothing is underlined.
#[test]
fn what_is_left_out_underlines_nothing() {
    let resolution = script(&format!("srun python pretrain_gpt.py --tensor-model-parallel-size 2 {OPTIONS}"));
    let lacking = resolution.diagnostics.iter().find(|said| said.code == Code::NoWorldSize);
    assert_eq!(lacking.map(|said| said.span), Some(None));
}

/// A value that a setting does not accept is asked for, with the values that it does accept, if a text states it.
#[test]
fn a_value_that_cannot_be_read_is_asked_for() {
    let text = "swift sft --model Qwen/Qwen2.5-1.5B-Instruct --optimizer muonclip --max_length 2048 --torch_dtype bfloat16\n";
    let resolution = script(text);
    let asked = resolution.questions.iter().find(|asked| asked.name() == "optimizer").expect("a question");
    assert!(asked.choices.iter().any(|choice| choice == "muon"), "{:?}", asked.choices);
    let source = Source::new(text);
    let overrides = [("optimizer".to_owned(), "muon".to_owned()), ("world_size".to_owned(), "1".to_owned())];
    let environment = Environment::default();
    let answered = read(&Request { source: &source, environment: &environment, overrides: &overrides });
    assert!(answered.plan.is_some(), "{:?}", answered.diagnostics);
}

/// LLM360/k2-train `scripts/pretrain_65b.sh`: a launcher that takes the command as a single word.
#[test]
fn a_command_in_the_quotes_of_another_launcher_is_read() {
    let asked = script(&format!(
        "bcprun -p 8 --env 'CUDA_DEVICE_MAX_CONNECTIONS=1' -c 'python /mount/main.py \\\n{OPTIONS} --rotary-base 7\n'\n"
    ));
    let value_of = |field| asked.setting(field).map_or_else(String::new, |setting| setting.value.written());
    assert_eq!((value_of(Field::NumLayers), value_of(Field::RotaryBase)), ("2".to_owned(), "7".to_owned()));
    // The value of such an option is not always a command.
    let other = script(&format!("launcher -c 'a b' python pretrain_gpt.py {OPTIONS}"));
    assert_eq!(other.setting(Field::NumLayers).map(|setting| setting.value.written()).as_deref(), Some("2"));
}

/// Liuziyu77/Visual-RFT `src/scripts/7B_base65cate_6k.sh` ends in `--num_generations 4'`: the entire command was
/// dropped because of it.
#[test]
fn a_quote_with_nothing_behind_it_leaves_the_command() {
    for quote in ["'", "\"", "'\n\n", " '  \n"] {
        let line = format!("torchrun --nproc_per_node 8 pretrain_gpt.py {OPTIONS}{quote}");
        machines(&line, ("1", "8"));
        let said = script(&line).diagnostics;
        assert!(said.iter().any(|said| said.code == Code::UnclosedQuote), "{said:?}");
    }
    // If text follows the quote, bash would treat it as part of the word.
    let cut = script(&format!("torchrun --nproc_per_node 8 pretrain_gpt.py {OPTIONS}'\necho a\n"));
    assert!(cut.plan.is_none());
    let closed =
        script(&format!("torchrun --nproc_per_node 8 pretrain_gpt.py {OPTIONS} --tensorboard-dir ''"));
    assert!(closed.diagnostics.iter().all(|said| said.code != Code::UnclosedQuote));
}

/// GAIR-NLP/LIMR `scripts/train_limr.sh`: the file on which a program is tested was taken for its training settings.
#[test]
fn a_file_under_another_option_holds_no_settings() {
    let missing = |option: &str| {
        let said = script(&format!("python train.py {option} conf/a.json\n")).diagnostics;
        said.iter().any(|said| said.code == Code::MissingFile && said.message.contains("a.json"))
    };
    assert!(missing("") && missing("--model_config") && missing("--cfg") && missing("--seed=1"));
    assert!(!missing("--test_path") && !missing("--dataset"));
}

/// foundation-model-stack/fms-hf-tuning `examples/kfto-kueue-sft-trainer.yaml`, shortened: a container without a
/// command, whose image reads a mounted file. Nothing showed what it trains, and it was answered as Megatron's.
#[test]
fn a_container_without_a_command_is_recognised_by_the_file_it_mounts() {
    let job = "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nspec:\n  pytorchReplicaSpecs:\n    Master:\n      replicas: 1\n      \
        template:\n        spec:\n          containers:\n            - image: $SFT_IMAGE\n              resources:\n                \
        limits:\n                  nvidia.com/gpu: 2\n";
    let read = |name: &str, text: &str| {
        let source = Source::from_files([(name, text)]);
        read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
    };
    let alone = read("job.yaml", job);
    assert!(alone.plan.is_none() && alone.not_modelled.iter().any(|item| item.is_called("program")));
    let map = |more: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\ndata:\n  config.json: |\n    {{\"model_name_or_path\": \"Qwen/Qwen2.5-7B\", {more}\n    \
             \"per_device_train_batch_size\": 4, \"gradient_accumulation_steps\": 4, \"max_seq_length\": 2048, \"num_train_epochs\": 1, \n    \
             \"bf16\": true}}\n---\n{job}"
        )
    };
    let mounted = read("job.yaml", &map(""));
    let value_of = |field| mounted.setting(field).map_or_else(String::new, |setting| setting.value.written());
    let shown = [Field::NumLayers, Field::MicroBatchSize, Field::WorldSize, Field::Software].map(value_of);
    assert_eq!(shown, ["28", "4", "2", "hf_transformers"]);
    assert!(mounted.plan.is_some(), "{:?}", mounted.diagnostics);
    let tuning = read("job.yaml", &map("\"training_data_path\": \"a.json\","));
    assert!(
        tuning.not_modelled.iter().any(|item| item.name == "training_data_path"),
        "{:?}",
        tuning.not_modelled
    );
    // A mounted file with other contents says nothing.
    let other = read(
        "job.yaml",
        &map("").replace("model_name_or_path", "a").replace("per_device_train_batch_size", "b"),
    );
    assert!(other.plan.is_none());
}

/// Devices that the environment makes visible: DeepSpeed's launcher starts one process per device; for other launchers
/// their number is proposed.
#[test]
fn devices_that_are_visible_are_the_count_where_nothing_else_says_it() {
    let tuned = "train.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 1 --max_seq_length 2048 --bf16 \
        --num_train_epochs 1";
    machines(&format!("CUDA_VISIBLE_DEVICES=0,1,2,3 deepspeed {tuned}"), ("1", "4"));
    machines(&format!("export CUDA_VISIBLE_DEVICES=0,1\ndeepspeed {tuned}"), ("1", "2"));
    machines(&format!("CUDA_VISIBLE_DEVICES=0,1 deepspeed --num_gpus 8 {tuned}"), ("1", "8"));
    asks(&format!("CUDA_VISIBLE_DEVICES=0,1,2,3 accelerate launch {tuned}"), &[("world_size", "4")]);
    asks(
        &format!("export CUDA_VISIBLE_DEVICES=0,1\ntorchrun --nproc_per_node=$GPUS {tuned}"),
        &[("gpus_per_node", "2")],
    );
}

/// Deep-Agent/R1-V `src/r1-v/local_scripts/train_aria_moe.sh`: a cloud's variables for the nodes and for the GPUs per
/// node, which are a single question, and none once the machines are set.
#[test]
fn a_variable_whose_settings_are_set_by_hand_is_not_asked_for() {
    let text = format!("torchrun --nnodes=$WORKERS --nproc_per_node=$WORKER_GPU pretrain_gpt.py {OPTIONS}");
    asks(&text, &[("world_size", "8")]);
    let length = text.replace("--seq-length 32", "--seq-length $LENGTH");
    asks(&length, &[("LENGTH", "4096"), ("world_size", "8")]);
    let source = Source::new(&length);
    let set = |overrides: &[(&str, &str)]| {
        let overrides: Vec<(String, String)> =
            overrides.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let environment = Environment::default();
        let read = read(&Request { source: &source, environment: &environment, overrides: &overrides });
        let asked: Vec<String> = read.questions.iter().map(|asked| asked.name().to_owned()).collect();
        (read.plan.is_some(), asked.join(" "))
    };
    assert_eq!(set(&[("world_size", "8"), ("seq_length", "32")]), (true, String::new()));
    assert_eq!(set(&[("world_size", "8")]), (false, "LENGTH".to_owned()));
    assert_eq!(set(&[("num_nodes", "2"), ("seq_length", "32")]), (false, "gpus_per_node".to_owned()));
    assert_eq!(set(&[("gpus_per_node", "4"), ("seq_length", "32")]), (false, "num_nodes".to_owned()));
}
