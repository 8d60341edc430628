//! What trains, what is frozen, and what transformers and its trainers choose.

use super::objective::objective;
use super::table::Table;
use crate::SettingValue::{Bool, Int, List, Real, Text};
use shardscope_plan::{
    AdapterKernels, AdapterLibrary, BaseTraining, DataEngine, DdpBuckets, ExpertKernel, Field, LinearModule,
    Lora, LoraModules, NumberFormat, PreferenceLogits, Quantization, Software, TowerGradients, Transformers,
    Tuning, Word, word,
};

/// Number of trained layers if the text gives none (LLaMA-Factory `freeze_trainable_layers`).
const USUAL_TRAINED_LAYERS: u64 = 2;

/// Translates transformers' settings into those of the other frameworks, before defaults are filled in.
pub(super) fn spell_out(table: &mut Table, software: Software) {
    let semantics = software.semantics();
    // Megatron's own layers keep the defaults of its parser.
    if !semantics.eager_modules {
        return;
    }
    let whose = super::defaults::whose(software);
    let defaults = [
        (Field::AddBiasLinear, "false"),
        (Field::Normalization, "RMSNorm"),
        (Field::PositionEmbeddingType, "rope"),
        (Field::HiddenDropout, "0"),
        (Field::AttentionDropout, "0"),
        (Field::MakeVocabSizeDivisibleBy, "1"),
        (Field::GradientAccumulationFusion, "false"),
        // Before `defaults::fill`, which would turn Megatron's fusions on.
        (Field::BiasSwigluFusion, "false"),
        (Field::BiasGeluFusion, "false"),
        (Field::BiasDropoutFusion, "false"),
        (Field::ApplyRopeFusion, "false"),
        (Field::MaskedSoftmaxFusion, "false"),
        (Field::OverlapGradReduce, "true"),
        (Field::CreateAttentionMaskInDataloader, "false"),
    ];
    for (field, value) in defaults {
        if let Ok(value) = super::parse::parse(field, value) {
            table.default(field, value, whose);
        }
    }
    // For transformers this is the same: every layer is its own unit.
    if table.on(Field::GradientCheckpointing) {
        let rule = "gradient_checkpointing keeps the input of every layer";
        table.derive(Field::RecomputeGranularity, word::RecomputeGranularity::Full.value(), rule);
        table.derive(Field::RecomputeMethod, word::RecomputeMethod::Uniform.value(), rule);
        table.derive(Field::RecomputeNumLayers, Int(1), rule);
    }
    // Trainers that cast the model do not run under autocast.
    if semantics.modules.casts_weights_once {
        table.default(Field::Autocast, word::Autocast::None.value(), "the weights themselves are cast");
    } else if !table.has(Field::Autocast) {
        let (dtype, rule) = match (table.on(Field::Bf16), table.on(Field::Fp16)) {
            (true, _) => (word::Autocast::Bf16, "the Trainer runs under autocast with --bf16"),
            (_, true) => (word::Autocast::Fp16, "the Trainer runs under autocast with --fp16"),
            _ => (word::Autocast::None, "neither --bf16 nor --fp16"),
        };
        table.derive(Field::Autocast, dtype.value(), rule);
    }
    // Without labels Liger's model computes logits like any other, from which preference and policy losses are
    // computed.
    if table.on(Field::LigerKernel) && table.is_unset_or(&[word::TrainingObjective::Sft]) {
        table.derive(Field::LossKind, word::LossKind::Liger.value(), "liger_kernel");
    }
    let eager = table.listed().contains(&word::ModuleVariant::EagerOnly);
    let attention = if eager { word::AttnImplementation::Eager } else { word::AttnImplementation::Sdpa };
    table.default(Field::AttnImplementation, attention.value(), whose);
    super::engine::spell_out(table, software);
}

