//! The settings of NeMo-RL's own files, which its recipes name under `defaults` and partly override
//! (`examples/configs`). They are stored here so that a recipe can be read without them.
//! `tests/record/nemo_rl_bases.py` writes the table.

use super::super::scalars::Leaf;
use shardscope_source::LaterText;

/// Blocks of `[file] parents...`, then a line for each key and its value. In a program with the feature `tables-later`
/// no file of NeMo-RL's is known until the table is supplied.
pub static TABLE: LaterText = LaterText::new(
    "nemo-rl.txt",
    if cfg!(feature = "tables-later") { None } else { Some(include_str!("nemo-rl.txt")) },
);

/// Longest chain of files that build on each other; NeMo-RL's own has four.
const LONGEST: usize = 8;

/// The lines of a file's block, including the first one.
fn block(file: &str) -> Option<(&'static str, std::str::Lines<'static>)> {
    TABLE.text().split("\n[").find_map(|block| {
        let (name, rest) = block.split_once(']')?;
        let mut lines = rest.lines();
        (name == file).then(|| (lines.next().unwrap_or_default(), lines))
    })
}

/// Whether a base file's values are known here, so that it need not be pasted.
pub(super) fn knows(file: &str) -> bool {
    block(file).is_some()
}

/// The settings of a base file, preceded by those of the files that it builds on, so that
/// the last one of a path counts.
pub(super) fn leaves(file: &str) -> Vec<Leaf> {
    let mut found = Vec::new();
    collect(file, LONGEST, &mut found);
    found
}

fn collect(file: &str, left: usize, into: &mut Vec<Leaf>) {
    let Some((parents, lines)) = block(file).filter(|_| left > 0) else { return };
    for parent in parents.split_ascii_whitespace() {
        collect(parent, left - 1, into);
    }
    for (path, value) in lines.filter_map(|line| line.split_once(' ')) {
        into.push(Leaf::of_base(file, path, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_found_with_those_it_builds_on() {
        let files: Vec<&str> = TABLE
            .text()
            .lines()
            .filter_map(|line| Some(line.strip_prefix('[')?.split_once(']')?.0))
            .collect();
        assert!(files.len() > 30, "{files:?}");
        for file in files {
            assert!(!leaves(file).is_empty(), "{file}");
            let (parents, _) = block(file).expect("it was listed");
            assert!(parents.split_ascii_whitespace().all(knows), "{file} builds on {parents}");
        }
        assert!(!knows("grpo_math"));
        assert!(leaves("grpo_math").is_empty());
    }

    #[test]
    fn a_file_wins_over_what_it_builds_on() {
        let leaves = leaves("grpo_math_8B_megatron.yaml");
        let last = |path: &str| leaves.iter().rfind(|leaf| leaf.path == path).map(|leaf| leaf.value.as_str());
        assert_eq!(last("policy.model_name"), Some("meta-llama/Llama-3.1-8B-Instruct"));
        assert_eq!(last("policy.megatron_cfg.enabled"), Some("true"));
        // From `grpo_math_1B.yaml`, two files below.
        assert_eq!(last("policy.generation.vllm_cfg.gpu_memory_utilization"), Some("0.6"));
    }
}
