//! Questions for what the text takes from its environment, each asked once at its root.

use crate::{Asked, Question};
use shardscope_bash::{Hole, HoleId, HoleKind, Script};
use shardscope_plan::{Field, ValueKind};

/// Number of positional parameters above which the entire call line is asked for.
const SINGLE_POSITIONALS: usize = 3;

/// Maximum number of words in a proposed call line.
const LONGEST_LINE: usize = 64;
/// An argument that decides no setting: a number of tokens so large that no division rounds it to zero.
const ANY_WORD: &str = "1000000000";
/// Words in variables' names, and the argument proposed for such a variable if it decides no setting.
const NAMED: [(&str, &str); 29] = [
    // TinyLLaVA Factory's scripts (`scripts/train/train_phi.sh`): a second tower is only named beside others than these.
    ("VERSION2", "none"),
    ("LLM", "microsoft/phi-2"),
    ("VT", "google/siglip-so400m-patch14-384"),
    ("CN", "mlp2x_gelu"),
    ("RECIPE", "common"),
    ("EXTRA", "0"),
    ("PAD", "4096"),
    ("LEN", "1024"),
    ("LENGTH", "1024"),
    ("MEMORY", "0.5"),
    ("UTILIZATION", "0.5"),
    ("KL", "0.01"),
    ("COEF", "0.01"),
    ("SAMPLES", "1000"),
    ("PRETRAIN", "path"),
    ("OUTPUT", "path"),
    ("KEY", "key"),
    ("LR", "1e-5"),
    ("PATH", "path"),
    ("DIR", "path"),
    ("CHECKPOINT", "path"),
    ("NAME", "name"),
    ("INTERVAL", "1000"),
    ("ITER", "1000"),
    ("ITERS", "1000"),
    ("EPOCH", "1"),
    ("EPOCHS", "1"),
    ("DATASET", "path"),
    ("TOKENIZER", "path"),
];
/// Rows that the embeddings of Qwen 2 and 3 have beyond the entries of their vocabulary, below 14B parameters (151,936
/// for 151,643; Pai's scripts state it as well).
const QWENS: &str = "293";
/// The format proposed for a script that offers several.
const USUAL_FORMAT: &str = "bf16";

/// Variables in which scripts hold degrees of parallelism.
const DEGREES: [&str; 9] = ["TP", "PP", "CP", "EP", "ETP", "TP_SIZE", "PP_SIZE", "EP_SIZE", "MP_SIZE"];

/// Arguments with which the script makes a plan: for each the first value that it is compared with, or else one that
/// suits what it decides.
fn call_line(script: &Script, holes: &[(HoleId, String)]) -> Option<String> {
    let mut words: Vec<&str> = Vec::new();
    let place = |hole: &Hole| (hole.kind == HoleKind::Positional).then(|| hole.name.parse::<usize>().ok())?;
    for hole in &script.holes {
        let Some(at) = place(hole).filter(|at| (1..=LONGEST_LINE).contains(at)) else { continue };
        if words.len() < at {
            words.resize(at, ANY_WORD);
        }
        let usual = hole.choices.iter().find(|choice| *choice == USUAL_FORMAT);
        if let Some(choice) = usual.or(hole.choices.first()).filter(|choice| is_word(choice)) {
            words[at - 1] = choice;
        }
    }
    for (id, about) in holes {
        let Some(word) = Field::named(about).and_then(usual) else { continue };
        for root in script.roots(*id) {
            let at = script.hole(root).filter(|hole| hole.choices.is_empty()).and_then(place);
            if let Some(known) = at.and_then(|at| words.get_mut(at.wrapping_sub(1)))
                && *known == ANY_WORD
            {
                *known = word;
            }
        }
    }
    // A degree that is only used in a branch decided by the call, recognised by the variable that holds it.
    for variable in script.variables.iter().filter(|variable| DEGREES.contains(&variable.name.as_str())) {
        let hole = variable.values.first().and_then(|value| script.hole(value.only_hole()?));
        if let Some(known) = hole.and_then(place).and_then(|at| words.get_mut(at.wrapping_sub(1)))
            && *known == ANY_WORD
        {
            *known = "1";
        }
    }
    let qwens = || {
        let words = script.commands.iter().flat_map(|command| &command.words);
        words.map(|word| word.text()).any(|text| text.starts_with("Qwen") && text.ends_with("Tokenizer"))
    };
    // The recipe that trains what the same command says of the decoder.
    let adapts = || {
        let pairs = script.commands.iter().flat_map(|command| command.words.windows(2));
        pairs
            .map(|pair| [&pair[0], &pair[1]].map(|word| word.text()))
            .any(|pair| pair == ["--tune_type_llm", "lora"])
    };
    for variable in &script.variables {
        let hole = variable.values.first().and_then(|value| script.hole(value.only_hole()?));
        let named = NAMED.iter().find(|(part, _)| variable.name.split('_').any(|word| word == *part));
        if let Some((part, word)) = named
            && let Some(known) = hole.and_then(place).and_then(|at| words.get_mut(at.wrapping_sub(1)))
            && *known == ANY_WORD
        {
            *known = match *part {
                "EXTRA" if qwens() => QWENS,
                "RECIPE" if adapts() => "lora",
                _ => word,
            };
        }
    }
    (!words.is_empty()).then(|| words.join(" "))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A value for a setting with which a plan can be made.
fn usual(field: Field) -> Option<&'static str> {
    match field {
        Field::SeqLength | Field::MaxPositionEmbeddings => Some("4096"),
        Field::GlobalBatchSize => Some("256"),
        // A tower and a projector are named, not counted.
        Field::TrainIters | Field::TrainSamples | Field::VisionTower | Field::ProjectorLayers => None,
        _ => match field.kind() {
            ValueKind::Count(..) => Some("1"),
            ValueKind::Flag => Some("false"),
            _ => None,
        },
    }
}

