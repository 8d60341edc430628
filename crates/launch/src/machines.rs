//! How many accelerators a run was made on, according to hints outside the settings: a command in a comment, `8xH100`,
//! a file's name. None of them states the number for this run, so it is only a proposal when that is asked for.

use shardscope_catalog::accelerator_in;
use shardscope_resolve::Machines;
use shardscope_source::Source;

/// Maximum number of lines examined in one text, and of characters in a line; notebooks hold images in single lines.
const MOST_LINES: usize = 2_000;
const LONGEST: usize = 400;
/// Maximum number of characters that a question quotes.
const QUOTED: usize = 80;
/// The most accelerators that anything runs on.
const MOST: u64 = 1 << 20;

/// How strong the evidence for a number is, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// A command that starts the run, or a variable that holds the number.
    Command,
    /// After a setting in the same line, or together with the accelerator's name.
    Beside,
    /// In a comment of its own, or in the file's name.
    Remark,
}

/// A number of accelerators: the total, or those per node and the number of nodes; and their kind, if it is named.
struct Accelerators {
    count: u64,
    per_node: bool,
    nodes: Option<u64>,
    kind: Option<String>,
}

impl Accelerators {
    const fn all(count: u64) -> Self {
        Self { count, per_node: false, nodes: None, kind: None }
    }

    const fn of_node(count: u64, nodes: Option<u64>) -> Self {
        Self { count, per_node: true, nodes, kind: None }
    }
}

/// Accelerators as remarks name them.
const CARDS: [&str; 15] = [
    "a100", "h100", "h200", "h800", "h20", "gb200", "gb300", "b200", "b300", "a800", "v100", "mi250",
    "mi300", "mi325", "mi355",
];

/// The kind of accelerator that a remark begins with (`# B200 (SCHMIDT) colocate`), or that a part of a text's path or a job's name names
/// (`configs/MI355X/qwen.yaml`, `#SBATCH --job-name=tr8b-a100`): no number of them.
pub(super) fn kind_alone(source: &Source) -> Option<Machines> {
    let said = |kind: String, said: &str| Machines {
        count: 0,
        per_node: false,
        nodes: None,
        kind: Some(kind),
        said: said.chars().take(QUOTED).collect(),
    };
    let named = |words: &str| {
        let lower = words.to_ascii_lowercase();
        CARDS
            .iter()
            .any(|card| lower.contains(card))
            .then(|| accelerator_in(&lower).map(|known| known.name))?
    };
    for (index, part) in source.parts().iter().enumerate() {
        if let Some(kind) = named(&part.name) {
            return Some(said(kind, &part.name));
        }
        let remarks = source.part_text(index).lines().take(MOST_LINES).filter(|line| line.len() <= LONGEST);
        for remark in remarks.filter_map(|line| line.trim_start().strip_prefix('#')) {
            let words = remark.trim_start();
            let lower = words.to_ascii_lowercase();
            // A sentence about one accelerator is not that the run has it.
            if ["out of memory", "oom", "instead", " not ", "hours"].iter().any(|word| lower.contains(word)) {
                continue;
            }
            let begins = CARDS.iter().any(|card| lower.starts_with(card)).then(|| kind(&lower)).flatten();
            let of_job = || named(lower.strip_prefix("sbatch ")?.trim_start().strip_prefix("--job-name")?);
            if let Some(kind) = begins.or_else(of_job) {
                return Some(said(kind, words));
            }
        }
    }
    None
}

