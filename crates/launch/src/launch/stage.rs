//! The ZeRO stage that a script substitutes into a template of a DeepSpeed configuration that is not among the texts:
//! Megatron-DeepSpeed's scripts write theirs by `sed "s/ZERO_STAGE/${zero_stage}/"`.

use crate::{Asked, Reading};
use shardscope_bash::Script;
use shardscope_plan::Field;

/// The placeholder of Megatron-DeepSpeed's templates.
const PLACE: &str = "s/ZERO_STAGE/";

/// The stage that the text puts in place of the placeholder: a literal, or the value of a variable.
pub(super) fn filled(script: &Script, text: &str) -> Option<String> {
    let (put, _) = text.split_once(PLACE)?.1.split_once('/')?;
    let name = put.trim_start_matches('$').trim_matches(['{', '}']);
    let stage = if name == put {
        put.to_owned()
    } else {
        let variable = script.variables.iter().find(|variable| variable.name == name)?;
        variable.values.first()?.text().to_owned()
    };
    matches!(stage.as_str(), "0" | "1" | "2" | "3").then_some(stage)
}

/// Proposes it if the stage is asked for.
pub(super) fn propose(reading: &mut Reading, stage: Option<&str>) {
    let asked = reading.questions.iter_mut().find(|asked| asked.asks == Asked::Setting(Field::ZeroStage));
    if let (Some(question), Some(stage)) = (asked, stage) {
        question.proposal = Some(stage.to_owned());
    }
}