/// The library whose adapters are supported for the layers of `software`; none if there is no known one.
pub(super) fn library(table: &Table, software: Software) -> Option<AdapterLibrary> {
    let semantics = software.semantics();
    if semantics.eager_modules {
        // With Hugging Face's modules the trainer decides the library.
        return Some(semantics.modules.adapters);
    }
    let core = matches!(software, Software::MegatronCoreLocal | Software::MegatronCoreTe);
    table.chosen::<AdapterLibrary>().filter(|library| core && library.is_of_megatron())
}

/// What trains where the software has no adapters here: everything, but for a decoder that is frozen behind mergers that train.
fn without_adapters(table: &Table) -> Tuning {
    let mut tuning = Tuning {
        projector: super::vision::projects(table),
        images: super::vision::gradients(table) != TowerGradients::None,
        ..Tuning::default()
    };
    if super::vision::trains_before_decoder(table)
        && table.words(Field::FrozenModules).contains(&super::DECODER)
    {
        (tuning.base, tuning.embedding, tuning.head) = (BaseTraining::None, false, false);
    }
    tuning
}

/// What trains, with weights of `params`. If the software has no adapters here, everything: `lacking` has stopped the
/// verdict, or the user continues without them.
pub(super) fn tuning(table: &mut Table, software: Software, params: NumberFormat) -> Tuning {
    let Some(library) = library(table, software) else { return without_adapters(table) };
    // The method decides what else applies: modules to save are copies under LoRA, and the originals if layers are
    // frozen.
    let way = way(table, software.semantics().eager_modules);
    let saved = |table: &Table, name: &str| table.words(Field::ModulesToSave).contains(&name);
    let any = |table: &Table, names: &[&str]| names.iter().any(|name| saved(table, name));
    let embedding = any(table, &["embed_tokens", "wte", "embed_in", "word_embeddings", "all-embedding"]);
    let head = any(table, &["lm_head", "embed_out", "output_layer"]);
    let mut tuning = Tuning { objective: objective(table), ..Tuning::default() };
    tuning.projector = super::vision::projects(table);
    tuning.images = super::vision::gradients(table) != TowerGradients::None;
    match way {
        // Only the projector trains, or the tower with it: LLaVA's first stage and InternVL's, described as full training with
        // a frozen decoder.
        Way::Full
            if super::vision::trains_before_decoder(table)
                && table.words(Field::FrozenModules).contains(&super::DECODER) =>
        {
            (tuning.base, tuning.embedding, tuning.head) = (BaseTraining::None, false, false);
            return tuning;
        }
        Way::Full => return tuning,
        Way::Freeze => {
            let rule = "default of LLaMA-Factory";
            table.default(Field::TrainedLayers, Int(USUAL_TRAINED_LAYERS), rule);
            tuning.base = BaseTraining::Last(table.number(Field::TrainedLayers));
            (tuning.embedding, tuning.head) = (embedding, head);
        }
        Way::Lora => {
            tuning.base = BaseTraining::None;
            tuning.lora = Some(lora(table, library, params));
            // PEFT itself trains a copy of such a head (`peft/peft_model.py:PeftModelForSequenceClassification`).
            let head = head || tuning.objective.labels().is_some();
            let beside = !software.semantics().modules.originals_away;
            (tuning.embedding, tuning.head, tuning.copies) = (embedding, head, beside && (embedding || head));
        }
    }
    if library.is_of_megatron() {
        // Recomputed layers would have no backward pass if nothing before them requires a gradient.
        let recomputed = table.is(word::RecomputeGranularity::Full);
        tuning.input_gradients = library.semantics().input_gradients || recomputed;
        return tuning;
    }
    tuning.quantization = quantization(table, library);
    let quantized = tuning.quantization != Quantization::None;
    if matches!(tuning.quantization, Quantization::FourBit { .. }) {
        tuning.unquantized = super::unquantized::unquantized(table);
    }
    if quantized && library == AdapterLibrary::Peft {
        let rule = "prepare_model_for_kbit_training makes the embedding's output require grad";
        table.derive(Field::InputRequireGrads, Bool(true), rule);
    }
    table.default(Field::InputRequireGrads, Bool(false), &format!("default of {}", library.semantics().name));
    tuning.input_gradients = table.on(Field::InputRequireGrads);
    tuning.upcast = quantized && table.on(Field::UpcastNonQuantized);
    tuning.narrow_ends = tuning.upcast && table.on(Field::UpcastNorms);
    tuning
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Full,
    Freeze,
    Lora,
}