/// The name under which a hole is asked for and answered: that of a variable, or `$3`.
pub(super) fn name(script: &Script, id: HoleId) -> String {
    match root(script, id) {
        Some(hole) => shown(hole),
        None => String::new(),
    }
}

/// The first root of a hole that can be answered by name, or else the first root.
fn root(script: &Script, id: HoleId) -> Option<&Hole> {
    let roots = script.roots(id);
    let holes = || roots.iter().filter_map(|root| script.hole(*root));
    holes().find(|hole| answerable(hole)).or_else(|| holes().next())
}

fn answerable(hole: &Hole) -> bool {
    matches!(hole.kind, HoleKind::Variable | HoleKind::Positional | HoleKind::Branch)
}

fn shown(hole: &Hole) -> String {
    match hole.kind {
        HoleKind::Positional => format!("${}", hole.name),
        HoleKind::Command => format!("$({})", hole.name),
        _ => hole.name.clone(),
    }
}

/// One question for each root of these holes that can be answered by name.
pub(super) fn questions(script: &Script, holes: &[(HoleId, String)]) -> Vec<Question> {
    let mut out: Vec<Question> = Vec::new();
    let mut positional = 0;
    for (id, about) in holes {
        let Some(hole) = root(script, *id).filter(|hole| answerable(hole)) else { continue };
        let name = shown(hole);
        if let Some(known) = out.iter_mut().find(|question| question.name() == name) {
            if known.prompt.len() < 200 && !known.prompt.contains(about.as_str()) {
                known.prompt.push_str(", ");
                known.prompt.push_str(about);
            }
            continue;
        }
        positional += usize::from(hole.kind == HoleKind::Positional);
        let prompt = match hole.kind {
            HoleKind::Positional => format!("Argument {name} of the call? It decides {about}"),
            _ => format!("{name}? It comes from the environment and decides {about}"),
        };
        out.push(Question {
            asks: Asked::from_name(&name),
            prompt,
            choices: hole.choices.clone(),
            proposal: hole.choices.first().cloned(),
        });
    }
    if positional > SINGLE_POSITIONALS {
        let mut named = vec![Question {
            asks: Asked::Arguments,
            prompt: "Which arguments is the script called with? They decide most settings".to_owned(),
            choices: Vec::new(),
            proposal: call_line(script, holes),
        }];
        for question in out {
            if !matches!(question.asks, Asked::Argument(_)) {
                named.push(question);
            }
        }
        return named;
    }
    out
}