/// What the texts say, per node and in total, with the strongest evidence first.
pub(super) fn said(source: &Source) -> Vec<Machines> {
    let mut best: [Option<(Weight, Machines)>; 2] = [None, None];
    let mut named: Option<Machines> = None;
    let mut take =
        |weight: Weight, Accelerators { count, per_node, nodes, kind }: Accelerators, line: &str| {
            let best = &mut best[usize::from(per_node)];
            let better = best.as_ref().is_none_or(|(known, _)| weight < *known);
            let names = named.is_none() && kind.is_some();
            if (better || names) && (1..=MOST).contains(&count) {
                let signs = |sign: char| sign.is_whitespace() || matches!(sign, '#' | '"' | '\\' | '*' | ',');
                let line = line.trim_matches(signs);
                // A line of a notebook's cell ends in `\n",`.
                let line = line.strip_suffix("\\n").unwrap_or(line);
                let short: String = line.chars().take(QUOTED).collect();
                let more = if short.len() < line.len() { " …" } else { "" };
                let machines = Machines { count, per_node, nodes, kind, said: format!("{short}{more}") };
                if names {
                    named = Some(machines.clone());
                }
                if better {
                    *best = Some((weight, machines));
                }
            }
        };
    for (index, part) in source.parts().iter().enumerate() {
        let lines = source.part_text(index).lines().take(MOST_LINES);
        let counts = |line: &&str| {
            line.len() <= LONGEST
                && (line.bytes().any(|sign| sign.is_ascii_digit()) || line.contains("ingle"))
        };
        for line in lines.filter(counts) {
            let lower = line.to_ascii_lowercase();
            if let Some(count) = by_command(&lower) {
                take(Weight::Command, count, line);
            } else if let Some((weight, count)) = by_words(&lower) {
                take(weight, count, line);
            }
        }
        let name = part.name.to_ascii_lowercase();
        let name = name.rsplit('/').next().unwrap_or(&name);
        if let Some(count) = counted(name, "gpu") {
            take(Weight::Remark, Accelerators::all(count), name);
        } else if ["single_gpu", "single-gpu", "singlegpu"].iter().any(|word| name.contains(word)) {
            take(Weight::Remark, Accelerators::all(1), name);
        }
    }
    let mut all: Vec<(Weight, Machines)> = best.into_iter().flatten().collect();
    all.sort_by_key(|(weight, _)| *weight);
    let all = all.into_iter().map(|(_, machines)| machines);
    // Also if a launcher's line is the better evidence for the number.
    all.chain(named).collect()
}

/// A launcher's options, or a variable that holds a number of accelerators.
fn by_command(line: &str) -> Option<Accelerators> {
    /// Options of launchers for the processes per node, and for all processes.
    const PER_NODE: [&str; 2] = ["--nproc-per-node", "--nproc_per_node"];
    const ALL: [&str; 4] = ["--num_processes", "--num-processes", "--num_gpus", "--num-gpus"];
    const NODES: [&str; 3] = ["--nnodes", "--num_nodes", "--num-nodes"];
    const VARIABLES: [&str; 7] =
        ["num_devices", "num_gpus", "n_gpus", "ngpus", "gpu_count", "gpu_num", "n_gpu"];
    let given = |names: &[&str]| names.iter().find_map(|name| number(behind(line, name)?));
    if let Some(per_node) = given(&PER_NODE) {
        return Some(Accelerators::of_node(per_node, given(&NODES)));
    }
    if let Some(all) = given(&ALL) {
        return Some(Accelerators::all(all));
    }
    if let Some(list) =
        behind(line, "--include").and_then(|rest| rest.trim_start().strip_prefix("localhost:"))
    {
        return devices(list);
    }
    let assigned = line.trim_start().strip_prefix("export ").unwrap_or(line.trim_start());
    let assigned = assigned.split_once('=').filter(|(name, _)| VARIABLES.contains(name));
    assigned.and_then(|(_, value)| number(value).map(Accelerators::all)).or_else(|| visible(line))
}

/// The devices that a process can see (`CUDA_VISIBLE_DEVICES=0,1`, `os.environ["CUDA_VISIBLE_DEVICES"] = "0"`).
fn visible(line: &str) -> Option<Accelerators> {
    let (_, rest) = line.split_once("cuda_visible_devices")?;
    let list = rest.trim_start_matches(['"', '\'', ']', ')', ' ']).strip_prefix(['=', ','])?;
    let list = list.trim_start_matches(['"', '\'', ' ']);
    devices(list)
        .filter(|visible| visible.count > 0)
        .map(|visible| Accelerators::of_node(visible.count, None))
}