fn way(table: &mut Table, eager: bool) -> Way {
    // A stated rank or target means LoRA even if no type is stated; a stated type is kept.
    if table.has(Field::LoraRank) || table.has(Field::LoraTargetModules) {
        table.derive(Field::TrainType, word::TrainType::Lora.value(), "the text sets up LoRA");
    }
    let quantized = !table.is_unset_or(&[word::BaseQuantization::None]);
    if quantized {
        table.derive(
            Field::TrainType,
            word::TrainType::QLora.value(),
            "only adapters train over quantized weights",
        );
    }
    match table.chosen::<word::TrainType>() {
        Some(word::TrainType::Lora) => Way::Lora,
        Some(word::TrainType::QLora) => {
            table.derive(
                Field::BaseQuantization,
                word::BaseQuantization::Nf4.value(),
                "QLoRA's format (Dettmers et al. 2023)",
            );
            Way::Lora
        }
        Some(word::TrainType::Freeze) => Way::Freeze,
        _ => {
            // It is only worth showing that there are no adapters if they were possible.
            if eager {
                table.default(
                    Field::TrainType,
                    word::TrainType::Full.value(),
                    "where the text sets up no adapters",
                );
            }
            Way::Full
        }
    }
}

fn lora(table: &mut Table, library: AdapterLibrary, params: NumberFormat) -> Lora {
    let semantics = library.semantics();
    let rule = format!("default of {}", semantics.name);
    table.default(Field::LoraRank, Int(semantics.rank), &rule);
    table.default(Field::LoraDropout, Real(semantics.dropout), &rule);
    let usual = List(semantics.targets.iter().map(|name| Text((*name).to_owned())).collect());
    let rule = match library {
        AdapterLibrary::Peft => "default of PEFT for Llama and its like".to_owned(),
        _ => rule,
    };
    table.default(Field::LoraTargetModules, usual, &rule);
    // In this order: Megatron always casts, other libraries follow the weights unless told otherwise.
    if library.is_of_megatron() {
        let rule = "Float16Module casts adapters with the model";
        table.overrule(Field::AdapterDtype, Text(params.name().to_owned()), rule);
    } else if library != AdapterLibrary::Peft {
        let rule = "adapters are built in the dtype of the model's weights";
        table.derive(Field::AdapterDtype, params.value(), rule);
    } else {
        let rule = "PEFT holds adapters in fp32 over 16-bit weights (autocast_adapter_dtype)";
        table.default(Field::AdapterDtype, NumberFormat::Fp32.value(), rule);
    }
    // Unknown names have stopped the verdict.
    let known = |all: LoraModules, name: &&str| all.named(name).unwrap_or(all);
    let mut modules = table.words(Field::LoraTargetModules).iter().fold(LoraModules::default(), known);
    let all = table.words(Field::LoraTargetModules).iter().any(|name| name.starts_with("all"));
    if library == AdapterLibrary::Peft && table.on(Field::LoraByNames) && all {
        modules = by_names(table, modules);
    }
    // If PEFT knows the experts of a model type as their former linear layers, their names only mean the experts; if it
    // does not, it leaves experts and router unchanged
    // (`peft/utils/transformers_weight_conversion.py:_convert_peft_config_moe`).
    // Under Megatron experts are linear layers like others.
    let converted = table.on(Field::ConvertedExperts) && !library.is_of_megatron();
    if converted && modules.cover_experts() {
        modules = modules.without_mlp().with(LinearModule::Experts);
    } else if !converted && table.is(Software::HfTransformers) {
        modules = modules.without(LinearModule::Experts).without(LinearModule::Router);
    }
    // Gemma 4's router has a linear layer, which is one of all.
    if all && table.listed().contains(&word::ModuleVariant::NormedRouter) {
        modules = modules.with(LinearModule::Router);
    }
    let drops = table.real(Field::LoraDropout).unwrap_or(0.0) > 0.0;
    Lora {
        rank: table.number(Field::LoraRank),
        dropout: drops && !table.on(Field::LoraDropoutAfter),
        drops_result: drops && table.on(Field::LoraDropoutAfter),
        dtype: table.format(Field::AdapterDtype).unwrap_or(NumberFormat::Fp32),
        modules,
        dora: table.on(Field::UseDora),
        library,
        kernels: AdapterKernels::named(&table.words(Field::LoraKernels)).unwrap_or_default(),
    }
}

