//! Commands that a Python program or a notebook starts, and jobs whose script is in another file.

use shardscope_bash::Environment;
use shardscope_launch::Asked;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::Field;
use shardscope_source::{Code, Severity, Source};

fn resolved(files: &[(&str, &str)]) -> Resolution {
    let source = Source::from_files(files.iter().copied());
    read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
}

#[track_caller]
fn holds(read: &Resolution, wanted: &[(Field, &str)]) {
    for (field, value) in wanted {
        let found = read.setting(*field).map(|setting| setting.value.written());
        assert_eq!(found.as_deref(), Some(*value), "{}", field.name());
    }
}

fn asked(read: &Resolution) -> Vec<&str> {
    read.questions.iter().map(|question| question.name()).collect()
}

const NOTEBOOK: &str = r#"{"cells": [
    {"cell_type": "code", "source": ["!pip install -q transformers\n", "%env CUDA_VISIBLE_DEVICES=0,1"]},
    {"cell_type": "code", "source": ["!accelerate launch --num_processes 2 run_sft.py \\\n",
        "  --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 2 --gradient_accumulation_steps 4 \\\n",
        "  --bf16 True --max_seq_length 2048 --use_peft --lora_r 16 --output_dir {OUT}"]}], "nbformat": 4}"#;

#[test]
fn a_command_in_a_notebooks_cell_is_read_as_a_scripts() {
    let read = resolved(&[("train.ipynb", NOTEBOOK)]);
    holds(
        &read,
        &[
            (Field::HiddenSize, "3584"),
            (Field::WorldSize, "2"),
            (Field::MicroBatchSize, "2"),
            (Field::GlobalBatchSize, "16"),
            (Field::LoraRank, "16"),
            (Field::SeqLength, "2048"),
        ],
    );
    assert!(read.plan.is_some(), "{:?} {:?}", read.diagnostics, read.not_modelled);
}

#[test]
fn a_notebook_of_commands_has_the_gpu_of_its_runtime() {
    let colab = NOTEBOOK
        .replace("\"nbformat\": 4", "\"metadata\": {\"colab\": {\"gpuType\": \"L4\"}}, \"nbformat\": 4");
    holds(&resolved(&[("train.ipynb", &colab)]), &[(Field::Accelerator, "L4"), (Field::LoraRank, "16")]);
}

/// The warnings about several trainings next to the verdict.
fn several(read: &Resolution) -> Vec<&str> {
    let said = read.diagnostics.iter().filter(|said| said.code == Code::SeveralCommands);
    said.filter(|said| said.severity == Severity::Warning).map(|said| said.message.as_str()).collect()
}

/// shibing624/MedicalGPT `notebooks/run_training_dpo_pipeline.ipynb` trains three times, each on the result of the
/// previous one.
const PIPELINE: &str = r#"{"cells": [
    {"cell_type": "code", "source": ["!python training/pretraining.py --model_name_or_path Qwen/Qwen2.5-0.5B \\\n",
        "  --per_device_train_batch_size 3 --gradient_accumulation_steps 1 --use_peft True --bf16 --block_size 512"]},
    {"cell_type": "code", "source": ["!python tools/merge_peft_adapter.py --base_model Qwen/Qwen2.5-0.5B --output_dir pt"]},
    {"cell_type": "code", "source": ["!python training/supervised_finetuning.py --model_name_or_path pt \\\n",
        "  --per_device_train_batch_size 4 --gradient_accumulation_steps 1 --use_peft True --bf16 --model_max_length 512"]},
    {"cell_type": "code", "source": ["!python training/dpo_training.py --model_name_or_path ./sft \\\n",
        "  --per_device_train_batch_size 3 --use_peft True --bf16 True --max_steps 100"]}], "nbformat": 4}"#;

#[test]
fn of_several_trainings_it_is_said_which_one_is_answered() {
    let read = resolved(&[("pipeline.ipynb", PIPELINE)]);
    // The command that states the most.
    holds(&read, &[(Field::MicroBatchSize, "4"), (Field::SeqLength, "512")]);
    assert_eq!(
        several(&read),
        ["3 commands start a training; the estimate is for the second (training/supervised_finetuning.py)"]
    );
    // A single training, whatever else is started.
    assert_eq!(several(&resolved(&[("train.ipynb", NOTEBOOK)])), [""; 0]);
}

