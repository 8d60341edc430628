//! Values that were mistaken for others, and flags that were ignored.

use super::{MODEL, launch, said, script, stopped, value};
use shardscope_launch::Resolution;
use shardscope_plan::{Field, OptimizerKind};
use shardscope_source::Code;

const TRAINER: &str = "python train.py --model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 2 \
    --gradient_accumulation_steps 4 --max_length 2048 --bf16";

fn optimizer(resolution: &Resolution) -> OptimizerKind {
    let plan = resolution.plan.as_ref().unwrap_or_else(|| panic!("{:?}", resolution.diagnostics));
    plan.recipe().optimizer.kind
}

/// `torch.optim.SGD` of transformers (`trainer.py:get_optimizer_cls_and_kwargs`) has no momentum; Megatron's
/// `--sgd-momentum` is 0.9.
#[test]
fn the_momentum_of_sgd_is_the_softwares() {
    let trainer = script(&format!("{TRAINER} --optim sgd\n"));
    assert_eq!(optimizer(&trainer), OptimizerKind::Sgd);
    let setting = trainer.setting(Field::SgdMomentum).expect("a default");
    assert_eq!(
        (setting.value.written(), setting.note.as_deref()),
        ("0".to_owned(), Some("default of torch.optim.SGD"))
    );
    let megatron = script(&launch("pretrain_gpt.py", "--optimizer sgd"));
    assert_eq!(
        (optimizer(&megatron), value(&megatron, Field::SgdMomentum)),
        (OptimizerKind::SgdMomentum, "0.9".into())
    );
    let without = script(&launch("pretrain_gpt.py", "--optimizer sgd --sgd-momentum 0"));
    assert_eq!(optimizer(&without), OptimizerKind::Sgd);
}

/// `SGDScheduleFree` only keeps z, `AdamWScheduleFree` also the second moment.
#[test]
fn sgd_without_a_schedule_keeps_one_state() {
    let of = |name: &str| optimizer(&script(&format!("{TRAINER} --optim {name}\n")));
    assert_eq!(of("schedule_free_sgd"), OptimizerKind::SgdMomentum);
    assert_eq!(of("schedule_free_adamw"), OptimizerKind::Adam);
}

#[track_caller]
fn refused(resolution: &Resolution, code: Code, message: &str) {
    assert!(resolution.plan.is_none(), "a verdict all the same");
    let reported = resolution.diagnostics.iter().find(|said| said.code == code);
    assert_eq!(reported.map(|said| said.message.as_str()), Some(message), "{:?}", resolution.diagnostics);
}

/// Megatron asserts both at start.
#[test]
fn what_megatron_refuses_is_refused() {
    let modules = "--recompute-granularity selective --recompute-modules core_attn foo";
    let modules = script(&launch("pretrain_gpt.py", modules));
    refused(&modules, Code::Recompute, "no modules that can be recomputed: foo");
    let ramp = script(&launch("pretrain_gpt.py", "--rampup-batch-size 16 16"));
    refused(&ramp, Code::Rampup, "rampup_batch_size has 2 numbers");
    assert!(script(&launch("pretrain_gpt.py", "--rampup-batch-size 16 16 4000")).plan.is_some());
}

/// 32 layers, of which the first and the last are no-ops, over four stages.
#[test]
fn stages_of_a_run_with_no_op_layers_are_cut_as_asked() {
    let layers = |more: &str| -> Vec<u64> {
        let run = format!("--pipeline-model-parallel-size 4 --noop-layers 0,31 {more}");
        let resolution = script(&launch("pretrain_gpt.py", &run));
        let plan = resolution.plan.as_ref().unwrap_or_else(|| panic!("{:?}", resolution.diagnostics));
        plan.layout().stages.stages.iter().map(|stage| stage.layers()).collect()
    };
    assert_eq!(layers(""), [7, 8, 8, 7]);
    assert_eq!(layers("--decoder-first-pipeline-num-layers 5"), [4, 9, 9, 8]);
    let uneven = "--decoder-first-pipeline-num-layers 6 --decoder-last-pipeline-num-layers 6";
    assert_eq!(layers(uneven), [5, 10, 10, 5]);
}