/// All linear layers, if a trainer passes their names to PEFT: experts and routers are parameters in transformers 5 and
/// have none, so experts only get adapters if a linear layer elsewhere, in shared experts or dense layers, has the
/// names of the projections (`llamafactory/model/model_utils/misc.py:find_all_linear_modules`,
/// `axolotl/loaders/adapter.py:find_all_linear_names`, `swift/utils/transformers_utils.py:find_all_linears`,
/// `xtuner/model/utils.py:find_all_linear_names`).
fn by_names(table: &Table, modules: LoraModules) -> LoraModules {
    let modules = modules.without(LinearModule::Router);
    let dense = |pattern: &str| {
        let layers = table.count(Field::NumLayers).unwrap_or(0);
        super::frequency::pattern(pattern, layers).is_ok_and(|layers| layers.contains(&false))
    };
    let beside = table.number(Field::MoeSharedExpertIntermediateSize) > 0
        || table.word(Field::FirstKDenseReplace).parse::<u64>().is_ok_and(|layers| layers > 0)
        || dense(table.word(Field::MoeLayerFreq));
    if table.on(Field::ConvertedExperts) && !beside {
        return modules.without_mlp().without(LinearModule::Experts);
    }
    modules
}

fn quantization(table: &mut Table, library: AdapterLibrary) -> Quantization {
    match table.chosen::<word::BaseQuantization>() {
        // torchao's NF4 has block scales that are themselves quantized in blocks.
        Some(word::BaseQuantization::Nf4) if library == AdapterLibrary::Torchtune => {
            Quantization::BlocksOfBlocks
        }
        Some(word::BaseQuantization::Nf4 | word::BaseQuantization::Fp4) => {
            table.default(Field::DoubleQuantization, Bool(false), "default of BitsAndBytesConfig");
            Quantization::FourBit { double: table.on(Field::DoubleQuantization) }
        }
        Some(word::BaseQuantization::Int8) => Quantization::Int8,
        Some(word::BaseQuantization::Fp8) => Quantization::Fp8,
        _ => Quantization::None,
    }
}

/// How PyTorch's DDP fills its buckets, where it reduces the gradients of transformers' modules. transformers' Trainer has it look
/// for unused parameters unless a model of its own is checkpointed: PEFT's wrapper is none
/// (`transformers/trainer.py:create_accelerator_and_postprocess`).
fn ddp_buckets(table: &mut Table, software: Software) -> Option<DdpBuckets> {
    let wraps = table.is_unset_or(&[word::DataParallelEngine::Ddp]) && table.number(Field::ZeroStage) == 0;
    if !wraps || software != Software::HfTransformers {
        return None;
    }
    let adapts = table.is(word::TrainType::Lora) || table.is(word::TrainType::QLora);
    let finds = adapts || !table.on(Field::GradientCheckpointing);
    table.default(
        Field::DdpFindUnused,
        Bool(finds),
        "transformers' Trainer: unless a model of its own is checkpointed",
    );
    table.default(Field::DdpBucketCap, Int(DdpBuckets::CAP >> 20), "PyTorch's default");
    Some(DdpBuckets {
        finds_unused: table.on(Field::DdpFindUnused),
        cap: table.number(Field::DdpBucketCap).saturating_mul(1 << 20),
    })
}

