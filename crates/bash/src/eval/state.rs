use std::rc::Rc;

use super::super::limits;
use super::super::notes::Notes;
use super::super::script::{Branch, Command, Directive, File, HoleKind};
use super::super::value::{HoleId, Value};
use super::variables::{Elements, Functions, Shape, Slot, Variables};
use shardscope_source::{Code, Diagnostic, Source, Span};

/// How sure the outcome of a command is, from least to most certain; the order matters for comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Certainty {
    /// Unknown, and treated as false.
    Unknown,
    /// A program's success, assumed.
    Assumed,
    /// As bash would decide, given a variable that nobody sets.
    Unset,
    /// Decided by the text.
    Certain,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) ok: bool,
    pub(crate) certainty: Certainty,
    /// The value of `$?` if it failed.
    pub(crate) code: u8,
}

impl Status {
    pub(crate) const SUCCESS: Status = Status { ok: true, certainty: Certainty::Certain, code: 1 };
    pub(crate) const UNKNOWN: Status = Status { ok: false, certainty: Certainty::Unknown, code: 1 };
    pub(crate) const ASSUMED: Status = Status { ok: true, certainty: Certainty::Assumed, code: 1 };

    pub(crate) const fn certain(ok: bool) -> Self {
        Self { ok, certainty: Certainty::Certain, code: 1 }
    }

    pub(crate) const fn unset(ok: bool) -> Self {
        Self { ok, certainty: Certainty::Unset, code: 1 }
    }

    #[must_use]
    pub(crate) fn not(self) -> Self {
        match self.certainty {
            // Unknown is treated as false; its negation is unknown too, and is not treated as true.
            Certainty::Unknown => self,
            certainty => Self { ok: !self.ok, certainty, code: 1 },
        }
    }
}

/// What happens after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Next,
    Break(u32),
    Continue(u32),
    Return,
    /// `exit`, or the budget is spent.
    Stop,
    /// `exit` under a condition: what it guards is left, and the script continues.
    Guard,
}

/// The positional parameters of the script or of a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Positional {
    pub(crate) values: Vec<Value>,
    /// Whether values past the end are unknown because the call is not given.
    pub(crate) open: bool,
    pub(crate) shifted: usize,
    /// Individual values given by number.
    pub(crate) numbered: Vec<(usize, Value)>,
}

/// A variable's name and its previous value.
pub(crate) type Saved = (String, Option<Rc<Slot>>);

/// The state of a shell that evaluates a script without running anything.
pub(crate) struct Evaluator<'a> {
    pub(crate) source: &'a Source,
    pub(crate) notes: Notes,
    pub(crate) variables: Variables,
    pub(crate) functions: Functions,
    pub(crate) positional: Positional,
    pub(crate) commands: Vec<Command>,
    pub(crate) files: Vec<File>,
    /// Earlier states of them that a command may have read.
    pub(crate) overwritten: Vec<File>,
    /// Files already run as scripts, by index into `files`.
    pub(crate) files_run: Vec<usize>,
    pub(crate) directives: Vec<Directive>,
    pub(crate) branches: Vec<Branch>,
    /// The branch that each hole of kind [`HoleKind::Branch`] comes from.
    pub(crate) branch_of: Vec<(HoleId, u16)>,
    pub(crate) missing_files: Vec<(String, Span)>,
    pub(crate) status: Status,
    /// What commands write, when something collects it.
    pub(crate) output: Option<Value>,
    /// What commands read, when it is known.
    pub(crate) input: Option<Value>,
    /// Inside `$( )`: commands there are not the script's own.
    pub(crate) substituting: u32,
    /// Inside something that runs only under a condition.
    pub(crate) conditional: u32,
    /// How many of those conditions the text does not decide.
    pub(crate) uncertain: u32,
    /// The undecided branch on which the current code depends.
    pub(crate) doubt: Option<u16>,
    /// The unknowns met in the condition being evaluated.
    pub(crate) condition_holes: Vec<HoleId>,
    pub(crate) depth: u32,
    pub(crate) steps_left: u32,
    pub(crate) outer: Option<usize>,
    /// Variables to restore when the current function returns.
    pub(crate) locals: Vec<Saved>,
    /// Whether the current code is a file that the script only writes.
    pub(crate) shown: bool,
    /// Whether the current code is in a skipped branch.
    pub(crate) skipped: bool,
    pub(crate) peeks_left: u32,
    /// How many branches were met that the text does not decide.
    pub(crate) undecided: u32,
    /// How many substitutions have run: an assignment's status is that of the last one in it.
    pub(crate) substitutions: u32,
    /// `shopt -s nocasematch`, `shopt -s extglob` and `shopt -s lastpipe`.
    pub(crate) any_case: bool,
    pub(crate) extended: bool,
    pub(crate) last_here: bool,
    /// Current depth of function calls.
    pub(crate) calls: u32,
}

