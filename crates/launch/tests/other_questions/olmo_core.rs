//! OLMo-core 2.6: saved configurations and scripts, and settings that stop by name.

use super::{said, stopped, value};
use shardscope_launch::Resolution;
use shardscope_plan::Field;

/// A script based on `src/scripts/official/OLMo3/OLMo-3-1025-7B-midtrain.py` with this model and these keywords for the
/// training module and FSDP.
fn script(model: &str, training: &str, parallel: &str) -> Resolution {
    let text = format!(
        "from olmo_core.nn.transformer import TransformerConfig\nDEFAULT_SEQUENCE_LENGTH = 8192\nGLOBAL_BATCH_SIZE = 2**21  # ~2M tokens\n\
         def build_config(opts: argparse.Namespace, overrides: List[str]) -> ExperimentConfig:\n\
         \x20   sequence_length = opts.sequence_length or DEFAULT_SEQUENCE_LENGTH\n\
         \x20   tokenizer_config = TokenizerConfig.dolma2()\n\
         \x20   model_config = TransformerConfig.{model}\n\
         \x20   data_loader_config = NumpyDataLoaderConfig(global_batch_size=GLOBAL_BATCH_SIZE, seed=1337, num_workers=4)\n\
         \x20   train_module_config = TransformerTrainModuleConfig(\n\
         \x20       rank_microbatch_size=2 * 8192, max_sequence_length=sequence_length,\n\
         \x20       optim=SkipStepAdamWConfig(lr=1e-4, betas=(0.9, 0.95)),\n\
         \x20       scheduler=LinearWithWarmup(warmup=0, alpha_f=0.0),\n\
         \x20       dp_config=TransformerDataParallelConfig(\n\
         \x20           name=DataParallelType.hsdp, param_dtype=DType.bfloat16, reduce_dtype=DType.float32, {parallel}\n\
         \x20       ),\n\
         \x20       float8_config=Float8Config(enabled=False), max_grad_norm=1.0, {training}\n\
         \x20   )\n\
         \x20   trainer_config = TrainerConfig(save_folder=opts.save_folder).with_callback(\"x\", ConfigSaverCallback())\n\
         \x20   return ExperimentConfig(model=model_config, data_loader=data_loader_config, train_module=train_module_config,\n\
         \x20       trainer=trainer_config, init_seed=1).merge(overrides)\n"
    );
    said("train.py", &text, &[("world_size", "64")])
}

const SEVEN: &str =
    "olmo3_7B(vocab_size=tokenizer_config.padded_vocab_size(), attn_backend=AttentionBackendName.flash_2)";
const MLP: &str = "ac_config=TransformerActivationCheckpointingConfig(mode=TransformerActivationCheckpointingMode.selected_modules, \
                   modules=[\"blocks.*.feed_forward\"])";

#[test]
fn an_official_script_is_a_plan() {
    let read =
        script(SEVEN, &format!("compile_model=True, z_loss_multiplier=1e-5, {MLP}"), "shard_degree=32");
    let plan = read.plan.as_ref().unwrap_or_else(|| panic!("{:?} {:?}", read.diagnostics, read.not_modelled));
    assert!(plan.recipe().marks.is_empty(), "{:?}", plan.recipe().marks);
    for (field, expected) in [
        (Field::NumLayers, "32"),
        (Field::PaddedVocabSize, "100352"),
        (Field::SeqLength, "8192"),
        (Field::MicroBatchSize, "2"),
        (Field::GlobalBatchSize, "256"),
        (Field::AttentionWindow, "4096"),
        (Field::MixerPattern, "www*www*www*www*www*www*www*www*"),
        (Field::NormsBehind, "true"),
        (Field::NormsOverHeads, "true"),
        (Field::CompiledLayers, "true"),
        (Field::LogitsZLoss, "true"),
        (Field::LossKind, "compiled"),
        (Field::RecomputeModules, "mlp"),
        (Field::NumDistributedOptimizerInstances, "2"),
        (Field::FsdpEndsApart, "true"),
        (Field::Software, "olmo_core"),
    ] {
        assert_eq!(value(&read, field), expected, "{field:?}");
    }
}