#[test]
fn commands_count_in_the_order_in_which_they_stand() {
    let options = "--model_name_or_path Qwen/Qwen2.5-7B --max_seq_length 2048 --bf16 True --per_device_train_batch_size";
    // `os.system` comes before `subprocess.run`, although the latter is searched first.
    let program = format!(
        "import os, subprocess\nos.system('accelerate launch --num_processes 2 train_pt.py {options} 2')\n\
         subprocess.run('accelerate launch --num_processes 2 sft.py {options} 4', shell=True)\n"
    );
    let read = resolved(&[("all.py", &program)]);
    holds(&read, &[(Field::MicroBatchSize, "2")]);
    assert_eq!(several(&read), ["2 commands start a training; the estimate is for the first (train_pt.py)"]);
    // Commands without settings: the last one is read.
    let bare = "import subprocess\nsubprocess.run(['accelerate', 'launch', '-m', 'axolotl.cli.train', 'a.yml'])\n\
        subprocess.run(['accelerate', 'launch', '-m', 'axolotl.cli.train', 'b.yml'])\n";
    assert_eq!(
        several(&resolved(&[("all.py", bare)])),
        ["2 commands start a training; the estimate is for the last (axolotl.cli.train)"]
    );
    // A data check after a training is not a training.
    let checked = "import subprocess\nsubprocess.run(['torchrun', '-m', 'train.main', 'a.yaml'])\n\
        subprocess.run(['torchrun', 'preprocess_data.py', 'a.yaml'])\n";
    let read = resolved(&[("all.py", checked)]);
    assert_eq!(several(&read), [""; 0]);
    let mistral =
        "python -m utils.validate_data --train_yaml 7B.yaml\ntorchrun --nproc-per-node 1 -m train 7B.yaml\n";
    let read = resolved(&[("run.sh", mistral)]);
    assert!(read.diagnostics.iter().all(|said| said.code != Code::NoTraining), "{:?}", read.diagnostics);
    // Nor is a reward server next to it (lmm-r1's train_fre_text.sh).
    let beside =
        "python -m openrlhf.models.remote_rm.math_verifier\ntorchrun -m openrlhf.cli.train_ppo_ray\n";
    assert_eq!(several(&resolved(&[("run.sh", beside)])), [""; 0]);
    assert!(read.diagnostics.iter().all(|said| said.code != Code::NoTraining), "{:?}", read.diagnostics);
    // A command that is built at run time is not read, and this is reported.
    let more = format!("{program}\ncmd = ['python']\ncmd += rest\nsubprocess.run(cmd)\n");
    let reported =
        "1 more of the commands that this program starts are put together as it runs, and are not read";
    let read = resolved(&[("all.py", &more)]);
    assert!(read.diagnostics.iter().any(|said| said.message == reported), "{:?}", read.diagnostics);
}

#[test]
fn an_evaluation_behind_a_training_is_none() {
    let script = "torchrun --nproc_per_node 2 train.py --model_name_or_path Qwen/Qwen2.5-7B --bf16 True \
        --max_seq_length 2048 --per_device_train_batch_size 2\n\
        python evaluate.py --model_name_or_path out --max_seq_length 2048\n";
    assert_eq!(several(&resolved(&[("run.sh", script)])), [""; 0]);
    let twice = format!(
        "{script}torchrun --nproc_per_node 2 train.py --model_name_or_path out --bf16 True --max_length 512\n"
    );
    assert_eq!(
        several(&resolved(&[("run.sh", &twice)])),
        ["2 commands start a training; the estimate is for the first (train.py)"]
    );
}

/// Supervised fine-tuning and preferences in one program, as in notebooks.
const STAGES: &str = "from trl import SFTTrainer, SFTConfig, DPOTrainer, DPOConfig\n\
    model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-7B')\n\
    tuner = SFTTrainer(model=model, args=SFTConfig(per_device_train_batch_size=8, gradient_accumulation_steps=16, max_length=512))\n\
    tuner_trainer = tuner\ntuner_trainer.train()\n\
    trainer = DPOTrainer(model=model, args=DPOConfig(per_device_train_batch_size=1, max_length=2048, bf16=True))\n\
    trainer.train()\n";

