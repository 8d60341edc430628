//! The readings of an input's texts.
//!
//! The readers of all launch formats make up most of a small program. A program with the feature `readers-later` has
//! none of them: another program reads for it ([`reader`](crate::reader)). Its replies are cached here for the most
//! recent inputs; an input without a cached reading is noted, for the caller to request it ([`wanted`]), provide the
//! reply ([`provide`]), and try again.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use shardscope_launch::{Reading, blank, readings as read_here};

use super::UserInput;
use super::own::OwnRun;
use super::reader::{ReadReply, ReadTask};

/// Number of inputs whose readings are cached: the current one, a pinned one, and some undo steps. Readings of a long
/// script are large.
const KEPT: usize = 8;

/// Readings of inputs' texts. Inputs are stored without their settings, on which no reading depends.
#[derive(Debug, Default)]
struct Known {
    /// Readings of the examples, provided at the start and kept.
    given: Vec<(UserInput, Rc<[Reading]>)>,
    /// The most recently read ones, newest first.
    last: VecDeque<(UserInput, Rc<[Reading]>)>,
    // The input whose readings an answer lacked since the last call of [`wanted`].
    wanted: Option<UserInput>,
}

// One per thread: the page and its workers are single-threaded, and tests each have their own.
thread_local! {
    static KNOWN: RefCell<Known> = RefCell::default();
}

impl Known {
    /// The readings of `texts`; `None` if they do not exist yet, in which case the texts are noted as wanted.
    fn readings(&mut self, texts: UserInput) -> Option<Rc<[Reading]>> {
        if let Some((_, readings)) = self.given.iter().find(|(known, _)| *known == texts) {
            return Some(readings.clone());
        }
        let Some(place) = self.last.iter().position(|(known, _)| *known == texts) else {
            // What was wanted first comes first: the next attempt will ask for the next one.
            self.wanted.get_or_insert(texts);
            return None;
        };
        // Moved to the front: together with `truncate` below this makes the list an LRU cache.
        let known = self.last.remove(place)?;
        let readings = known.1.clone();
        self.last.push_front(known);
        Some(readings)
    }

    fn keep(&mut self, texts: UserInput, readings: Vec<Reading>) {
        // If read twice (a task was requested again), it must not occupy two entries.
        self.last.retain(|(known, _)| *known != texts);
        self.last.push_front((texts, readings.into()));
        self.last.truncate(KEPT);
    }
}

/// The readings of `input`'s texts; `None` if another program has to be asked first.
pub(crate) fn readings(input: &UserInput) -> Option<Rc<[Reading]>> {
    let source = input.source();
    if source.text().trim().is_empty() {
        // Settings alone are enough: a plan assembled by hand, or opened from a link. Empty input is answered like a
        // blank page, with the question what to train.
        return Some(if input.settings.is_empty() { blank().into() } else { Rc::default() });
    }
    // A build-time constant: the readers must not even be linked into the page.
    if cfg!(feature = "readers-later") {
        return KNOWN.with_borrow_mut(|known| known.readings(texts_of(input)));
    }
    Some(read_here(&source, &input.shell_environment()).into())
}

/// `input` without the parts that do not affect how its texts are read.
pub(crate) fn texts_of(input: &UserInput) -> UserInput {
    // Variables are kept (`environment`): they change how a script is evaluated, settings do not.
    UserInput { settings: Vec::new(), own: OwnRun::default(), ..input.clone() }
}

/// The task for the reading program, if an answer since the last call lacked readings; such an answer is empty and
/// must not be shown.
#[must_use]
pub fn wanted() -> Option<ReadTask> {
    KNOWN.with_borrow_mut(|known| known.wanted.take()).map(|input| ReadTask::texts(&input))
}

/// Stores the reading program's reply to `task`; false if it replied something else.
pub fn provide(task: &ReadTask, reply: ReadReply) -> bool {
    let ReadReply::Texts(readings) = reply else { return false };
    KNOWN.with_borrow_mut(|known| known.keep(texts_of(task.input()), readings));
    true
}

/// Permanently stores what [`given`](crate::given::given) wrote; false if it is from another version.
pub fn give(text: &str) -> bool {
    // All or nothing at the parse: a table from another version could contain readings in a changed format.
    let Ok(given) = serde_json::from_str::<Vec<(ReadTask, ReadReply)>>(text) else { return false };
    for (task, reply) in given {
        // Other replies do not belong in this table and are ignored.
        if let ReadReply::Texts(readings) = reply {
            let one = (texts_of(task.input()), readings.into());
            KNOWN.with_borrow_mut(|known| known.given.push(one));
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EXAMPLE;
    use crate::given::given;

    #[test]
    fn what_the_example_says_is_given() {
        assert!(give(&given()));
        let example = UserInput::from_text(EXAMPLE);
        let known = KNOWN.with_borrow_mut(|known| known.readings(example.clone()));
        assert_eq!(known.as_deref(), Some(said(EXAMPLE).as_slice()));
        assert_eq!(wanted(), None);
        assert!(!give("[[]]"));
    }

    fn said(text: &str) -> Vec<Reading> {
        let input = UserInput::from_text(text);
        read_here(&input.source(), &input.shell_environment())
    }

    #[test]
    fn what_is_not_known_is_wanted_once_and_then_known() {
        let mut known = Known::default();
        assert_eq!(known.readings(UserInput::from_text("a")), None);
        assert_eq!(known.readings(UserInput::from_text("b")), None);
        assert_eq!(known.wanted.take(), Some(UserInput::from_text("a")), "the first comes first");
        known.keep(UserInput::from_text("a"), said("a"));
        assert_eq!(known.readings(UserInput::from_text("a")).as_deref(), Some(said("a").as_slice()));
        assert_eq!(known.wanted, None);
    }

    #[test]
    fn the_inputs_last_read_are_kept() {
        let mut known = Known::default();
        let name = |count: usize| UserInput::from_text(&format!("text {count}"));
        for count in 0..KEPT {
            known.keep(name(count), Vec::new());
        }
        assert!(known.readings(name(0)).is_some());
        known.keep(name(KEPT), Vec::new());
        assert_eq!(known.last.len(), KEPT);
        assert!(known.readings(name(0)).is_some(), "it was looked at since");
        assert!(known.readings(name(1)).is_none());
        known.keep(name(KEPT), said("later"));
        assert_eq!(known.last.len(), KEPT, "an input is kept once");
        assert_eq!(known.readings(name(KEPT)).as_deref(), Some(said("later").as_slice()));
    }

    #[test]
    fn settings_are_no_part_of_the_texts() {
        let changed =
            UserInput { settings: vec![("num_nodes".into(), "4".into())], ..UserInput::from_text("text") };
        assert_eq!(texts_of(&changed), UserInput::from_text("text"));
        let answered =
            UserInput { environment: vec![("N".into(), "4".into())], ..UserInput::from_text("text") };
        assert_eq!(texts_of(&answered), answered);
    }
}
