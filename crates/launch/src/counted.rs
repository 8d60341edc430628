//! Batches that a script computes from the number of devices on its machine: the proposed value is the one on a usual
//! node.

use super::{Asked, Question, Reading, environment, launch, machines};
use shardscope_bash::Environment;
use shardscope_plan::Field;
use shardscope_source::Source;

/// The Slurm variable that stands for a device count on the machine.
const COUNT: &str = "SLURM_GPUS_ON_NODE";
/// GPUs per node if the text does not say.
const USUAL: u64 = 8;
/// The fields that are divided by this count, and the question for each.
const DIVIDED: [(Field, &str); 2] = [
    (Field::NumMicroBatches, "Micro-batches per step and replica?"),
    (Field::GlobalBatchSize, "Sequences in all micro-batches of a step?"),
];

/// Proposes values for fields that are open because that count is unknown.
pub(super) fn propose(reading: &mut Reading, source: &Source, part: usize, given: &Environment) {
    let open = |field: Field| reading.found.iter().any(|found| found.field == field && found.hole.is_some());
    if !DIVIDED.iter().any(|(field, _)| open(*field)) || given.variables.iter().any(|(name, _)| name == COUNT)
    {
        return;
    }
    // The same number that the question for the GPUs proposes.
    let nodes = reading.count(Field::NumNodes).unwrap_or(1).max(1);
    let said = machines::said(source).into_iter().next();
    let devices = said.map_or(USUAL, |said_count| {
        if said_count.per_node { said_count.count } else { (said_count.count / nodes).max(1) }
    });
    let mut counted = given.clone();
    counted.variables.push((COUNT.to_owned(), devices.to_string()));
    let known = environment::reading(&launch::read_part(source, part, &counted));
    let divided = DIVIDED.into_iter().filter(|(field, _)| open(*field));
    let questions = divided.filter_map(|(field, prompt)| {
        let count = known.count(field)?;
        Some(Question {
            asks: Asked::Setting(field),
            prompt: format!("{prompt} The text divides by the GPUs that it counts: {count} with {devices}"),
            choices: Vec::new(),
            proposal: Some(count.to_string()),
        })
    });
    let questions: Vec<Question> = questions.collect();
    reading.questions.extend(questions);
}
