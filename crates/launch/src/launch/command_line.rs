//! The parts of a launch line: launchers with their own options, the program, its arguments.

use super::chosen::Chosen;
use super::flag::{flag_name, is_spelt};
use shardscope_bash::{Value, Word};

/// What starts the processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// `torchrun`, `python -m torch.distributed.run`, `python -m torch.distributed.launch`.
    Torch,
    /// `deepspeed`
    DeepSpeed,
    /// `mpirun`, `mpiexec`
    Mpi,
    /// `srun`
    Srun,
    /// `aprun`
    Aprun,
    /// `ray job submit`
    Ray,
    /// `accelerate launch`
    Accelerate,
    /// `megatron sft` of ms-swift, which itself runs torchrun.
    Swift,
    /// A trainer's own command, which itself runs torchrun or accelerate: `swift sft`, `llamafactory-cli train`,
    /// `trl sft`, `axolotl train`.
    Trainer,
    /// `colossalai run`
    Colossal,
    /// `mason.py`, which starts jobs on AI2's cluster.
    Mason,
    /// `python`
    Python,
}

/// A parsed launch line.
#[derive(Clone, Debug, Default)]
pub struct CommandLine {
    /// Each launcher with its options, the one nearest to the program first.
    pub launchers: Vec<(Launcher, Vec<Word>)>,
    /// The training program.
    pub program: Option<Word>,
    /// The words after the program.
    pub arguments: Vec<Word>,
    /// The subcommand of a trainer's own command.
    pub subcommand: Option<Word>,
    /// Whether another program runs the command, on machines that it chooses.
    pub wrapped: bool,
}

/// Options of torchrun and its predecessors that take a value.
const TORCH_VALUES: &[&str] = &[
    "--nnodes",
    "--nproc-per-node",
    "--node-rank",
    "--master-addr",
    "--master-port",
    "--rdzv-backend",
    "--rdzv-endpoint",
    "--rdzv-id",
    "--rdzv-conf",
    "--max-restarts",
    "--monitor-interval",
    "--log-dir",
    "--redirects",
    "--tee",
    "--local-addr",
];
/// Dashed options of `accelerate launch` that take a value and that torchrun does not have
/// (`accelerate/commands/launch.py`).
const ACCELERATE_VALUES: &[&str] = &[
    "--config-file",
    "--main-process-ip",
    "--deepspeed-config-file",
    "--deepspeed-hostfile",
    "--fsdp-transformer-layer-cls-to-wrap",
    "--gradient-clipping",
];
const TORCH_SWITCHES: &[&str] = &["--standalone", "--use-env", "--no-python"];

impl CommandLine {
    /// Parses the chosen command.
    pub fn new(chosen: &Chosen) -> Self {
        let mut line = CommandLine::default();
        let words = chosen.words.as_slice();
        if chosen.fragment {
            line.arguments = without_torch_options(words);
            line.launchers.push((Launcher::Torch, words.to_vec()));
            return line;
        }
        let (wrapper, words) = unwrap(words);
        line.wrapped = !wrapper.is_empty();
        let starts = launchers(words);
        let program = program(words, &starts);
        let end = program.map_or(words.len(), |(at, _)| at);
        line.subcommand = subcommand(words).cloned();
        line.push_segments(words, &starts, end);
        match program {
            Some((at, arguments)) => {
                line.program = words.get(at).cloned();
                line.arguments = words.get(arguments..).unwrap_or(&[]).to_vec();
            }
            None => line.arguments = without_torch_options(words),
        }
        for around in [wrapper].into_iter().chain(chosen.around.iter().map(Vec::as_slice)) {
            let starts = launchers(around);
            line.push_segments(around, &starts, around.len());
        }
        line
    }

    fn push_segments(&mut self, words: &[Word], starts: &[(usize, Launcher)], end: usize) {
        let mut to = end;
        for (start, launcher) in starts.iter().rev().filter(|(start, _)| *start < end) {
            self.launchers.push((*launcher, words.get(*start..to).unwrap_or(&[]).to_vec()));
            to = *start;
        }
    }

    /// The most specific launcher: the one nearest to the program that is not plain python.
    pub fn launcher(&self) -> Option<Launcher> {
        let telling = self.launchers.iter().find(|(launcher, _)| *launcher != Launcher::Python);
        Some(telling.or(self.launchers.first())?.0)
    }