#[test]
fn what_is_not_modelled_stops_by_name() {
    for (training, parallel, name) in [
        ("z_loss_multiplier=1e-5", "", "train_module.z_loss_multiplier"),
        (MLP, "", "train_module.ac_config.mode"),
        (
            "compile_model=True, ac_config=TransformerActivationCheckpointingConfig(mode=\"budget\")",
            "",
            "train_module.ac_config.mode",
        ),
        ("tp_config=TransformerTensorParallelConfig(degree=2)", "", "train_module.tp_config"),
        ("autocast_precision=DType.bfloat16", "", "train_module.autocast_precision"),
        (
            "",
            "wrapping_strategy=TransformerDataParallelWrappingStrategy.fine_grained",
            "train_module.dp_config.wrapping_strategy",
        ),
        ("", "prefetch_factor=2", "train_module.dp_config.prefetch_factor"),
        // Computed values may be anything.
        ("", "num_replicas=get_world_size() // 64", "train_module.dp_config.num_replicas"),
        (
            "ac_config=TransformerActivationCheckpointingConfig(Mode.full) if big else None",
            "",
            "train_module.ac_config",
        ),
        (
            "ac_config=TransformerActivationCheckpointingConfig(TransformerActivationCheckpointingMode.selected_ops)",
            "",
            "train_module.ac_config.mode",
        ),
    ] {
        stopped(&script(SEVEN, training, parallel), &[name]);
    }
    for (model, name) in [
        ("llama_like_moe(vocab_size=1024, d_model=64, n_layers=2, n_heads=2, num_experts=4)", "model.name"),
        ("olmo2_7B(vocab_size=1024, layer_norm_name=LayerNormType.fused_rms)", "model.block.layer_norm.name"),
        ("olmo2_7B(vocab_size=1024, block_name=TransformerBlockType.peri_norm)", "model.block.name"),
        (
            "olmo3_7B(vocab_size=1024, attn_backend=AttentionBackendName.torch)",
            "model.block.sequence_mixer.backend",
        ),
        ("qwen3_8B(vocab_size=1024)", "model.block.layer_norm.name"),
        ("olmo2_7B(vocab_size=1024, my_own_thing=3)", "model.block_overrides"),
        ("olmo2_7B(vocab_size=1024, attn_backend=mine)", "model.block.sequence_mixer.backend"),
    ] {
        stopped(&script(model, "", ""), &[name]);
    }
}

/// `llama_like` computes the inner width; the attention kernel is PyTorch's unless one is named; sizes given together
/// with a name take precedence.
#[test]
fn models_are_what_their_calls_make() {
    let like = script(
        "llama_like(vocab_size=1024, d_model=1024, n_layers=4, n_heads=8, n_kv_heads=2, hidden_size_multiplier=1.5)",
        "",
        "",
    );
    let shown = [Field::FfnHiddenSize, Field::NumQueryGroups, Field::AttnImplementation, Field::NormsBehind]
        .map(|field| value(&like, field));
    assert_eq!(shown, ["4096", "2", "sdpa", ""]);
    assert!(like.plan.is_some(), "{:?} {:?}", like.diagnostics, like.not_modelled);
    let fewer = script("olmo2_1B(vocab_size=1024, n_layers=6, qk_norm=False)", "", "");
    assert_eq!([value(&fewer, Field::NumLayers), value(&fewer, Field::QkLayernorm)], ["6", "false"]);
    // All layers, if no mode is given.
    let all = script("olmo2_1B(vocab_size=1024)", "ac_config=TransformerActivationCheckpointingConfig()", "");
    assert_eq!(
        [value(&all, Field::RecomputeGranularity), value(&all, Field::RecomputeMethod)],
        ["full", "uniform"]
    );
}
