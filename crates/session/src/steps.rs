//! Undo and redo: earlier inputs, step by step.

use std::rc::Rc;

use super::{Difference, UserInput};

/// Maximum number of steps kept. Texts are shared pointers, so a step of settings costs little.
const MOST: usize = 200;

/// Earlier and undone inputs. Continuous typing in one place is one step, until the end of a line.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    past: Vec<Rc<UserInput>>,
    future: Vec<Rc<UserInput>>,
    /// Byte at which typing may continue the same step; `None` after anything but typing.
    typed_at: Option<usize>,
}

impl Steps {
    /// Whether there is something to go back to.
    #[must_use]
    pub fn can_undo(&self) -> bool {
        !self.past.is_empty()
    }

    /// Whether there is something to redo.
    #[must_use]
    pub fn can_redo(&self) -> bool {
        !self.future.is_empty()
    }

    /// Records `now` before a change of it that is not typing.
    pub(super) fn record(&mut self, now: &UserInput) {
        self.typed_at = None;
        self.push(now);
    }

    /// The text of `now` is about to become `text` by typing, pasting or cutting.
    pub(super) fn record_typing(&mut self, now: &UserInput, text: &str) {
        let Some(change) = Difference::between(&now.text, text) else { return };
        let typed = text.get(change.start..change.new_end).unwrap_or_default();
        // One character typed over at most four bytes: a keystroke, a deletion, or one character replaced by another.
        let small = typed.chars().count() <= 1 && change.old_end - change.start <= 4;
        // Forward typing starts where the last edit ended, and backspace ends there.
        let goes_on = self.typed_at.is_some_and(|at| at == change.start || at == change.old_end);
        if !(small && goes_on) {
            self.push(now);
        }
        // Also where no step is pushed: typing after an undo makes what was undone unreachable.
        self.future.clear();
        // The end of a line ends the step, so that undo goes back line by line after a long session of typing.
        self.typed_at = (small && typed != "\n").then_some(change.new_end);
    }

    fn push(&mut self, now: &UserInput) {
        self.future.clear();
        // Shifting 200 pointers is negligible next to the estimate that follows.
        if self.past.len() == MOST {
            self.past.remove(0);
        }
        self.past.push(Rc::new(now.clone()));
    }

    pub(super) fn undo(&mut self, now: &UserInput) -> Option<UserInput> {
        let before = self.past.pop()?;
        self.future.push(Rc::new(now.clone()));
        // Typing at the same place after an undo is a new step.
        self.typed_at = None;
        Some((*before).clone())
    }

    pub(super) fn redo(&mut self, now: &UserInput) -> Option<UserInput> {
        let after = self.future.pop()?;
        self.past.push(Rc::new(now.clone()));
        self.typed_at = None;
        Some((*after).clone())
    }
}

#[cfg(test)]
mod tests {
    use super::{Difference, Steps, UserInput};

    /// Types each text over the previous one, then undoes everything; returns the texts seen on the way back.
    fn back(texts: &[&str]) -> Vec<String> {
        let (mut steps, mut input) = (Steps::default(), UserInput::from_text(texts[0]));
        for text in &texts[1..] {
            steps.record_typing(&input, text);
            input.text = (*text).into();
        }
        let mut seen = Vec::new();
        while let Some(before) = steps.undo(&input) {
            input = before;
            seen.push(input.text.to_string());
        }
        seen
    }

    #[test]
    fn typing_on_is_one_step_until_the_line_ends() {
        assert_eq!(back(&["", "a", "ab", "abc"]), [""]);
        assert_eq!(back(&["", "a", "a\n", "a\nb", "a\nbc"]), ["a\n", ""]);
        assert_eq!(back(&["abc", "ab", "a"]), ["abc"]);
        assert_eq!(back(&["", "é", "éü"]), [""]);
    }

    #[test]
    fn another_place_and_a_paste_are_steps_of_their_own() {
        assert_eq!(back(&["abc", "abcd", "xabcd"]), ["abcd", "abc"]);
        assert_eq!(back(&["", "a", "a pasted"]), ["a", ""]);
        assert_eq!(back(&["a", "a"]), Vec::<String>::new());
    }

    #[test]
    fn a_new_step_forgets_what_was_undone() {
        let mut steps = Steps::default();
        steps.record(&UserInput::from_text("a"));
        let input = steps.undo(&UserInput::from_text("b"));
        assert_eq!(input.map(|input| input.text.to_string()).as_deref(), Some("a"));
        assert!(steps.can_redo() && !steps.can_undo());
        steps.record(&UserInput::from_text("a"));
        assert!(!steps.can_redo());
    }

    #[test]
    fn differences_are_whole_characters() {
        let between = Difference::between;
        assert_eq!(between("é", "è"), Some(Difference { start: 0, old_end: 2, new_end: 2 }));
        assert_eq!(between("aa", "aaa"), Some(Difference { start: 2, old_end: 2, new_end: 3 }));
        assert_eq!(between("one two", "one 2 two"), Some(Difference { start: 4, old_end: 4, new_end: 6 }));
        assert_eq!(between("x", "x"), None);
    }
}
