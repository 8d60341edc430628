//! Values that were taken for others, and flags that were passed over.

use super::{launch, script, value};
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

/// `SGDScheduleFree` keeps z alone, `AdamWScheduleFree` the second moment too.
#[test]
fn sgd_without_a_schedule_keeps_one_state() {
    let of = |name: &str| optimizer(&script(&format!("{TRAINER} --optim {name}\n")));
    assert_eq!(of("schedule_free_sgd"), OptimizerKind::SgdMomentum);
    assert_eq!(of("schedule_free_adamw"), OptimizerKind::Adam);
}

#[track_caller]
fn refused(resolution: &Resolution, code: Code, message: &str) {
    assert!(resolution.plan.is_none(), "a verdict all the same");
    let told = resolution.diagnostics.iter().find(|said| said.code == code);
    assert_eq!(told.map(|said| said.message.as_str()), Some(message), "{:?}", resolution.diagnostics);
}

/// Both are asserted by Megatron at its start.
#[test]
fn what_megatron_refuses_is_refused() {
    let modules = "--recompute-granularity selective --recompute-modules core_attn foo";
    let modules = script(&launch("pretrain_gpt.py", modules));
    refused(&modules, Code::Recompute, "no modules that can be recomputed: foo");
    let ramp = script(&launch("pretrain_gpt.py", "--rampup-batch-size 16 16"));
    refused(&ramp, Code::Rampup, "rampup_batch_size has 2 numbers");
    assert!(script(&launch("pretrain_gpt.py", "--rampup-batch-size 16 16 4000")).plan.is_some());
}

/// 32 layers of which the first and the last are none, over four stages.
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
