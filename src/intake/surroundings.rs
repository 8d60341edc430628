//! What a script says around its command: lines to the scheduler, variables that choose kernels.

use super::{Found, Origin, Reading, launch::Launch, shell};
use crate::catalog;
use crate::plan::{Field, Kind};

/// The launch's reading with what stands around the command.
pub(super) fn reading(launch: &Launch) -> Reading {
    let mut reading = launch.reading();
    accelerator(&mut reading, &launch.script);
    libraries(&mut reading, &launch.script);
    reading
}

/// The accelerator that a line addressed to the scheduler asks for.
fn accelerator(reading: &mut Reading, script: &shell::Script) {
    const KEYS: [&str; 8] =
        ["--constraint", "-C", "--gres", "--gpus", "--gpus-per-node", "--partition", "-p", "--gpus-per-task"];
    let asks = |line: &&shell::Directive| KEYS.contains(&line.key.as_str());
    let told = script.directives.iter().filter(asks).find_map(|line| {
        let found = catalog::accelerator_in(line.value.text())?;
        Some((found.name, line))
    });
    if let Some((name, line)) = told {
        let found = Found::new(Field::Accelerator, name, Origin::Script);
        reading.take(found.by(format!("#{} {}", line.scheduler, line.key), Some(line.span)));
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

/// What variables say to libraries rather than to the training program. Switches are 0 or 1.
fn libraries(reading: &mut Reading, script: &shell::Script) {
    for (field, name) in VARIABLES {
        let before = script.commands.iter().flat_map(|command| &command.environment);
        let prefixed = before.filter(|(known, _)| known == name).map(|(_, word)| &word.value).next_back();
        let set = script.variable(name).and_then(|variable| variable.values.last());
        let switch = field.kind() == Kind::Flag;
        if let Some(value) = prefixed.or(set)
            && let Some(text) = value.known().filter(|text| !switch || matches!(*text, "0" | "1"))
        {
            reading.take(Found::new(field, text, Origin::Script).by(name, value.origin()));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::intake::shell::Environment;
    use crate::intake::{Request, read};
    use crate::plan::AttentionKernel;
    use crate::text::Source;

    #[test]
    fn variables_and_scheduler_lines_are_heeded() {
        let flags = "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --micro-batch-size 1 --bf16";
        let text = format!(
            "#SBATCH --gres=gpu:a100:8\nexport NVTE_FLASH_ATTN=0\nNVTE_FUSED_ATTN=0 torchrun --nproc_per_node 8 pretrain_gpt.py {flags}\n"
        );
        let source = Source::new(&text);
        let request = Request { source: &source, environment: &Environment::default(), overrides: &[] };
        let plan = read(&request).plan;
        let told = plan.map(|plan| (plan.recipe().attention_kernel, plan.cluster().accelerator.name.clone()));
        assert_eq!(told, Some((AttentionKernel::Unfused, "A100-SXM-80GB".to_owned())));
    }
}
