//! Variables that a text takes from its environment: each asked for with a value that works, many of them in one line.

use super::table::Table;
use crate::{Asked, Question};
use shardscope_plan::{Field, ValueKind};

/// Number of variables above which all are asked for in one line.
const SINGLE: usize = 3;
/// The batch of a step if nothing else determines it. Unit: sequence.
const USUAL_BATCH: u64 = 256;
/// A common sequence length in training. Unit: token.
const USUAL_SEQUENCE: u64 = 4096;

/// Gives questions for variables values that work, and asks for many variables at once: `TP=2 PP=8 MBS=1`.
pub(super) fn ask(table: &mut Table) {
    let mut open: Vec<(String, Field)> = Vec::new();
    let lacking = table.open_variables();
    for (field, hole) in lacking.clone() {
        // A variable may occur in several settings; the first one determines its kind.
        if !open.iter().any(|(known, _)| *known == hole) {
            open.push((hole, field));
        }
    }
    // Values on which the batch depends come first.
    let mut batch = Vec::new();
    let mut values: Vec<(String, Field, String)> = Vec::new();
    for (hole, field) in open {
        if field == Field::GlobalBatchSize {
            batch.push(hole);
        } else {
            let value = usual(table, field);
            values.push((hole, field, value));
        }
    }
    for hole in batch {
        let value = global_batch(table);
        values.push((hole, Field::GlobalBatchSize, value));
    }
    // Positional arguments are asked for by position, and in a line of their own if there are many.
    let (places, values): (Vec<_>, Vec<_>) = values.into_iter().partition(|(hole, ..)| hole.starts_with('$'));
    for (hole, _, value) in &places {
        if !value.is_empty() {
            table.propose(hole, value);
        }
    }
    if values.len() <= SINGLE {
        for (hole, field, value) in &values {
            // A number of machines is proposed with the machines, and is not the setting's own value.
            if table.decides_machines(hole) {
                continue;
            }
            let known = table.propose(hole, value);
            // If the user was never asked about the variable, the setting itself is asked for.
            if !known {
                table.propose(field.name(), value);
            }
        }
        return;
    }
    let mut line = String::new();
    let mut about = String::new();
    for (hole, field, value) in &values {
        let between = if line.is_empty() { "" } else { " " };
        // A proposal in the text (`${TP:-2}`) is closer than a default.
        let said = table.proposal(hole).unwrap_or_else(|| value.clone());
        line.push_str(&format!("{between}{hole}={said}"));
        about.push_str(&format!("{}{hole} ({})", if about.is_empty() { "" } else { ", " }, field.about()));
    }
    let lacking = lacking.iter().filter(|(_, hole)| !hole.starts_with('$'));
    let names: Vec<&str> = lacking.flat_map(|(field, hole)| [hole.as_str(), field.name()]).collect();
    table.questions.retain(|question| !names.contains(&question.name()));
    // First: with many open variables nothing else can be answered before this.
    table.questions.insert(
        0,
        Question {
            asks: Asked::Variables,
            prompt: format!("What are the values of the environment variables that the text reads? {about}"),
            choices: Vec::new(),
            proposal: Some(line),
        },
    );
}

/// A value for a setting with which a plan can be made: the framework's default, or none.
fn usual(table: &Table, field: Field) -> String {
    match field {
        Field::SeqLength => {
            let longest = table.count(Field::MaxPositionEmbeddings).unwrap_or(USUAL_SEQUENCE);
            longest.min(USUAL_SEQUENCE).to_string()
        }
        Field::MoeTokenDispatcherType => "alltoall".to_owned(),
        Field::MicroBatchSize
        | Field::TensorModelParallelSize
        | Field::PipelineModelParallelSize
        | Field::ContextParallelSize
        | Field::ExpertModelParallelSize
        | Field::ExpertTensorParallelSize => "1".to_owned(),
        Field::MaxPositionEmbeddings => table.count(Field::SeqLength).unwrap_or(USUAL_SEQUENCE).to_string(),
        // Off, or not given: no value for the text's own layout or offset suits every model.
        _ => match field.kind() {
            ValueKind::Flag => "false".to_owned(),
            _ => String::new(),
        },
    }
}

/// A multiple of the sequences that all replicas process at once, near the usual batch.
fn global_batch(table: &Table) -> String {
    let world = table
        .count(Field::WorldSize)
        .or_else(|| Some(table.count(Field::NumNodes)?.saturating_mul(table.count(Field::GpusPerNode)?)));
    let micro = table.degree(Field::MicroBatchSize);
    let slice =
        world.map_or(micro, |world| micro.saturating_mul((world / table.ranks_of_one().max(1)).max(1)));
    // Rounded down to full slices, at least one: close to the usual batch, and never rejected.
    (slice.max(1) * (USUAL_BATCH / slice.max(1)).max(1)).to_string()
}
