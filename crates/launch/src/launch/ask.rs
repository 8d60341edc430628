//! Questions for what the text leaves to its environment, each asked once at its root.

use crate::Question;
use shardscope_bash::{Hole, HoleId, HoleKind, Script};

/// Positional parameters beyond which the whole call line is asked for.
const SINGLE_POSITIONALS: usize = 3;

/// The name under which a hole is asked for and answered: a variable's, or `$3`.
pub(super) fn name(script: &Script, id: HoleId) -> String {
    match root(script, id) {
        Some(hole) => shown(hole),
        None => String::new(),
    }
}

/// The first root of a hole that can be answered by name; else the first root.
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

/// One question for each root among these holes that can be answered by name.
pub(super) fn questions(script: &Script, holes: &[(HoleId, String)]) -> Vec<Question> {
    let mut out: Vec<Question> = Vec::new();
    let mut positional = 0;
    for (id, about) in holes {
        let Some(hole) = root(script, *id).filter(|hole| answerable(hole)) else { continue };
        let name = shown(hole);
        if let Some(known) = out.iter_mut().find(|question| question.name == name) {
            if known.prompt.len() < 200 && !known.prompt.contains(about.as_str()) {
                known.prompt.push_str(", ");
                known.prompt.push_str(about);
            }
            continue;
        }
        positional += usize::from(hole.kind == HoleKind::Positional);
        let prompt = match hole.kind {
            HoleKind::Positional => format!("Argument {name} of the script's call? It decides {about}"),
            _ => format!("{name}? The text leaves it to its environment, and it decides {about}"),
        };
        out.push(Question {
            name,
            prompt,
            choices: hole.choices.clone(),
            proposal: hole.choices.first().cloned(),
        });
    }
    if positional > SINGLE_POSITIONALS {
        let mut named = vec![Question {
            name: "arguments".to_owned(),
            prompt: "Which words follow the script in the line that calls it? They decide most settings"
                .to_owned(),
            choices: Vec::new(),
            proposal: None,
        }];
        for question in out {
            if !question.name.starts_with('$') {
                named.push(question);
            }
        }
        return named;
    }
    out
}