/// What transformers and its trainers choose.
pub(super) fn transformers(table: &mut Table, software: Software) -> Transformers {
    let reduce_buckets = super::sharding::reduce_buckets(table);
    Transformers {
        autocast: match table.chosen::<word::Autocast>() {
            Some(word::Autocast::Bf16) => Some(NumberFormat::Bf16),
            Some(word::Autocast::Fp16) => Some(NumberFormat::Fp16),
            _ => None,
        },
        // Packed samples have no padding to mask.
        padding_mask: table.on(Field::PaddingMask) && !table.on(Field::Packing),
        cache: table.on(Field::UseCache),
        counts_tokens: true,
        experts: match table.chosen::<word::ExpertsImplementation>() {
            Some(word::ExpertsImplementation::BatchedMm) => ExpertKernel::Batched,
            Some(word::ExpertsImplementation::Eager) => ExpertKernel::Loop,
            _ => ExpertKernel::Grouped,
        },
        liger_norms: table.on(Field::LigerKernel) || table.words(Field::LigerParts).contains(&"norms"),
        liger_gates: super::lacking_modules::has_liger_gates(table),
        fp32_accumulation: false,
        foreach_step: table.on(Field::OptimizerForeach),
        reduce_buckets,
        ddp: ddp_buckets(table, software),
        engine: match table.chosen::<word::DataParallelEngine>() {
            Some(word::DataParallelEngine::Fsdp1) => DataEngine::Fsdp1,
            Some(word::DataParallelEngine::Fsdp2) => DataEngine::Fsdp2,
            Some(word::DataParallelEngine::DeepSpeed) => DataEngine::DeepSpeed,
            _ => DataEngine::Ddp,
        },
        reduce: table.format(Field::ReduceDtype),
        output: table.format(Field::OutputDtype),
        ends_apart: table.on(Field::FsdpEndsApart),
        dtensor_plan: table.on(Field::DtensorPlan),
        embedding_apart: table.on(Field::FsdpEmbeddingApart),
        z_loss: table.on(Field::LogitsZLoss),
        // `accelerate/accelerator.py:no_sync` does nothing under ZeRO-2 and 3.
        defers_reduction: table.on(Field::DeferReduction) && !table.is(word::DataParallelEngine::DeepSpeed),
        keeps_gathered: table.on(Field::KeepGathered),
        gathered_inputs: table.on(Field::GatheredInputs),
        holds_output: table.on(Field::LogitsHeld),
        steps_in_backward: table.on(Field::StepInBackward),
        compiled_checkpoints: table.on(Field::CompiledCheckpoints),
        reentrant_checkpoints: table.on(Field::ReentrantCheckpoints),
        reference_mixers: table.on(Field::ReferenceMixers),
        evaluation_batch: table.number(Field::EvaluationBatchSize),
        evaluation_cache: table.on(Field::EvaluationCache),
        log_prob_tokens: table.number(Field::LogProbTokens),
        preference_logits: match table.chosen::<word::PreferenceLogits>() {
            Some(word::PreferenceLogits::Own) => PreferenceLogits::Own,
            Some(word::PreferenceLogits::Fp32) => PreferenceLogits::Fp32,
            Some(word::PreferenceLogits::Whole) => PreferenceLogits::Whole,
            Some(word::PreferenceLogits::Named) => PreferenceLogits::Named,
            Some(word::PreferenceLogits::Orpo) => PreferenceLogits::Odds,
            Some(word::PreferenceLogits::Cpo) => PreferenceLogits::Contrast,
            Some(word::PreferenceLogits::CpoSimpo) => PreferenceLogits::ContrastOfMeans,
            Some(word::PreferenceLogits::Simpo) => PreferenceLogits::Means,
            Some(word::PreferenceLogits::States) => PreferenceLogits::States,
            Some(word::PreferenceLogits::AllStates) => PreferenceLogits::AllStates,
            Some(word::PreferenceLogits::LabelledStates) => PreferenceLogits::LabelledStates,
            Some(word::PreferenceLogits::StatesOrpo) => PreferenceLogits::StatesOdds,
            _ => PreferenceLogits::Dropped,
        },
    }
}