#[test]
fn of_trainings_behind_each_other_in_a_program_the_last_has_its_own_settings() {
    let read = resolved(&[("stages.py", STAGES)]);
    holds(
        &read,
        &[
            (Field::MicroBatchSize, "1"),
            (Field::NumMicroBatches, "1"),
            (Field::SeqLength, "2048"),
            (Field::TrainingObjective, "dpo"),
        ],
    );
    assert_eq!(several(&read), ["the program has 2 trainings; the estimate is for the last"]);
    assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
    // In the opposite order, none of the first stage's preferences remain.
    let (tunes, prefers) = (STAGES.find("tuner =").expect("SFT"), STAGES.find("trainer = DPO").expect("DPO"));
    let turned = format!("{}{}{}", &STAGES[..tunes], &STAGES[prefers..], &STAGES[tunes..prefers]);
    let read = resolved(&[("stages.py", &turned)]);
    holds(&read, &[(Field::MicroBatchSize, "8"), (Field::NumMicroBatches, "16"), (Field::SeqLength, "512")]);
    assert_eq!(
        read.setting(Field::TrainingObjective).map(|found| found.value.written()).as_deref(),
        Some("")
    );
    // A training that is resumed, or evaluated afterwards, is one training.
    let once = STAGES.replace("trainer = DPOTrainer", "other = Evaluated").replace("DPOConfig", "Other");
    assert_eq!(several(&resolved(&[("stages.py", &once)])), [""; 0]);
    // Adapters that were passed to the first trainer may be merged when the second trains; those of the model itself
    // remain.
    let adapted = STAGES.replace("max_length=512)", "max_length=512), peft_config=LoraConfig(r=8)");
    let stops: Vec<String> =
        resolved(&[("stages.py", &adapted)]).not_modelled.iter().map(|item| item.message.clone()).collect();
    assert_eq!(stops, ["adapters of an earlier training in the program"]);
    let kept = STAGES.replace("tuner =", "model = get_peft_model(model, LoraConfig(r=8))\ntuner =");
    let kept = resolved(&[("stages.py", &kept)]);
    holds(&kept, &[(Field::LoraRank, "8"), (Field::TrainType, "lora")]);
    assert!(kept.not_modelled.is_empty(), "{:?}", kept.not_modelled);
    // A model loaded for the second stage may be a different one.
    let loads = STAGES.replace(
        "trainer = DPO",
        "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-0.5B')\ntrainer = DPO",
    );
    let stops: Vec<String> =
        resolved(&[("stages.py", &loads)]).not_modelled.iter().map(|item| item.message.clone()).collect();
    assert_eq!(stops, ["a model loaded for a second training"]);
}

const MODAL: &str = r#"
import subprocess

import modal

app = modal.App("tune")


@app.function(gpu="A100-80GB:4", timeout=3600)
def train():
    subprocess.run(["accelerate", "launch", "--num_processes", "4", "-m", "axolotl.cli.train", "config.yml"], check=True)
"#;

const CONFIG: &str = "base_model: NousResearch/Meta-Llama-3.1-8B\nadapter: lora\nlora_r: 32\nlora_alpha: 16\n\
    lora_target_linear: true\nsequence_len: 4096\nsample_packing: true\nmicro_batch_size: 2\n\
    gradient_accumulation_steps: 4\noptimizer: adamw_torch\nbf16: true\ngradient_checkpointing: true\nflash_attention: true\n";

#[test]
fn a_program_on_modal_has_its_gpus_and_asks_for_the_file_of_its_command() {
    let alone = resolved(&[("tune.py", MODAL)]);
    assert!(alone.plan.is_none());
    let missing: Vec<&str> = alone
        .diagnostics
        .iter()
        .filter(|said| said.code == Code::MissingFile)
        .map(|said| said.message.as_str())
        .collect();
    assert!(missing.iter().any(|message| message.contains("config.yml")), "{missing:?}");
    holds(&alone, &[(Field::WorldSize, "4"), (Field::Accelerator, "A100-SXM-80GB")]);

    let both = resolved(&[("tune.py", MODAL), ("config.yml", CONFIG)]);
    holds(&both, &[(Field::WorldSize, "4"), (Field::LoraRank, "32"), (Field::MicroBatchSize, "2")]);
    assert!(both.plan.is_some(), "{:?} {:?}", both.diagnostics, both.not_modelled);
}

