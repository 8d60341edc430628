//! Variables that a text leaves to its environment: each asked with a value that works, many of them in one line.

use super::table::Table;
use crate::{Question, VARIABLES};
use shardscope_plan::{Field, ValueKind};

/// Variables beyond which all are asked in one line.
const SINGLE: usize = 3;
/// The batch of a step where nothing tells another. Unit: sequence.
const USUAL_BATCH: u64 = 256;
/// A sequence that most models are trained on. Unit: token.
const USUAL_SEQUENCE: u64 = 4096;

/// Gives the questions for variables values that work, and asks for many variables at once: `TP=2 PP=8 MBS=1`.
pub(super) fn ask(table: &mut Table) {
    let mut open: Vec<(String, Field)> = Vec::new();
    let lacking = table.open_variables();
    for (field, hole) in lacking.clone() {
        // A variable may stand in several settings; the first one tells its kind.
        if !open.iter().any(|(known, _)| *known == hole) {
            open.push((hole, field));
        }
    }
    // What the batch depends on comes first.
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
    // Words behind the script are asked for by their places, and in a line of their own where they are many.
    let (places, values): (Vec<_>, Vec<_>) = values.into_iter().partition(|(hole, ..)| hole.starts_with('$'));
    for (hole, _, value) in &places {
        if !value.is_empty() {
            table.propose(hole, value);
        }
    }
    if values.len() <= SINGLE {
        for (hole, field, value) in &values {
            // How many of what there are is proposed with the machines, and is not the setting's own value.
            if table.decides_machines(hole) {
                continue;
            }
            let known = table.propose(hole, value);
            // Of a variable that the reader never asked about, the setting itself is asked.
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
        // A proposal of the text (`${TP:-2}`) is nearer than a default.
        let said = table.proposal(hole).unwrap_or_else(|| value.clone());
        line.push_str(&format!("{between}{hole}={said}"));
        about.push_str(&format!("{}{hole} ({})", if about.is_empty() { "" } else { ", " }, field.about()));
    }
    let lacking = lacking.iter().filter(|(_, hole)| !hole.starts_with('$'));
    let names: Vec<&str> = lacking.flat_map(|(field, hole)| [hole.as_str(), field.name()]).collect();
    table.questions.retain(|question| !names.contains(&question.name.as_str()));
    // First: with many variables open nothing else can be answered before it.
    table.questions.insert(
        0,
        Question {
            name: VARIABLES.to_owned(),
            prompt: format!("What are the values of the environment variables that the text reads? {about}"),
            choices: Vec::new(),
            proposal: Some(line),
        },
    );
}

/// A value of a setting that a plan can be made with: the framework's default, or none.
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
        // Off, and not given: a layout or an offset of the text's own has no value that suits any model.
        _ => match field.kind() {
            ValueKind::Flag => "false".to_owned(),
            _ => String::new(),
        },
    }
}

/// A multiple of the sequences that all replicas have in hand at once, near the usual batch.
fn global_batch(table: &Table) -> String {
    let world = table
        .count(Field::WorldSize)
        .or_else(|| Some(table.count(Field::NumNodes)?.saturating_mul(table.count(Field::GpusPerNode)?)));
    let micro = table.degree(Field::MicroBatchSize);
    let slice =
        world.map_or(micro, |world| micro.saturating_mul((world / table.ranks_of_one().max(1)).max(1)));
    // Rounded down to whole slices, at least one: close to the usual batch, and never refused.
    (slice.max(1) * (USUAL_BATCH / slice.max(1)).max(1)).to_string()
}