    /// The program's name, or that of the launcher if it is a trainer itself (`swift sft`).
    pub fn trainer(&self) -> &str {
        self.program.as_ref().map_or("", Word::text)
    }

    /// Whether the line contains this launcher.
    pub fn has(&self, launcher: Launcher) -> bool {
        self.launchers.iter().any(|(kind, _)| *kind == launcher)
    }

    /// The last value given to a launcher under one of these names, in Megatron's dashed spelling, and the word with
    /// the option's name.
    pub fn option(&self, launcher: Launcher, names: &[&str]) -> Option<(Value, Word)> {
        for (kind, words) in &self.launchers {
            if *kind == launcher
                && let Some(found) = option(words, names)
            {
                return Some(found);
            }
        }
        None
    }

    /// Whether a launcher gets words that are unknown, any of which may be an option; the value of an option is none.
    pub fn is_open(&self, launcher: Launcher) -> bool {
        let open = |words: &[Word]| {
            (0..words.len()).any(|at| {
                let is_value = at.checked_sub(1).is_some_and(|before| takes_value(words[before].text()));
                words[at].value.only_hole().is_some() && !is_value
            })
        };
        self.launchers.iter().any(|(kind, words)| *kind == launcher && open(words))
    }
}

/// The last value given under one of these names.
pub(super) fn option(words: &[Word], names: &[&str]) -> Option<(Value, Word)> {
    let mut found = None;
    for (at, word) in words.iter().enumerate() {
        let text = word.text();
        let inline = text.find('=');
        let name = flag_name(text);
        let value = if !text.starts_with('-') {
            None
        } else if is_among(name, names) {
            match (inline, words.get(at + 1)) {
                (Some(equals), _) => Some(word.value.part(equals + 1, text.len())),
                (None, Some(next)) if !next.text().starts_with('-') => Some(next.value.clone()),
                _ => None,
            }
        } else if let Some((short, count)) = name.split_at_checked(2)
            && names.contains(&short)
            && count.bytes().all(|byte| byte.is_ascii_digit())
        {
            // -N4
            Some(word.value.part(2, text.len()))
        } else {
            None
        };
        if let Some(value) = value {
            found = Some((value, word.clone()));
        }
    }
    found
}

/// Splits `python submit.py --nodes 8 -- [source setup.sh &&] torchrun ...` into a program with its own options and,
/// after a lone `--`, the command that it runs elsewhere.
fn unwrap(words: &[Word]) -> (&[Word], &[Word]) {
    for (at, _) in words.iter().enumerate().rev().filter(|(_, word)| word.text() == "--") {
        let (wrapper, rest) = words.split_at(at);
        let inner = rest.iter().rposition(|word| word.text() == "&&").unwrap_or(0) + 1;
        let inner = rest.get(inner..).unwrap_or(&[]);
        let program = inner.iter().take(4).any(|word| word.text().ends_with(".py"));
        if program || !launchers(inner).is_empty() {
            return (wrapper, inner);
        }
    }
    (&[], words)
}

fn is_among(flag: &str, dashed: &[&str]) -> bool {
    dashed.iter().any(|known| is_spelt(flag, known))
}

fn base(word: &Word) -> &str {
    shardscope_bash::base_name(word.text())
}

/// Commands of trainers, each with its subcommands, separated by single spaces.
const TRAINERS: [(&str, &str); 8] = [
    ("swift", "sft pt rlhf infer eval deploy export app web-ui rollout merge-lora sample"),
    ("llamafactory-cli", "train chat api webchat webui export eval"),
    ("lmf", "train chat api webchat webui export eval"),
    ("trl", "sft dpo grpo kto reward rloo vllm-serve env chat"),
    ("axolotl", "train inference evaluate merge-lora merge-sharded-fsdp-weights preprocess"),
    ("tune", "run"),
    ("xtuner", "train"),
    ("nemo", "llm"),
];

/// Whether a word is a trainer's command followed by one of its subcommands.
pub(super) fn is_trainer(name: &str, subcommand: &str) -> bool {
    TRAINERS.iter().any(|(trainer, can)| *trainer == name && can.split(' ').any(|word| word == subcommand))
}

/// The subcommand of a trainer's command.
pub(super) fn subcommand(words: &[Word]) -> Option<&Word> {
    let pair = words
        .windows(2)
        .find(|pair| matches!(pair, [name, subcommand] if is_trainer(base(name), subcommand.text())));
    pair.and_then(|pair| pair.get(1))
}

