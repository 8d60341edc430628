//! The script with the values given by hand written into it.

use super::UserInput;
use serde::{Deserialize, Serialize};
use shardscope_export::edit;
use shardscope_plan::Field;
use shardscope_source::Span;

/// A script rewritten.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rewritten {
    /// The texts with the values in place; values without a place stay values given by hand.
    pub input: UserInput,
    /// The lines that changed, in order.
    pub lines: Vec<ChangedLine>,
    /// Settings for which the texts have no place.
    pub unplaced: Vec<Field>,
}

/// A changed line: the text before the change, the change, and the text after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedLine {
    /// The file, if there are several.
    pub file: String,
    /// Its number, from 1.
    pub number: usize,
    /// Its three parts.
    pub parts: [String; 3],
}

/// `input` with the settings changed by hand written into its texts; `None` if nothing is changed, or if there is no
/// text to change.
#[must_use]
pub fn rewritten(input: &UserInput) -> Option<Rewritten> {
    if input.text.trim().is_empty() {
        return None;
    }
    let mut changes: Vec<(Field, String)> = Vec::new();
    for (name, value) in &input.settings {
        // Values by hand may also answer variables or come from a later version: neither has a place in a script.
        if let Some(field) = Field::named(name) {
            changes.push((field, value.clone()));
        }
    }
    if changes.is_empty() {
        return None;
    }
    let edited = edit(&input.source(), &input.shell_environment(), &changes);
    let several = edited.files.len() > 1;
    let mut marks = edited.marks;
    // Marks are in the order of the changes, lines are shown in the order of the text.
    marks.sort_by(|(file, mark), (other, next)| file.cmp(other).then(mark.start.cmp(&next.start)));
    let mut lines = Vec::new();
    for (file, mark) in marks {
        // A mark names its file by number; one that the edit did not return has no line to show.
        let Some((name, text)) = edited.files.get(file) else { continue };
        let name = if several { name.as_str() } else { "" };
        lines.extend(line_of(name, text, mark));
    }
    let mut out = input.clone();
    // What found a place is now stated in the text; if it stayed a value by hand too, it would hide later edits
    // there.
    out.settings.retain(|(name, _)| edited.unplaced.iter().any(|(field, _)| field.name() == name));
    // The box comes first, then the additional files, as `UserInput::source` joins them.
    let mut texts = edited.files.into_iter().map(|(_, text)| text);
    if let Some(text) = texts.next() {
        out.text = text.into();
    }
    for (file, text) in out.beside.iter_mut().zip(texts) {
        file.text = text.into();
    }
    Some(Rewritten { input: out, lines, unplaced: edited.unplaced.iter().map(|(field, _)| *field).collect() })
}

/// The line in which `mark` begins, split around it.
fn line_of(file: &str, text: &str, mark: Span) -> Option<ChangedLine> {
    let (start, end) = (mark.start as usize, mark.end as usize);
    // Marks are bytes of the edited text; `get` because a mark inside a character has no line rather than a panic.
    let before = text.get(..start)?;
    let first = before.rfind('\n').map_or(0, |at| at + 1);
    let last = text.get(end..)?.find('\n').map_or(text.len(), |at| end + at);
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or("").to_owned();
    Some(ChangedLine {
        file: file.to_owned(),
        number: before.matches('\n').count() + 1,
        parts: [part(first, start), part(start, end), part(end, last)],
    })
}

/// The text of the box with `changes` written into it as well; `None` if there is no text, or no place for one of
/// them.
#[must_use]
pub fn patched(input: &UserInput, changes: &[(Field, String)]) -> Option<String> {
    let mut input = input.clone();
    for (field, value) in changes {
        // On top of the values by hand: the text shown must give the plan shown, with the changes on it.
        input.put((field.name().to_owned(), value.clone()));
    }
    rewritten(&input)
        // All or none: a script with half of a proposal would be a layout that nobody has estimated.
        .filter(|changed| changed.unplaced.is_empty())
        .map(|changed| changed.input.text.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::UserInput;
    use super::{ChangedLine, Field, rewritten};

    #[test]
    fn values_by_hand_are_written_into_the_script() {
        let text = "# mine\ntorchrun --nproc_per_node 8 pretrain_gpt.py \\\n  --tensor-model-parallel-size 2 --num-layers 4 \\\n  --hidden-size 64\n";
        let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut input = UserInput::from_text(text);
        assert_eq!(rewritten(&input), None);
        input.settings = vec![set("tensor_model_parallel_size", "4"), set("accelerator", "B200")];
        let changed = rewritten(&input).expect("a change");
        assert_eq!(*changed.input.text, *text.replace("parallel-size 2", "parallel-size 4"));
        assert_eq!(changed.input.settings, [set("accelerator", "B200")]);
        assert_eq!(changed.unplaced, [Field::Accelerator]);
        let parts = ["  --tensor-model-parallel-size ", "4", " --num-layers 4 \\"].map(str::to_owned);
        assert_eq!(changed.lines, [ChangedLine { file: String::new(), number: 3, parts }]);
        input.text = "".into();
        assert_eq!(rewritten(&input), None, "no text to write into");
    }

    #[test]
    fn a_flag_that_is_added_stands_with_those_of_the_layout_and_not_of_the_data() {
        let mut input = UserInput::from_text(crate::EXAMPLE);
        input.settings = vec![("sequence_parallel".to_owned(), "true".to_owned())];
        let changed = rewritten(&input).expect("a change");
        let expected = crate::EXAMPLE.replace("    --bf16\n", "    --bf16\n    --sequence-parallel\n");
        assert_eq!(*changed.input.text, *expected);
    }
}