impl Evaluator<'_> {
    /// Charges for work; false if the budget is spent.
    pub(crate) fn spend(&mut self, steps: u32, span: Span) -> bool {
        match self.steps_left.checked_sub(steps.max(1)) {
            Some(left) if left > 0 => {
                self.steps_left = left;
                true
            }
            // A budget of 0 means that the diagnostic was already issued, so the last step is never granted: the
            // diagnostic is issued when it is requested.
            _ if self.steps_left == 0 => false,
            _ => {
                self.steps_left = 0;
                self.notes.report(
                    Diagnostic::error(
                        Code::TooMuchWork,
                        "the script takes more steps than any launch script needs; evaluation ends here",
                    )
                    .at(span)
                    .hint("paste the part that sets the options, with loops unrolled"),
                );
                false
            }
        }
    }

    pub(crate) fn unknown(&mut self, kind: HoleKind, name: &str, span: Span, needs: Vec<HoleId>) -> Value {
        self.notes.unknown(kind, name, span, needs)
    }

    pub(crate) fn scalar(&self, name: &str) -> Option<&Value> {
        // `$a` of an array is `${a[0]}`; a map has no element 0.
        let slot = self.variables.get(name)?;
        if slot.shape == Shape::Map { None } else { slot.elements.get(0, "") }
    }

    /// The known text of a variable.
    pub(crate) fn known(&self, name: &str) -> Option<&str> {
        self.scalar(name).and_then(Value::known)
    }

    pub(crate) fn shape(&self, name: &str) -> Option<Shape> {
        Some(self.variables.get(name)?.shape)
    }

    /// The variable, for modification.
    pub(crate) fn slot(&mut self, name: &str) -> Option<&mut Slot> {
        self.variables.get_mut(name)
    }

    pub(crate) fn set(&mut self, name: &str, value: Value, span: Option<Span>) {
        let value = self.bounded(value, span);
        let exported = match self.slot(name) {
            // Bash: assigning to an array without an index sets its element 0.
            Some(slot) if slot.shape == Shape::Array => {
                slot.span = span.or(slot.span);
                slot.elements.insert(0, "", value);
                return;
            }
            Some(slot) => (slot.exported, slot.integer, span.or(slot.span)),
            None => (false, false, span),
        };
        let (exported, integer, span) = exported;
        let slot = Slot {
            shape: Shape::Scalar,
            elements: Elements::scalar(value),
            exported,
            integer,
            open: false,
            span,
        };
        self.variables.put(name, slot);
    }

    pub(crate) fn set_elements(&mut self, name: &str, shape: Shape, elements: Elements, span: Span) {
        let exported = self.variables.get(name).is_some_and(|slot| slot.exported);
        let integer = self.variables.get(name).is_some_and(|slot| slot.integer);
        self.variables.put(name, Slot { shape, elements, exported, integer, open: false, span: Some(span) });
    }

    /// Marks an array's element count as unknown.
    pub(crate) fn leave_open(&mut self, name: &str) {
        if let Some(slot) = self.slot(name) {
            slot.open = true;
        }
    }

    /// Makes later assignments to a name be evaluated as integers.
    pub(crate) fn make_integer(&mut self, name: &str, span: Span) {
        if self.slot(name).is_none() {
            self.set(name, Value::default(), Some(span));
        }
        if let Some(slot) = self.slot(name) {
            slot.integer = true;
        }
    }

    /// The value, or an empty value and a diagnostic if it is longer than any real one.
    pub(crate) fn bounded(&mut self, value: Value, span: Option<Span>) -> Value {
        if value.len() <= limits::VALUE_BYTES {
            return value;
        }
        let message = "a value exceeds 256 KiB and is cut off";
        self.notes.report(Diagnostic::error(Code::ValueTooLong, message).at_some(span));
        // Such a value is built in a loop; the rest of the script is still evaluated, but on a smaller budget.
        self.steps_left = self.steps_left.min(limits::STEPS / 10);
        value.part(0, floor_boundary(value.text(), limits::VALUE_BYTES / 16))
    }

    /// An array with fewer elements than the shell's would be another answer.
    pub(crate) fn report_full(&mut self, span: Span) {
        let message = "an array has more elements than any real one; the rest is left out";
        self.notes.report(Diagnostic::error(Code::TooManyWords, message).at(span));
    }

    pub(crate) fn export(&mut self, name: &str) {
        if let Some(slot) = self.slot(name) {
            slot.exported = true;
        }
    }

    /// Unsets a name.
    pub(crate) fn forget(&mut self, name: &str) {
        self.variables.take(name);
    }

    /// Saves a variable's value until the end of the function.
    pub(crate) fn localize(&mut self, name: &str) {
        let old = self.variables.take(name);
        self.locals.push((name.to_owned(), old));
    }

    /// Restores variables, the last saved first.
    pub(crate) fn restore(&mut self, saved: Vec<Saved>) {
        for (name, old) in saved.into_iter().rev() {
            self.variables.put_back(&name, old);
        }
    }

    pub(crate) fn write(&mut self, value: &Value) {
        // Nothing collects output at the top level. Past the bound output is dropped; `bounded` reports that where it
        // is used.
        if let Some(output) = &mut self.output
            && output.len() <= limits::VALUE_BYTES
        {
            output.append(value);
        }
    }
}

fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
