//! What a script says outside its command: directives to the scheduler, variables that choose kernels.

use super::model_files;
use super::named::{take_model, with_vision};
use super::scheduled::accelerator;
use super::weights::propose_model;
use super::{
    Argument, Asked, Effect, Found, NotModelled, Origin, Reading, formats::known_model, launch::Launch,
};
use shardscope_bash as shell;
use shardscope_catalog as catalog;
use shardscope_config_tree::read_json;
use shardscope_plan::{Field, ValueKind};
use shardscope_source::Span;

/// The launch's reading, extended by the lines around the command.
pub(super) fn reading(launch: &Launch) -> Reading {
    let mut reading = launch.reading();
    accelerator(&mut reading, &launch.script);
    npu(&mut reading, &launch.script);
    libraries(&mut reading, &launch.script);
    model(&mut reading, launch);
    experts_of_slime(&mut reading);
    model_files::tell(&mut reading, launch);
    reading
}

/// What slime's and miles' own files of models with experts all state (`scripts/models`: Qwen3, GLM-4.5 to 5.2, DeepSeek-V3, Kimi K2,
/// Moonlight, MiniMax-M2), if such a file gave the shape and is not among the texts.
fn experts_of_slime(reading: &mut Reading) {
    let named = |found: &Found| found.field == Field::NumExperts && found.origin == Origin::Catalog;
    if reading.value(Field::RlFramework) != Some("slime") || !reading.found.iter().any(named) {
        return;
    }
    let scatters = |note: &String| SCATTERED.iter().any(|family| note.starts_with(family));
    let scattered =
        reading.found.iter().any(|found| named(found) && found.note.as_ref().is_some_and(scatters));
    let own = scattered.then_some((Field::MoeTokenDispatcherType, "alltoall"));
    let all =
        [(Field::MoeGroupedGemm, "true"), (Field::MoePermuteFusion, "true"), (Field::MoeRouterDtype, "fp32")];
    for (field, value) in all.into_iter().chain(own) {
        if reading.value(field).is_none() {
            let found = Found::new(field, value, Origin::Derived);
            reading.take(found.note("stated by the file of slime's for a model with experts"));
        }
    }
}

/// Models whose files state `--moe-token-dispatcher-type alltoall`; those of GLM-4.7 and 5, Nemotron 3 and Gemma 4 state none
/// (`scripts/models` of slime and miles).
const SCATTERED: [&str; 6] = ["DeepSeek-V3", "GLM-4.5", "Kimi-K2", "Moonlight", "Qwen3-", "gpt-oss"];

/// The shape of the model if a missing file states it: from the catalog, by the name of the trained checkpoint
/// (`--hf-checkpoint`) or else of that file.
fn model(reading: &mut Reading, launch: &Launch) {
    // slime's model files with a vision tower name its provider (`scripts/models/qwen3.5-35B-A3B-vl.sh`).
    if launch.script.missing_files.iter().any(|(name, _)| shell::base_name(name).contains("-vl")) {
        reading.keep(&|found| found.field != Field::VisionInEngine);
    }
    let stated = |field| reading.found.iter().any(|found| found.field == field);
    let asked = reading.questions.iter().any(|question| question.asks == Asked::Setting(Field::Model));
    let by_flag = flagged(&launch.arguments);
    if stated(Field::NumLayers) || stated(Field::HiddenSize) || asked {
        // Options state a decoder. A model built from the checkpoint's configuration has its tower too.
        let built = by_flag.filter(|_| stated(Field::VisionModules));
        return built.into_iter().for_each(|named| tower(reading, named));
    }
    // The name of a checkpoint takes precedence over that of the file that states its shape.
    if let Some((flag, name, span)) = by_flag.filter(|(_, name, _)| catalog::find(name).model().is_some()) {
        return take_model(reading, name, flag, span);
    }
    for (name, span) in &launch.script.missing_files {
        let last = shell::base_name(name.strip_suffix(".sh").or(name.strip_suffix(".py")).unwrap_or(name));
        // A model shortened for experiments: deepseek-v3-5layer.
        let Some((known, settings)) = known_model(last).filter(|_| !last.contains("layer")) else { continue };
        for (field, value) in settings {
            if !reading.found.iter().any(|found| found.field == field) {
                let found = Found::new(field, value, Origin::Catalog).by("source", Some(*span));
                reading.take(found.note(format!("{known}, named as {last}")));
            }
        }
        return;
    }
    if let Some((flag, name, span)) = by_flag {
        with_vision(reading, name, flag, span);
        take_model(reading, name, flag, span);
    } else {
        propose_model(reading, &launch.arguments);
    }
}

