//! The line that starts a program, which sets what its argument classes leave open: one question with a proposal.

use crate::{Found, Origin, Question, Reading};
use shardscope_bash::base_name;
use shardscope_plan::Field;
use shardscope_resolve::Asked;
use shardscope_source::{Code, Diagnostic};

/// The beginning of a line that runs a program.
const LAUNCHERS: [&str; 6] = ["torchrun ", "deepspeed ", "accelerate launch ", "python ", "python3 ", "trl "];
/// Most lines of a usage text that are joined, and most characters of it.
const MOST_LINES: usize = 40;
const LONGEST: usize = 1_000;

/// Asks for the line. `own`: a line of a program that declares its options itself.
pub(super) fn ask(reading: &mut Reading, text: &str, file: &str, model: Option<&str>, own: Option<String>) {
    let message = "this program takes its settings from its launch command, which is not here";
    let hint = "paste that command as well, or answer the question";
    reading.diagnostics.push(Diagnostic::error(Code::NoCommandLine, message).hint(hint));
    reading.questions.push(Question {
        asks: Asked::CommandLine,
        prompt: "Which command starts this program? It is read as if it were pasted with it".to_owned(),
        choices: Vec::new(),
        proposal: Some(match own {
            Some(own) => usage(text).filter(|line| line.contains(base_name(file))).unwrap_or(own),
            None => usage(text).unwrap_or_else(|| usual(file, model)),
        }),
    });
}

/// A line shown in the program's own comments.
fn usage(text: &str) -> Option<String> {
    let bare = |line: &'_ str| -> String {
        line.trim().trim_start_matches(['#', '$', '>', ' ']).trim_end_matches('`').trim().to_owned()
    };
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let mut whole = bare(line);
        if !LAUNCHERS.iter().any(|launcher| whole.starts_with(launcher)) {
            continue;
        }
        for _ in 0..MOST_LINES {
            let Some(rest) = whole.strip_suffix('\\') else { break };
            let next = lines.next().map(bare).unwrap_or_default();
            whole = format!("{} {next}", rest.trim_end());
        }
        // With options, and without placeholders.
        let plain: String = whole.split(['\'', '"']).step_by(2).collect();
        let open = ["<", "...", "…", "{", "[", "path/to", "$"].iter().any(|sign| plain.contains(sign));
        if whole.contains(" --") && !open && whole.len() < LONGEST {
            return Some(whole);
        }
    }
    None
}

/// The program with its options at their defaults: on one accelerator, started by `python`.
pub(super) fn by_default(text: &str, file: &str, taken: &[(String, String)]) -> Option<String> {
    let bare = |text: &str| {
        !text.is_empty() && !text.contains(|sign: char| sign.is_whitespace() || "'\"$`".contains(sign))
    };
    let mut words: Vec<String> = Vec::new();
    for (name, value) in taken.iter().filter(|(_, value)| bare(value)) {
        // In the program's spelling.
        let dashed = name.replace('_', "-");
        let is_spelt = |quote: char| text.contains(&format!("{quote}--{dashed}{quote}"));
        let name = if is_spelt('"') || is_spelt('\'') { &dashed } else { name };
        let word = match value.as_str() {
            // A switch that is off is omitted.
            "false" => continue,
            "true" => format!("--{name}"),
            value => format!("--{name} {value}"),
        };
        if !words.contains(&word) {
            words.push(word);
        }
    }
    let program = Some(base_name(file)).filter(|name| name.ends_with(".py")).unwrap_or("train.py");
    (!words.is_empty()).then(|| format!("python {program} {}", words.join(" ")))
}

/// One node with eight GPUs and the program's own model, in the most common training format.
fn usual(file: &str, model: Option<&str>) -> String {
    let program = Some(base_name(file)).filter(|name| name.ends_with(".py")).unwrap_or("train.py");
    let model = model.filter(|model| !model.is_empty() && model.chars().all(|sign| !sign.is_whitespace()));
    let model = model.map(|model| format!("--model_name_or_path {model} ")).unwrap_or_default();
    format!(
        "torchrun --nproc_per_node 8 {program} {model}--per_device_train_batch_size 1 --bf16 True --output_dir output"
    )
}

/// Adapters under a condition that the text does not decide.
pub(super) fn ask_for_adapters(reading: &mut Reading) {
    let mut found = Found::new(Field::TrainType, String::new(), Origin::Script);
    found.hole = Some("a condition of the program".to_owned());
    reading.take(found);
    reading.questions.push(Question {
        asks: Asked::Setting(Field::TrainType),
        prompt: "The program sets up LoRA under a condition that the text does not decide. Does it train adapters (lora) or all weights \
                 (full)?"
            .to_owned(),
        choices: ["lora", "full"].map(str::to_owned).to_vec(),
        proposal: Some("lora".to_owned()),
    });
}