/// What a comment says: `8 x H100`, `designed for 32 GPUs`, `2 nodes with 8 GPUs each`.
fn by_words(line: &str) -> Option<(Weight, Accelerators)> {
    // Comparisons and bounds do not give the number of this run.
    const COMPARED: [&str; 8] = ["than", "least", "up to", "multi", "at most", "minimum", "maximum", "hours"];
    let remark = line.find(['#', '"', '/']).map(|at| line.split_at(at));
    let (before, words) = remark.unwrap_or((line, ""));
    let plain = remark.is_none() && !line.contains("single");
    if plain || COMPARED.iter().any(|word| line.contains(word)) {
        return None;
    }
    let weight = if before.trim().is_empty() { Weight::Remark } else { Weight::Beside };
    let named = CARDS.iter().find_map(|card| {
        let before = words.get(..words.find(card)?)?.trim_end_matches("nvidia ").trim_end_matches("amd ");
        let before = before.trim_end();
        // `8 x H100`, and `16 nodes of 8 H100s`.
        let times = before.strip_suffix(['x', '×', '*']).map(str::trim_end);
        let of_nodes = || {
            let digits = before.trim_end_matches(|sign: char| sign.is_ascii_digit());
            digits.trim_end().ends_with("nodes of").then_some(before)
        };
        // `# 512 H20(96GB)`: nothing but the number before the name.
        let alone = || {
            let digits = before.trim_start_matches(['#', '"', '/', ' ']);
            digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(digits)
        };
        let count = last_number(times.or_else(of_nodes).or_else(alone)?)?;
        Some((count, kind(words.get(words.find(card)?..)?)))
    });
    let nodes = counted(words, "node").filter(|nodes| *nodes > 1);
    let all = |count: u64| {
        let of_node = nodes.is_some() || words.contains("per node");
        if of_node { Accelerators::of_node(count, nodes) } else { Accelerators::all(count) }
    };
    if let Some((count, kind)) = named {
        return Some((weight.min(Weight::Beside), Accelerators { kind, ..all(count) }));
    }
    if let Some(count) = counted(words, "gpu") {
        return Some((weight, all(count)));
    }
    words.contains("single gpu").then_some((Weight::Remark, Accelerators::all(1)))
}

/// The accelerator at the beginning of a text in lower case: `a100 40gb nodes`.
fn kind(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_ascii_whitespace().take(2).collect();
    accelerator_in(&words.join("-")).map(|known| known.name)
}

/// The number before a word: `8 GPUs`, `8-gpu`, `8gpus`.
fn counted(text: &str, word: &str) -> Option<u64> {
    text.match_indices(word)
        .find_map(|(at, _)| last_number(text.get(..at)?.trim_end_matches([' ', '-', '_'])))
}

/// The whole number that a text ends with, as a word of its own.
fn last_number(text: &str) -> Option<u64> {
    let digits = text.len() - text.bytes().rev().take_while(u8::is_ascii_digit).count();
    let apart = text.get(..digits)?.chars().next_back();
    // Part of a name or of a fraction: `v2`, `0.8`.
    if apart.is_some_and(|sign| sign.is_alphanumeric() || matches!(sign, '.' | '>' | '<' | '+')) {
        return None;
    }
    text.get(digits..)?.parse().ok()
}

fn behind<'t>(line: &'t str, option: &str) -> Option<&'t str> {
    line.get(line.find(option)? + option.len()..)
}

/// The whole number after an option or an equals sign, if nothing else is attached to it.
fn number(rest: &str) -> Option<u64> {
    let rest = rest.trim_start_matches(['=', ' ', ':', '"', '\'']);
    let end = rest.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(rest.len());
    let more = rest.get(end..)?.chars().next();
    if more.is_some_and(|sign| sign.is_alphanumeric() || matches!(sign, '.' | '_' | ':')) {
        return None;
    }
    rest.get(..end)?.parse().ok()
}

/// The number of devices in a list.
fn devices(list: &str) -> Option<Accelerators> {
    let end = list.find(|sign: char| !sign.is_ascii_digit() && sign != ',').unwrap_or(list.len());
    let count = list.get(..end)?.split(',').filter(|device| !device.is_empty()).count();
    Some(Accelerators::all(u64::try_from(count).ok()?))
}

#[cfg(test)]
mod tests {
    use super::said;
    use crate::{Request, read};
    use shardscope_bash::Environment;
    use shardscope_source::Source;

    #[track_caller]
    fn check(name: &str, text: &str, expected: Option<(u64, bool, Option<u64>)>) {
        let machines = said(&Source::from_files([(name, text)])).into_iter().next();
        assert_eq!(machines.map(|one| (one.count, one.per_node, one.nodes)), expected, "{text}");
    }