/// The catalog's fields for a model's vision tower.
const TOWER: [Field; 9] = [
    Field::VisionTower,
    Field::VisionParameters,
    Field::VisionLayers,
    Field::VisionLayerParameters,
    Field::VisionHiddenSize,
    Field::VisionPatches,
    Field::VisionKept,
    Field::VisionShared,
    Field::VisionHooked,
];

/// The tower of the checkpoint of that name, or that it has one of unknown sizes.
fn tower(reading: &mut Reading, (flag, name, span): (&'static str, &str, Option<Span>)) {
    with_vision(reading, name, flag, span);
    let Some((known, settings)) = known_model(shell::base_name(name)) else { return };
    for (field, value) in settings.into_iter().filter(|(field, _)| TOWER.contains(field)) {
        let found = Found::new(field, value, Origin::Catalog).by(flag, span);
        reading.take(found.note(format!("{known}, whose tower Megatron-Bridge builds")));
    }
}

/// Options that name a model by its checkpoint, in order of precedence.
const NAMING: [&str; 12] = [
    "--pretrained",
    "--hf-checkpoint",
    "--model",
    "--model-name-or-path",
    "--hf-model-path",
    "--pretrained-model-name-or-path",
    "--model-id",
    "--base-model",
    "--hf-model-id",
    "--model-path",
    "--pretrain",
    "--actor-model-name-or-path",
];

/// The model that an option names: the option, the name, its position.
fn flagged(arguments: &[Argument]) -> Option<(&'static str, &str, Option<Span>)> {
    for flag in NAMING {
        for (at, word) in arguments.iter().enumerate() {
            let (name, inline) = word
                .text
                .split_once('=')
                .map_or((word.text.as_str(), None), |(name, value)| (name, Some(value)));
            if name.len() != flag.len() || name.replace('_', "-") != flag {
                continue;
            }
            let next = arguments.get(at + 1).filter(|next| !next.text.starts_with("--"));
            let (value, span, hole) = match (inline, next) {
                (Some(value), _) => (value, word.span, &word.hole),
                (None, Some(next)) => (next.text.as_str(), next.span, &next.hole),
                (None, None) => continue,
            };
            if hole.is_none() && !value.is_empty() {
                return Some((flag, value.trim_end_matches('/'), span));
            }
        }
    }
    None
}

/// Variables that only torch_npu, CANN and vLLM-Ascend read. Habana uses `HCCL_` as well, so it alone proves nothing.
fn is_of_ascend(variable: &str) -> bool {
    const NAMESPACES: [&str; 4] = ["ASCEND_", "PYTORCH_NPU_", "VLLM_ASCEND_", "TORCH_NPU_"];
    NAMESPACES.iter().any(|space| variable.starts_with(space))
}

/// A run on Ascend NPUs, recognised by variables and by `set_env.sh` of CANN, which would otherwise be answered for the
/// default GPU. The NPU model is not stated, so the verdict carries the assumption with its origin; outside of
/// Megatron, which has been run on them, the kernels of torch_npu are not modelled.
fn npu(reading: &mut Reading, script: &shell::Script) {
    let stated = script
        .variables
        .iter()
        .find(|variable| is_of_ascend(&variable.name))
        .map(|variable| (variable.name.clone(), variable.values.last().and_then(shell::Value::origin)));
    let before = || {
        let mut all = script.commands.iter().flat_map(|command| &command.environment);
        all.find(|(name, _)| is_of_ascend(name)).map(|(name, word)| (name.clone(), word.value.origin()))
    };
    let sourced = || {
        let of_cann = |path: &str| path.split('/').any(|part| part.eq_ignore_ascii_case("ascend"));
        let file = script.missing_files.iter().find(|(path, _)| of_cann(path));
        file.map(|(path, span)| (path.clone(), Some(*span)))
    };
    let Some((name, span)) = stated.or_else(before).or_else(sourced) else { return };
    if reading.value(Field::Accelerator).is_some() || reading.found.is_empty() {
        return;
    }
    let found = Found::new(Field::Accelerator, "Ascend-910B", Origin::Derived).by(name.clone(), span);
    reading.take(found.note("an NPU of a type that the text does not name"));
    if reading.software.as_ref().is_some_and(|(software, _)| software.semantics().eager_modules) {
        let what = "torch_npu kernels in place of PyTorch's";
        reading.not_modelled.push(NotModelled::new(&name, "", Effect::Memory, what).at_some(span));
    }
}

/// Variables that choose kernels, workspaces and the allocator's ways.
const VARIABLES: [(Field, &str); 5] = [
    (Field::NvteFlashAttn, "NVTE_FLASH_ATTN"),
    (Field::NvteFusedAttn, "NVTE_FUSED_ATTN"),
    (Field::NvteAllowNondeterministicAlgo, "NVTE_ALLOW_NONDETERMINISTIC_ALGO"),
    (Field::CublasWorkspaceConfig, "CUBLAS_WORKSPACE_CONFIG"),
    (Field::PytorchCudaAllocConf, "PYTORCH_CUDA_ALLOC_CONF"),
];

/// Training with fake-quantized expert weights, enabled by a variable of the Megatron patch of slime and miles
/// (`docker/patch/latest/megatron.patch`: `_get_weight_tensors` of `TEGroupedLinear`): each forward pass makes
/// quantized copies and saves them for backward.
const QUANTIZED_EXPERTS: &str = "OPEN_TRAINING_INT4_FAKE_QAT_FLAG";

/// Settings that variables pass to libraries rather than to the training program. Switches are 0 or 1.
fn libraries(reading: &mut Reading, script: &shell::Script) {
    let of_ray = of_ray(script);
    let given = |name: &str| {
        let mut prefixed = None;
        for command in &script.commands {
            for (known, word) in &command.environment {
                if known == name {
                    prefixed = word.value.known().map(|text| (text.to_owned(), word.value.origin()));
                }
            }
        }
        let job = of_ray.iter().rfind(|(known, ..)| known == name);
        let set = script.variable(name).and_then(|variable| variable.values.last());
        let set = set.and_then(|value| Some((value.known()?.to_owned(), value.origin())));
        job.map(|(_, text, span)| (text.clone(), Some(*span))).or(prefixed).or(set)
    };
    for (field, name) in VARIABLES {
        let switch = field.kind() == ValueKind::Flag;
        if let Some((text, span)) =
            given(name).filter(|(text, _)| !switch || matches!(text.as_str(), "0" | "1"))
        {
            reading.take(Found::new(field, text, Origin::Script).by(name, span));
        }
    }
    if let Some((_, span)) = given(QUANTIZED_EXPERTS).filter(|(text, _)| text == "1") {
        let what = "expert weights fake-quantized to INT4 in every forward pass";
        reading
            .not_modelled
            .push(NotModelled::new(QUANTIZED_EXPERTS, "", Effect::Memory, what).at_some(span));
    }
}

/// Variables that a Ray job gives its processes: `env_vars` of `--runtime-env-json`.
fn of_ray(script: &shell::Script) -> Vec<(String, String, Span)> {
    /// Maximum number of commands and variables examined.
    const MOST: usize = 256;
    const OPTION: &str = "--runtime-env-json";
    let mut found = Vec::new();
    for command in script.commands.iter().take(MOST) {
        for (at, word) in command.words.iter().enumerate() {
            let Some(rest) = word.text().strip_prefix(OPTION) else { continue };
            let next = command.words.get(at + 1).map_or("", shell::Word::text);
            let tree = read_json(rest.strip_prefix('=').unwrap_or(next), 0);
            let variables = tree.documents.first().and_then(|root| root.get("env_vars"));
            for entry in variables.map_or(&[][..], |node| node.entries()).iter().take(MOST) {
                if let Some(text) = entry.node.word() {
                    found.push((entry.key.clone(), text.to_owned(), word.origin()));
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::{Origin, Request, SettingValue, read};
    use shardscope_bash::Environment;
    use shardscope_plan::{AttentionKernel, Field};
    use shardscope_source::Source;

    #[test]
    fn variables_and_scheduler_lines_are_heeded() {
        let flags = "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --micro-batch-size 1 --bf16";
        let text = format!(
            "#SBATCH --gres=gpu:a100:8\nexport NVTE_FLASH_ATTN=0\nNVTE_FUSED_ATTN=0 torchrun --nproc_per_node 8 pretrain_gpt.py {flags}\n"
        );
        let source = Source::new(&text);
        let request = Request { source: &source, environment: &Environment::default(), overrides: &[] };
        let plan = read(&request).plan;
        let seen = plan.map(|plan| (plan.recipe().attention_kernel, plan.cluster().accelerator.name.clone()));
        assert_eq!(seen, Some((AttentionKernel::Unfused, "A100-SXM-80GB".to_owned())));
    }

    /// THUDM/slime `scripts/low_precision/run-kimi-k2-Thinking-int4.sh` in short: Ray gives the training its variables.
    #[test]
    fn variables_of_a_job_of_ray_are_heeded() {
        let flags = "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --micro-batch-size 1 --bf16 --vocab-size 1000";
        let read = |variables: &str, option: &str| {
            let text = format!(
                "J=\"{{\\\"env_vars\\\": {{\\\"NCCL_NVLS_ENABLE\\\": \\\"${{HAS_NVLINK}}\\\", {variables}}}}}\"\n\
                 ray job submit --address=http://here --runtime-env-json{option}\"$J\" -- torchrun --nproc_per_node 8 pretrain_gpt.py \
                 {flags}\n"
            );
            let source = Source::new(&text);
            read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
        };
        let variable = |name: &str, value: &str| format!("\\\"{name}\\\": \\\"{value}\\\"");
        for option in [" ", "="] {
            let off = format!("{}, {}", variable("NVTE_FLASH_ATTN", "0"), variable("NVTE_FUSED_ATTN", "0"));
            let plan = read(&off, option).plan.expect("a plan");
            assert_eq!(plan.recipe().attention_kernel, AttentionKernel::Unfused);
        }
        let quantized = read(&variable("OPEN_TRAINING_INT4_FAKE_QAT_FLAG", "1"), "=");
        let items: Vec<&str> = quantized.not_modelled.iter().map(|item| item.name.as_str()).collect();
        assert!(quantized.plan.is_none() && items == ["OPEN_TRAINING_INT4_FAKE_QAT_FLAG"], "{items:?}");
        assert!(read(&variable("OPEN_TRAINING_INT4_FAKE_QAT_FLAG", "0"), "=").plan.is_some());
    }

    #[test]
    fn a_slice_of_a_gpu_is_none() {
        let stopped = |gres: &str| {
            let flags = "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --micro-batch-size 1 --bf16";
            let text =
                format!("#SBATCH --gres={gres}\ntorchrun --nproc_per_node 1 pretrain_gpt.py {flags}\n");
            let source = Source::new(&text);
            let request = Request { source: &source, environment: &Environment::default(), overrides: &[] };
            let found = read(&request);
            let accelerator = found.setting(Field::Accelerator).map(|setting| setting.value.written());
            (found.not_modelled.iter().map(|item| item.name.clone()).collect::<Vec<_>>(), accelerator)
        };
        assert_eq!(stopped("gpu:a100_3g.20gb:1").0, ["--gres"]);
        assert_eq!(stopped("gpu:a100:1"), (Vec::new(), Some("A100-SXM-80GB".to_owned())));
        assert_eq!(stopped("gpu:h100_nvl:1"), (Vec::new(), Some("H100-NVL".to_owned())));
    }

    #[test]
    fn ascend_is_recognised_by_what_only_its_software_reads() {
        let resolved = |text: &str| {
            let source = Source::new(text);
            let resolution =
                read(&Request { source: &source, environment: &Environment::default(), overrides: &[] });
            let accelerator = resolution.setting(Field::Accelerator).map(|setting| setting.value.written());
            (accelerator.unwrap_or_default(), resolution.not_modelled.len())
        };
        let swift = "NPROC_PER_NODE=4 megatron sft --model Qwen/Qwen3-4B --tensor_model_parallel_size 2 --micro_batch_size 1 \
            --global_batch_size 4 --max_length 8192\n";
        let npu = ("Ascend-910B".to_owned(), 0);
        assert_eq!(resolved(swift), ("H100-SXM".to_owned(), 0));
        assert_eq!(resolved(&format!("PYTORCH_NPU_ALLOC_CONF='expandable_segments:True' {swift}")), npu);
        assert_eq!(resolved(&format!("export ASCEND_RT_VISIBLE_DEVICES=0,1,2,3\n{swift}")), npu);
        assert_eq!(resolved(&format!("source /usr/local/Ascend/ascend-toolkit/set_env.sh\n{swift}")), npu);
        // Habana's library reads these as well.
        assert_eq!(resolved(&format!("export HCCL_CONNECT_TIMEOUT=1200\n{swift}")).0, "H100-SXM");
        let tuned = "swift sft --model Qwen/Qwen3-4B --tuner_type lora --max_length 2048 --per_device_train_batch_size 1\n";
        assert_eq!(resolved(tuned).1, 0);
        assert_eq!(
            resolved(&format!("export ASCEND_RT_VISIBLE_DEVICES=0\n{tuned}")),
            ("Ascend-910B".to_owned(), 1)
        );
    }

    #[track_caller]
    fn settings(text: &str, expected: &[(Field, SettingValue, Origin)]) {
        let source = Source::new(text);
        let request = Request { source: &source, environment: &Environment::default(), overrides: &[] };
        let resolution = read(&request);
        for (field, value, origin) in expected {
            let found = resolution.setting(*field).map(|setting| (&setting.value, setting.origin));
            assert_eq!(found, Some((value, *origin)), "{}", field.name());
        }
        let asked: Vec<&str> = resolution.questions.iter().map(|question| question.name()).collect();
        let model_is_known = expected.iter().any(|(field, ..)| *field == Field::NumLayers);
        let mut sizes = vec!["seq_length", "micro_batch_size"];
        if !model_is_known {
            sizes.insert(0, "model");
        }
        assert_eq!(asked, sizes);
    }

    #[test]
    fn a_model_stated_elsewhere_is_the_catalogs_or_unknown() {
        use SettingValue::{Bool, Int, Null, Text};
        let train = "ray job submit -- python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 \
            ${MODEL_ARGS[@]} --tensor-model-parallel-size 2 --bf16";
        let norm = || Text("RMSNorm".to_owned());
        settings(
            &format!("source models/mine.sh\n{train} --hf-checkpoint /root/Qwen3-8B-FP8/\n"),
            &[
                (Field::NumLayers, Int(36), Origin::Catalog),
                (Field::Normalization, norm(), Origin::Catalog),
                (Field::VocabSize, Int(151_936), Origin::Catalog),
                (Field::Swiglu, Bool(true), Origin::Catalog),
            ],
        );
        settings(
            &format!("source \"$DIR/models/glm4-9B.sh\"\n{train}\n"),
            &[(Field::NumLayers, Int(40), Origin::Catalog), (Field::Normalization, norm(), Origin::Catalog)],
        );
        // For an unknown model nothing is said about its shape or Megatron's defaults.
        for unknown in ["mine", "deepseek-v3-5layer"] {
            settings(
                &format!("source models/{unknown}.sh\n{train}\n"),
                &[
                    (Field::Normalization, Null, Origin::Default),
                    (Field::Swiglu, Null, Origin::Default),
                    (Field::TensorModelParallelSize, Int(2), Origin::Script),
                ],
            );
        }
    }
}