#[test]
fn an_accelerator_of_modals_that_is_not_known_stops_the_verdict() {
    let other = MODAL.replace("A100-80GB", "Quantum9");
    let read = resolved(&[("tune.py", &other), ("config.yml", CONFIG)]);
    let stops: Vec<&str> = read.not_modelled.iter().map(|item| item.value.as_str()).collect();
    assert!(read.plan.is_none());
    assert_eq!(stops, ["Quantum9"]);
}

#[test]
fn a_loop_of_its_own_over_a_named_model_stops_with_a_way_on() {
    let program = "from transformers import LlamaForCausalLM\nmodel = LlamaForCausalLM.from_pretrained(\"meta-llama/Llama-2-7b-hf\")\n\
        for batch in loader:\n    loss = model(**batch).loss\n    loss.backward()\n    opt.step()\n";
    let read = resolved(&[("train.py", program)]);
    assert!(read.plan.is_none());
    let stops: Vec<&str> = read.not_modelled.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(stops, ["program"]);
    holds(&read, &[(Field::NumLayers, "32"), (Field::HiddenSize, "4096")]);
    assert_eq!(asked(&read), ["seq_length", "world_size"]);
}

#[test]
fn a_job_whose_script_is_elsewhere_has_the_gpus_of_its_scheduler() {
    let job = "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --gpus-per-node=4\nsrun bash run_inner.sh\n";
    let alone = resolved(&[("job.sh", job)]);
    holds(&alone, &[(Field::NumNodes, "4"), (Field::GpusPerNode, "4")]);
    assert!(!asked(&alone).contains(&"world_size"), "{:?}", asked(&alone));
    assert!(
        alone
            .diagnostics
            .iter()
            .any(|said| said.code == Code::MissingFile && said.message.contains("run_inner.sh"))
    );
    assert!(!alone.diagnostics.iter().any(|said| said.code == Code::NoWorldSize));
}

#[test]
fn a_note_that_names_a_model_is_asked_about_it() {
    let note = resolved(&[("", "Qwen/Qwen3-32B lora 8xH100 seq 8192")]);
    let proposed: Vec<_> = note
        .questions
        .iter()
        .filter(|question| question.asks == Asked::Setting(Field::Model))
        .map(|question| question.proposal.as_deref())
        .collect();
    assert_eq!(proposed, [Some("Qwen/Qwen3-32B")]);
    // A command that serves a model is not asked which one it trains.
    let serves = resolved(&[("", "vllm serve Qwen/Qwen3-32B\n")]);
    let model = serves.questions.iter().find(|question| question.asks == Asked::Setting(Field::Model));
    assert_eq!(model.and_then(|question| question.proposal.as_deref()), None);
}

/// A program with its own trainer that also starts a training by a command has two, of which one is read.
#[test]
fn a_trainer_beside_a_command_that_trains_is_reported() {
    let trainer = "from transformers import AutoModelForCausalLM\nfrom trl import SFTConfig, SFTTrainer\n\
        model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-7B')\n\
        args = SFTConfig(per_device_train_batch_size=2, max_length=1024, bf16=True)\n\
        trainer = SFTTrainer(model, args=args)\ntrainer.train()\nimport subprocess\n";
    let started = "subprocess.run('accelerate launch --num_processes 2 dpo.py --model_name_or_path Qwen/Qwen2.5-0.5B \
        --per_device_train_batch_size 4 --max_length 512 --bf16 true', shell=True)\n";
    let reported = |read: &Resolution| {
        let said = |one: &&shardscope_source::Diagnostic| one.code == Code::SeveralCommands;
        read.diagnostics
            .iter()
            .filter(said)
            .map(|one| (one.severity, one.message.clone()))
            .collect::<Vec<_>>()
    };
    let both = resolved(&[("train.py", &format!("{trainer}{started}"))]);
    holds(&both, &[(Field::MicroBatchSize, "2"), (Field::SeqLength, "1024")]);
    let message = "the program also starts a training by a command; the estimate is for the trainer in the program itself";
    assert_eq!(reported(&both), [(Severity::Warning, message.to_owned())]);
    for other in [
        "",
        "subprocess.run('pip install trl', shell=True)\n",
        "subprocess.run('python evaluate.py --batch_size 4', shell=True)\n",
    ] {
        assert!(reported(&resolved(&[("train.py", &format!("{trainer}{other}"))])).is_empty(), "{other}");
    }
}