/// Programs of other libraries with some option names of Megatron, NeMo or transformers: each was formerly answered as
/// a training with those.
#[test]
fn a_stranger_with_some_words_of_a_known_trainer_is_a_stranger() {
    let commands = [
        // A custom pipeline, whose `--num-layers` are per stage.
        "python dist_train.py --model-name m --model-type gptneox --total-steps 9 --train-warmup-steps 0 --task-name t \
         --num-layers 8 --embedding-dim 4096 --pipeline-group-size 4 --data-group-size 2 --dp-mode allreduce --pp-mode gpipe \
         --seq-length 2048 --micro-batch-size 1 --fp16 --hidden-size 4096 --num-attention-heads 32 --vocab-size 50432",
        // Rollouts and rewards with custom names.
        "python train_zero.py --critic_type drgrpo --pretrain Qwen/Qwen2.5-7B --num_samples 8 --oracle math --collocate --vllm_sleep \
         --gpus 8 --zero-stage 2 --ref_offload --flash-attn --bf16 --max-train 9 --rnd-seed --beta 0 --oracle_type reward \
         --train_batch_size_per_device 1 --rollout_batch_size_per_device 16",
        // The options contain neither the batch nor the epochs of transformers' Trainer.
        "deepspeed --module align.trainers.text.dpo --model_name_or_path Qwen/Qwen3-4B --train_datasets a --train_split train \
         --train_template b --epochs 3 --lr_scheduler_type cosine --output_dir c",
    ];
    for command in commands {
        let answers =
            [("seq_length", "2048"), ("micro_batch_size", "1"), ("world_size", "8"), ("model", "Qwen3-4B")];
        let resolution = said("run.sh", command, &answers);
        stopped(&resolution, &["program"]);
    }
    // Megatron's programs take options of forks and their own in addition to Megatron's.
    let more = "--own-a 1 --own-b 1 --own-c 1 --own-d 1 --own-e 1 --own-f 1 --own-g 1 --own-h 1 --own-i 1 --own-j 1 --own-k 1 \
                --own-l 1 --own-m 1";
    for program in ["pretrain_own.py", "/w/megatron-fork/train.py"] {
        let read = script(&launch(program, more));
        assert!(
            read.not_modelled.iter().all(|item| item.name.starts_with("--own-")),
            "{:?}",
            read.not_modelled
        );
    }
    stopped(&script(&launch("train.py", more)), &["program"]);
    // Arguments of transformers' Trainer are recognised by some that only it has, whatever other options there are.
    let trainer = TRAINER.replace(
        "--max_length 2048",
        "--save_total_limit 2 --logging_steps 5 --a 1 --b 1 --c 1 --d 1 --e 1 --f 1",
    );
    let answers = [("seq_length", "2048"), ("world_size", "8")];
    let read = said("run.sh", &format!("{trainer} --g 1 --h 1 --i 1 --j 1"), &answers);
    assert!(read.not_modelled.iter().all(|item| item.name.len() == 1), "{:?}", read.not_modelled);
}

/// A named but unknown tokenizer does not have GPT-2's vocabulary.
#[test]
fn a_named_tokenizer_that_is_not_known_leaves_the_vocabulary_open() {
    let model = MODEL.replace("--vocab-size 151936 ", "");
    let text = format!("torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py {model}");
    let nameless = script(&text);
    assert_eq!(value(&nameless, Field::VocabSize), "50257");
    assert!(
        nameless.plan.is_some() && nameless.questions.iter().any(|question| question.name() == "vocab_size")
    );
    let named = script(&format!("{text} --tokenizer-model /w/own_256k.model"));
    assert!(named.plan.is_none());
    let question =
        named.questions.iter().find(|question| question.name() == "vocab_size").expect("it is asked for");
    assert_eq!(question.proposal.as_deref(), Some("50257"));
}

/// The options of `swift sft "${ARGS[@]}"` came from a program that the script runs; ms-swift's defaults were used
/// instead.
#[test]
fn options_that_a_command_prints_are_not_known() {
    for text in [
        "mapfile -t ARGS < <(python3 - \"$1\")\nswift sft \"${ARGS[@]}\"\n",
        "ARGS=($(python3 options.py))\nswift sft \"${ARGS[@]}\"\n",
        "swift sft --model Qwen/Qwen3-8B $(python3 options.py)\n",
    ] {
        stopped(&script(text), &["options"]);
    }
    let stated = script("ARGS=(--model Qwen/Qwen3-8B)\nswift sft \"${ARGS[@]}\" --output_dir $(date +%F)\n");
    assert!(stated.not_modelled.is_empty(), "{:?}", stated.not_modelled);
}

