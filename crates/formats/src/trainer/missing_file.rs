//! A missing file with the sharding of data-parallel ranks: what its name suggests about it.

use crate::leaves::{Leaf, Leaves};
use crate::{Asked, Effect, Found, NotModelled, Origin, Question, Reading};
use shardscope_plan::Field;
use shardscope_source::Span;

/// Parts of the name of a file that offloads nothing (open-instruct's `stage3_no_offloading_accelerate.conf`).
const STAYS: [&str; 5] = ["no_offload", "no-offload", "nooffload", "wo_offload", "without_offload"];

/// The ZeRO stage that a file of this name suggests.
pub(super) fn stage(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let stage = ["3", "2", "1", "0"].into_iter().find(|stage| {
        ["zero", "z", "stage", "zero_", "zero-", "stage_", "ds_z"]
            .iter()
            .any(|lead| lower.contains(&format!("{lead}{}", *stage)))
    });
    stage.or_else(|| lower.contains("fsdp").then_some("3"))
}

/// The ZeRO stage set by a missing file of this name: left open, and asked for with the stage that the
/// name suggests as the proposal.
#[must_use]
pub fn open_stage(name: &str, by: &str, span: Option<Span>) -> (Found, Question) {
    let prompt = format!(
        "Which ZeRO stage does {name} set (0 none, 1 optimizer states, 2 and gradients, 3 and weights)? \
         Everything else in it is assumed to be at its default."
    );
    let choices = ["0", "1", "2", "3"];
    open(Field::ZeroStage, name, by, span, (prompt, &choices, stage(name)))
}

/// Whether a missing FSDP file of this name checkpoints layers: left open and asked for.
pub(super) fn open_checkpointing(name: &str, by: &str, span: Option<Span>) -> (Found, Question) {
    let prompt =
        format!("Does {name} turn activation_checkpointing on? Paste it beside this text, or answer");
    open(Field::GradientCheckpointing, name, by, span, (prompt, &["true", "false"], Some("false")))
}

/// The parts that a file of this name offloads to the host, if its name indicates offloading. DeepSpeed offloads
/// optimizer states from stage 1 on, and weights only at stage 3 (`deepspeed/runtime/zero/config.py`): the former
/// follow from the name, the latter are asked for.
pub(crate) fn offloads(reading: &mut Reading, path: &str, by: &str, span: Option<Span>) {
    let name = path.rsplit('/').next().unwrap_or(path);
    let of_fsdp = name.to_ascii_lowercase().contains("fsdp");
    // In ms-swift's examples the folder identifies FSDP's files (`activation_cpu_offload/fsdp2.json`).
    let lower = if of_fsdp { path } else { name }.to_ascii_lowercase();
    if !lower.contains("offload") || STAYS.iter().any(|sign| lower.contains(sign)) {
        return;
    }
    if of_fsdp {
        let what = "what an FSDP file that is not here offloads to the host";
        reading.not_modelled.push(NotModelled::new(by, path, Effect::Memory, what).at_some(span));
        return;
    }
    if reading.value(Field::OffloadOptimizer).is_none() {
        let found = Found::new(Field::OffloadOptimizer, "true", Origin::Derived).by(by, span);
        reading.take(found.note(format!("from the name of {name}")));
    }
    let keeps_weights = stage(name).is_some_and(|stage| stage != "3");
    if !keeps_weights && !reading.found.iter().any(|found| found.field == Field::OffloadParam) {
        let prompt = format!("Does {name} offload weights too (offload_param, of ZeRO-3)?");
        // A partial offload may mean only the optimizer.
        let proposal = match (lower.contains("optim"), lower.contains("param"), lower.contains("partial")) {
            (.., true) => None,
            (true, false, _) => Some("false"),
            _ => Some("true"),
        };
        let (found, question) =
            open(Field::OffloadParam, name, by, span, (prompt, &["true", "false"], proposal));
        reading.take(found);
        reading.questions.push(question);
    }
}

/// Sharding is configured in a file that is only named: it is asked for, with what the name suggests as the proposal.
pub(crate) fn left_to_file(leaves: &mut Leaves<'_>, leaf: &Leaf) {
    // A switch without a value leaves it to the program.
    let bare = leaf.flag() == Some(true);
    let name =
        if bare { "the program" } else { leaf.value.rsplit('/').next().unwrap_or(&leaf.value) }.to_owned();
    let (found, question) = open_stage(&name, &leaf.path, leaf.span);
    if leaves.reading.value(Field::ZeroStage).is_none() {
        leaves.reading.take(found);
    }
    leaves.reading.questions.push(question);
    offloads(&mut leaves.reading, &leaf.value, &leaf.path, leaf.span);
}

/// A setting that `name` leaves open, and the question for it: its prompt, choices and proposal.
fn open(
    field: Field,
    name: &str,
    by: &str,
    span: Option<Span>,
    (prompt, choices, proposal): (String, &[&str], Option<&str>),
) -> (Found, Question) {
    let mut found = Found::new(field, String::new(), Origin::Script).by(by, span);
    found.hole = Some(name.to_owned());
    let question = Question {
        asks: Asked::Setting(field),
        prompt,
        choices: choices.iter().map(|choice| (*choice).to_owned()).collect(),
        proposal: proposal.map(str::to_owned),
    };
    (found, question)
}