    #[test]
    fn what_a_text_says_beside_its_settings_is_a_number_of_accelerators() {
        let all = |count| Some((count, false, None));
        let of_node = |count, nodes| Some((count, true, nodes));
        check("a", "#   tune run --nproc_per_node 2 lora_finetune --config llama3/8B", of_node(2, None));
        check("a", "# tune run --nnodes 2 --nproc_per_node 4 full_finetune_distributed", of_node(4, Some(2)));
        check("a", "# torchrun --nnodes $NODES --nproc_per_node 4 train.py", of_node(4, None));
        let adjust = "#   automodel x.yaml --nproc-per-node 8\n# Adjust --nproc-per-node to yours.";
        check("a", adjust, of_node(8, None));
        check("a", "deepspeed --include localhost:0,1,5 finetune.py \\\n", all(3));
        check("a", "NUM_DEVICES=8\nA=$((B / NUM_DEVICES))", all(8));
        check("a", "# Config for 1 node of 8 x H100s (80GB)", all(8));
        check("a", "# Config for 16 nodes of 8 H100s with FSDP1", of_node(8, Some(16)));
        check("a", "# This config is only tested on an 8xA100 machine.", all(8));
        check("a", "micro: 1 # If 2 nodes with 8 gpus each, the batch is 16", of_node(8, Some(2)));
        check("a", "global_train_batch_size: 64  # assuming 8 gpus", all(8));
        // A comment after a setting, before one on its own line.
        check("a", "# steps: 16 # designed for 8 GPUs\nsteps: 4 # designed for 32 GPUs", all(32));
        check("sft-lora-singlegpu.yaml", "a: b", all(1));
        check("llama3_8b_16gpus.yaml", "a: b", all(16));
        // A line of a notebook's cell is quoted without its JSON quoting.
        let cell = "   \"# Fine-tuning a code LLM on a single GPU\\n\",\n";
        let machines = said(&Source::from_files([("a.ipynb", cell)]));
        assert_eq!(
            machines.first().map(|one| one.said.as_str()),
            Some("Fine-tuning a code LLM on a single GPU")
        );
        for nothing in [
            "# more than 1 gpu is available",
            "# needs at least 8 GPUs",
            "# multi-gpu",
            "# batch 0.8 x H100",
            "# H100 has 989 TFLOP/s",
            "torchrun --nproc_per_node ${N} train.py",
            "gpus = 8.5  # none",
            "# v100",
            "",
        ] {
            check("train.yaml", nothing, None);
        }
    }

    /// It is proposed with its source line if the layout and the batch fit on it, and is never taken as given.
    #[test]
    fn what_a_text_says_is_proposed_for_the_number_that_is_asked() {
        let asked = |text: &str| {
            let source = Source::from_files([("run.sh", text)]);
            let environment = Environment::default();
            let read = read(&Request { source: &source, environment: &environment, overrides: &[] });
            assert!(read.plan.is_none(), "{text}");
            let [asked] = read.questions.as_slice() else { panic!("{text}: {:?}", read.questions) };
            (
                asked.name().to_owned(),
                asked.proposal.clone().unwrap_or_default(),
                asked.prompt.contains("The text says"),
            )
        };
        const RUN: &str = "pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 \
            --micro-batch-size 1 --bf16 --vocab-size 32000 --swiglu";
        let said = |name: &str, proposal: &str, says| (name.to_owned(), proposal.to_owned(), says);
        let total = format!("srun {RUN}");
        assert_eq!(asked(&total), said("world_size", "8", false));
        let remark = format!("{total}\n# ran on 2 nodes of 4 x A100");
        assert_eq!(asked(&remark), said("world_size", "8", true));
        assert_eq!(asked(&format!("{total}\n# 3 x A100")), said("world_size", "3", true));
        // Neither the layout nor the batch fits the number in the comment.
        let cut = " --tensor-model-parallel-size 2 --sequence-parallel\n# 3 x A100";
        assert_eq!(asked(&format!("{total}{cut}")), said("world_size", "8", false));
        assert_eq!(
            asked(&format!("{total} --global-batch-size 8\n# 3 x A100")),
            said("world_size", "8", false)
        );
        let per_node = format!("torchrun --nnodes $N --nproc_per_node 8 {RUN}");
        assert_eq!(asked(&per_node), said("num_nodes", "1", false));
        assert_eq!(asked(&format!("# 32 x H100\n{per_node}")), said("num_nodes", "4", true));
        let nodes = format!("torchrun --nnodes 2 --nproc_per_node $P {RUN}\n");
        assert_eq!(asked(&format!("{nodes}# 8xH100")), said("gpus_per_node", "4", true));
        assert_eq!(
            asked(&format!("{nodes}# torchrun --nproc_per_node 6 x.py")),
            said("gpus_per_node", "6", true)
        );
    }
}
