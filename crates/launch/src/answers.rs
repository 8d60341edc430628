//! Answers to questions for variables, as the environment of the texts.

use super::{Asked, Origin, Reading};
use shardscope_bash::Environment;

/// Maximum number of variables taken from one answer.
const MOST: usize = 256;

/// The environment extended by what such answers hold: variables, which never replace one given by itself, and the
/// words of the call, unless those are given.
pub(super) fn spread(environment: &Environment) -> Environment {
    let mut out = environment.clone();
    let line = Asked::Variables.answer(&environment.variables);
    for word in line.unwrap_or_default().split_ascii_whitespace().take(MOST) {
        if let Some((name, value)) = word.split_once('=')
            && !out.variables.iter().any(|(known, _)| known == name)
        {
            out.variables.push((name.to_owned(), value.to_owned()));
        }
    }
    if let Some(line) = Asked::Arguments.answer(&environment.variables)
        && out.arguments.is_empty()
    {
        out.arguments = line.split_ascii_whitespace().map(str::to_owned).collect();
    }
    // This is not a variable of a script: it answers the question for the script's arguments.
    out.variables.retain(|(name, _)| name != Asked::Arguments.name());
    out
}

/// Fills in what a settings file leaves to variables, if those are given.
pub(super) fn fill(reading: &mut Reading, environment: &Environment) {
    for found in &mut reading.found {
        let Some(hole) = &found.hole else { continue };
        if let Some((_, value)) = environment.variables.iter().find(|(name, _)| name == hole) {
            found.value.clone_from(value);
            found.origin = Origin::Environment;
            found.hole = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Request, read};
    use shardscope_bash::Environment;
    use shardscope_plan::Field;
    use shardscope_source::Source;

    const FILE: &str = "MODEL_ARGS:\n  --num-layers: 4\n  --hidden-size: 256\n  --num-attention-heads: 8\n  --bf16: true\n  \
        --tensor-model-parallel-size: ${TP}\n  --pipeline-model-parallel-size: ${PP}\n  --micro-batch-size: ${MBS}\n  \
        --global-batch-size: ${GBS}\n  --seq-length: ${SEQ_LEN}\n  --tokenizer-type: GPT2BPETokenizer\n";

    #[test]
    fn many_variables_are_one_question_whose_answer_makes_a_plan() {
        let source = Source::from_files([("model.yaml", FILE)]);
        let ask = |variables: Vec<(String, String)>| {
            let environment = Environment { variables, ..Environment::default() };
            read(&Request {
                source: &source,
                environment: &environment,
                overrides: &[("world_size".into(), "8".into())],
            })
        };
        let first = ask(Vec::new());
        let names: Vec<&str> = first.questions.iter().map(|asked| asked.name()).collect();
        assert_eq!(names, ["variables"]);
        let proposal = first.questions[0].proposal.clone().expect("a proposal");
        assert_eq!(proposal, "TP=1 PP=1 MBS=1 SEQ_LEN=4096 GBS=256");
        let answered = ask(vec![("variables".to_owned(), proposal.replace("TP=1", "TP=2"))]);
        assert!(answered.plan.is_some(), "{:?}", answered.diagnostics);
        let tensor = answered.setting(Field::TensorModelParallelSize).map(|setting| setting.value.written());
        assert_eq!(tensor.as_deref(), Some("2"));
    }
}