/// transformers rejects both formats at once; weights were formerly held in one and multiplied in the other.
#[test]
fn two_formats_at_once_are_none() {
    let text = "base_model: Qwen/Qwen2.5-7B\nadapter: lora\nlora_r: 8\nlora_target_linear: true\nmicro_batch_size: 1\nsequence_len: 512\n";
    let read = |more: &str| said("a.yaml", &format!("{text}{more}"), &[("world_size", "1")]);
    stopped(&read("bf16: auto\nfp16: true\n"), &["fp16"]);
    assert!(read("bf16: auto\nfp16: false\n").plan.is_some());
}

/// A style of conversation is an argument of LLaVA's programs and of others too; InternVL's commands have more of its own
/// (`internvl_chat/internvl/train/internvl_chat_finetune.py`).
#[test]
fn a_style_of_conversation_alone_is_not_internvls() {
    let of = |program: &str, more: &str| {
        script(&format!(
            "torchrun --nproc_per_node 8 {program} --per_device_train_batch_size 2 --bf16 True --learning_rate 1e-5 {more}\n"
        ))
    };
    let style = "--model_name_or_path lmsys/vicuna-7b-v1.5 --conv_style v1";
    let llava = of("llava/train/train_mem.py", &format!("{style} --version v1 --model_max_length 2048"));
    let plain = of("train.py", &format!("{style} --max_seq_length 2048"));
    for (read, name) in [(&llava, "llava"), (&plain, "plain")] {
        let own = |found: &shardscope_plan::Setting| format!("{found:?}").contains("InternVL");
        assert_eq!(value(read, Field::VisionInputGrads), "", "{name}");
        assert!(read.setting(Field::GradientCheckpointing).is_none_or(|found| !own(found)), "{name}");
    }
    let internvl =
        "--model_name_or_path OpenGVLab/InternVL2_5-8B --conv_style internvl2_5 --force_image_size 448";
    assert_eq!(value(&of("train.py", internvl), Field::GradientCheckpointing), "true");
}

/// `internvl/patch/qwen2_packed_training_patch.py` takes one pack; whether there is one may be left to an answer.
#[test]
fn packs_of_internvl_stop_where_an_answer_makes_several() {
    let of = |more: &str, set: &[(&str, &str)]| {
        let text = format!(
            "torchrun --nproc_per_node 8 internvl_chat_finetune.py --model_name_or_path OpenGVLab/InternVL2_5-8B --conv_style \
             internvl2_5 --force_image_size 448 --max_seq_length 4096 --max_packed_tokens 16384 --bf16 True --freeze_backbone True --freeze_mlp True {more}\n"
        );
        said("run.sh", &text, set)
    };
    let names =
        |read: &Resolution| read.not_modelled.iter().map(|item| item.name.clone()).collect::<Vec<_>>();
    let open = "--use_packed_ds True --per_device_train_batch_size $BS";
    let read = of(open, &[]);
    assert_eq!(names(&read), ["use_packed_ds"]);
    assert!(read.questions.iter().any(|question| question.name() == "BS"), "{:?}", read.questions);
    let one = of(open, &[("micro_batch_size", "1")]);
    assert!(one.plan.is_some(), "{:?} {:?}", one.not_modelled, one.diagnostics);
    assert_eq!(value(&one, Field::SeqLength), "16384");
    stopped(&of(open, &[("micro_batch_size", "2")]), &["use_packed_ds"]);
    stopped(&of("--use_packed_ds True --per_device_train_batch_size 2", &[]), &["use_packed_ds"]);
    let switch = "--use_packed_ds $PK --per_device_train_batch_size 1";
    let asked = of(switch, &[]);
    assert!(names(&asked).is_empty(), "{:?}", asked.not_modelled);
    assert!(asked.questions.iter().any(|question| question.name() == "PK"), "{:?}", asked.questions);
    assert_eq!(value(&of(switch, &[("packing", "false")]), Field::SeqLength), "4096");
    assert!(of(switch, &[("packing", "false")]).plan.is_some());
    stopped(&of(switch, &[("packing", "true")]), &["use_packed_ds"]);
    let tiles = "--use_packed_ds True --per_device_train_batch_size 1 --num_images_expected";
    assert!(of(&format!("{tiles} 30"), &[]).plan.is_some());
    stopped(&of(&format!("{tiles} -3"), &[]), &["num_images_expected"]);
}