/// The positions where launchers start.
fn launchers(words: &[Word]) -> Vec<(usize, Launcher)> {
    let mut starts = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).map_or("", Word::text);
        let launcher = match base(word) {
            "torchrun" | "hyperpodrun" | "torch.distributed.launch" | "torch.distributed.run" => {
                Launcher::Torch
            }
            "launch.py" | "run.py" if word.text().contains("torch/distributed") => Launcher::Torch,
            "deepspeed" => Launcher::DeepSpeed,
            "mpirun" | "mpiexec" | "orterun" | "mpiexec.hydra" => Launcher::Mpi,
            "srun" => Launcher::Srun,
            "aprun" => Launcher::Aprun,
            "ray" if next == "job" => Launcher::Ray,
            "accelerate" if next == "launch" => Launcher::Accelerate,
            "accelerate.commands.launch" => Launcher::Accelerate,
            "megatron" if matches!(next, "sft" | "pt" | "rlhf") => Launcher::Swift,
            name if is_trainer(name, next) => Launcher::Trainer,
            "colossalai" if next == "run" => Launcher::Colossal,
            "mason.py" => Launcher::Mason,
            "python3.10" | "python3.11" | "python3.12" => Launcher::Python,
            name if name.starts_with("python") && !name.contains('.') => Launcher::Python,
            _ => continue,
        };
        if matches!(launcher, Launcher::Torch | Launcher::Accelerate)
            && let Some((_, Launcher::Python)) = starts.last()
        {
            starts.pop();
        }
        starts.push((at, launcher));
        if starts.len() > 40 {
            break;
        }
    }
    starts
}

/// The program among the words.
pub(super) fn program_of(words: &[Word]) -> Option<&Word> {
    words.get(program(words, &launchers(words))?.0)
}

/// The program among the words, and where its arguments start.
fn program(words: &[Word], starts: &[(usize, Launcher)]) -> Option<(usize, usize)> {
    // A trainer's own command is its program, regardless of the Python files that its options name.
    let trainer =
        starts.iter().find(|(_, launcher)| matches!(launcher, Launcher::Swift | Launcher::Trainer)).copied();
    let end = trainer.map_or(words.len(), |(at, _)| at);
    // `-m` of torchrun and accelerate is a switch and may come before their other options.
    let mut switched = false;
    for (at, word) in words.iter().enumerate().take(end) {
        let torch = word.text().contains("torch/distributed");
        if word.text().ends_with(".py") && !torch && !word.text().starts_with('-') {
            return Some((at, at + 1));
        }
        // torchtitan has its own `--module`, which takes a plain name.
        let module = at > 0
            && words.get(at - 1).is_some_and(|before| {
                before.text() == "-m" || before.text() == "--module" && word.text().contains('.')
            });
        if module && word.text().starts_with('-') {
            switched = true;
            continue;
        }
        let valued = at > 0 && words.get(at - 1).is_some_and(|before| takes_value(before.text()));
        let module =
            module || switched && !valued && word.text().contains('.') && !word.text().starts_with('-');
        let launches = ["torch.distributed", "accelerate.commands.launch"];
        if module && !launches.iter().any(|launcher| word.text().starts_with(launcher)) {
            return Some((at, at + 1));
        }
    }
    let (at, launcher) = trainer?;
    // The next word is its subcommand.
    Some((if launcher == Launcher::Trainer { at } else { at + 1 }, at + 2))
}

/// Whether a word is an option of torchrun or accelerate whose value is the next word.
pub(super) fn takes_value(word: &str) -> bool {
    !word.contains('=')
        && [TORCH_VALUES, ACCELERATE_VALUES].iter().any(|names| is_among(flag_name(word), names))
}

/// The words without torchrun's options, for lines whose program is not visible.
fn without_torch_options(words: &[Word]) -> Vec<Word> {
    let mut out = Vec::new();
    let mut skip = false;
    for word in words {
        if std::mem::take(&mut skip) && !word.text().starts_with('-') {
            continue;
        }
        let name = flag_name(word.text());
        if is_among(name, TORCH_VALUES) {
            skip = !word.text().contains('=');
        } else if !is_among(name, TORCH_SWITCHES) {
            out.push(word.clone());
        }
    }
    out
}
