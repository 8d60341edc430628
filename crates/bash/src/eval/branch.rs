//! `if` and `case`: branches that the text does not decide are treated as not taken, and recorded.

use super::super::limits;
use super::super::script::{Branch, HoleKind};
use super::super::tree::{Arm, CaseArm, CaseEnding, List, Word};
use super::super::value::{HoleId, Value};
use super::state::{Certainty, Evaluator, Flow, Status};
use super::variables::Shape;
use super::{assigned, pattern};
use shardscope_source::Span;

/// A branch not taken: its index, the unknowns in its condition, and whether the text leaves it undecided.
pub(crate) type Skipped = (u16, Vec<HoleId>, bool);

impl Evaluator<'_> {
    pub(crate) fn run_if(&mut self, arms: &[Arm], otherwise: Option<&List>) -> Flow {
        let mut skipped: Vec<Skipped> = Vec::new();
        let mut names = Vec::new();
        let mut flow = Flow::Next;
        let mut chosen = false;
        let outer_doubt = self.doubt;
        for (place, arm) in arms.iter().enumerate() {
            let (status, holes, stop) = self.condition(&arm.condition);
            if let Some(stop) = stop {
                return stop;
            }
            // `if some-program; then`: success is only assumed there, so the branch counts as undecided.
            let taken = status.ok && status.certainty != Certainty::Assumed;
            if status.certainty != Certainty::Certain {
                let unknown = matches!(status.certainty, Certainty::Unknown | Certainty::Assumed);
                // What the outcome not chosen would set: for a branch that is taken, everything in the arms below it.
                let sets = if taken {
                    let mut others: Vec<(String, Span)> = Vec::new();
                    for other in arms.iter().skip(place + 1).map(|arm| &arm.body).chain(otherwise) {
                        others.extend(assigned::names(other));
                    }
                    others
                } else {
                    assigned::names(&arm.body)
                };
                let index = self.branch(arm.span, taken, !unknown, &holes, &sets);
                if !taken {
                    // Before any other arm runs, so that the branch sees the variables that it would have.
                    self.peek(&arm.body);
                    names.extend(sets);
                    skipped.push((index, holes, unknown));
                }
            }
            if taken {
                chosen = true;
                self.doubt_from(&skipped);
                flow = self.run_guarded(status.certainty, &arm.body);
                break;
            }
        }
        if !chosen {
            self.status = Status::SUCCESS;
            if let Some(otherwise) = otherwise {
                // `else` is only as sure as the conditions that led to it.
                let certainty = if skipped.is_empty() { Certainty::Certain } else { Certainty::Unknown };
                self.doubt_from(&skipped);
                flow = self.run_guarded(certainty, otherwise);
            }
        }
        self.doubt = outer_doubt;
        // After the branch that runs, so that what it sets counts as set and not as a hole.
        self.mark_skipped(&skipped, &names);
        if flow == Flow::Guard { Flow::Next } else { flow }
    }

    /// Looks into a branch that is not taken: in a script that runs on every machine, this is often the head node's
    /// part. Its commands are recorded as skipped, and its other effects are discarded.
    fn peek(&mut self, body: &List) {
        // Peeking must not use up the budget that the script itself needs. A nested peek uses the outer one's budget.
        let enough = self.skipped || self.steps_left > limits::STEPS / 2;
        if !enough || self.peeks_left == 0 || self.substituting > 0 {
            return;
        }
        self.peeks_left -= 1;
        let outer =
            (self.status, self.skipped, self.doubt, self.uncertain, self.conditional, self.steps_left);
        let (input, output) = (self.input.clone(), self.output.clone());
        let kept =
            (self.notes.diagnostics.len(), self.files.len(), self.directives.len(), self.missing_files.len());
        let (run, locals, overwritten) = (self.files_run.len(), self.locals.len(), self.overwritten.len());
        self.skipped = true;
        let steps = self.steps_left.min(limits::PEEK_STEPS);
        self.steps_left = steps;
        self.in_subshell(&mut |shell| shell.run_list(body));
        let spent = steps.saturating_sub(self.steps_left);
        (self.status, self.skipped, self.doubt, self.uncertain, self.conditional, self.steps_left) = outer;
        self.steps_left = self.steps_left.saturating_sub(spent);
        (self.input, self.output) = (input, output);
        // Holes stay: the skipped commands refer to them by number.
        self.notes.diagnostics.truncate(kept.0);
        self.files.truncate(kept.1);
        self.directives.truncate(kept.2);
        self.missing_files.truncate(kept.3);
        self.files_run.truncate(run);
        self.overwritten.truncate(overwritten);
        self.locals.truncate(locals);
    }

    /// What runs now depends on the first undecided branch before it.
    pub(crate) fn doubt_from(&mut self, skipped: &[Skipped]) {
        let undecided = skipped.iter().find(|arm| arm.2).map(|arm| arm.0);
        // Keep the outermost branch: it determines whether inner conditions are evaluated at all.
        self.doubt = self.doubt.or(undecided);
    }

    /// Evaluates a condition: its outcome, the unknowns in it, and the control flow if it is left early.
    pub(crate) fn condition(&mut self, condition: &List) -> (Status, Vec<HoleId>, Option<Flow>) {
        // A substitution in the condition may contain its own conditions.
        let outer = std::mem::take(&mut self.condition_holes);
        self.status = Status::SUCCESS;
        let flow = self.run_list(condition);
        let mut holes = std::mem::replace(&mut self.condition_holes, outer);
        holes.sort();
        holes.dedup();
        let stop = if matches!(flow, Flow::Next | Flow::Guard) { None } else { Some(flow) };
        (self.status, holes, stop)
    }

    /// Records a branch and returns its index.
    pub(crate) fn branch(
        &mut self,
        span: Span,
        taken: bool,
        decided: bool,
        holes: &[HoleId],
        sets: &[(String, Span)],
    ) -> u16 {
        self.undecided += u32::from(!decided);
        // A loop or function meets the same condition often; the user is asked only once.
        let known = self.branches.iter().position(|branch| branch.span == span);
        if let Some(known) = known {
            return u16::try_from(known).unwrap_or(u16::MAX);
        }
        let index = u16::try_from(self.branches.len()).unwrap_or(u16::MAX);
        if self.branches.len() < limits::BRANCHES {
            let why = self.why(decided, holes);
            let sets = sets.get(..64).unwrap_or(sets).to_vec();
            self.branches.push(Branch { span, taken, decided, why, needs: holes.to_vec(), sets });
        }
        index
    }

    /// Why a branch was treated as it was.
    fn why(&self, decided: bool, holes: &[HoleId]) -> String {
        let mut why = String::new();
        for id in holes.iter().take(4) {
            let Some(hole) = self.notes.holes.get(id.0 as usize) else { continue };
            if !why.is_empty() {
                why.push_str(", ");
            }
            if hole.kind == HoleKind::Positional {
                why.push('$');
            }
            why.push_str(&hole.name);
        }
        why.push_str(match (decided, why.is_empty()) {
            (true, true) => "a variable is not set",
            (true, false) => " is not set",
            (false, true) => "it asks the machine that runs the script",
            (false, false) => " is not known",
        });
        why
    }

    /// Variables that only skipped branches would set become holes; others become doubtful if the text does not
    /// decide the branch.
    pub(crate) fn mark_skipped(&mut self, skipped: &[Skipped], names: &[(String, Span)]) {
        let Some((index, _, _)) = skipped.first() else { return };
        let mut needs = Vec::new();
        let mut unknown = false;
        for (_, holes, undecided) in skipped {
            needs.extend_from_slice(holes);
            unknown |= undecided;
        }
        needs.sort();
        needs.dedup();
        for (name, span) in names {
            if !self.variables.has(name) {
                let value = self.unknown(HoleKind::Branch, name, *span, needs.clone());
                if let Some(hole) = value.only_hole().filter(|_| unknown) {
                    // The same hole may come from a branch before this one; the latest is the one that left it unset.
                    self.branch_of.retain(|(known, _)| *known != hole);
                    self.branch_of.push((hole, *index));
                }
                self.set(name, value, Some(*span));
            } else if let Some(slot) = self.slot(name).filter(|_| unknown) {
                slot.open |= slot.shape == Shape::Array;
                for element in &mut slot.elements.0 {
                    element.value.set_doubt(*index);
                }
            }
        }
    }

    pub(crate) fn run_case(&mut self, subject: &Word, arms: &[CaseArm]) -> Flow {
        let value = self.text_of(&subject.parts);
        let resolved = self.resolved(&value, false);
        let unset = resolved.as_ref().is_some_and(|(_, unset)| *unset);
        let text = resolved.map(|(text, _)| text);
        let mut falling = false;
        let mut skipped = Vec::new();
        let mut names = Vec::new();
        for arm in arms {
            // `;&` runs the next body without testing its patterns.
            let matched = if falling { Some(true) } else { self.case_matches(arm, &value, text.as_deref()) };
            if matched != Some(true) {
                // A fully known text either matches or not; only an unknown, or a pattern that is not supported,
                // could have matched here.
                if value.has_holes() || matched.is_none() {
                    let sets = assigned::names(&arm.body);
                    let span = arm.patterns.first().map_or(subject.span, |pattern| pattern.span);
                    let holes = value.holes();
                    let index = self.branch(span, false, unset, &holes, &sets);
                    names.extend(sets);
                    skipped.push((index, holes, !unset));
                }
                continue;
            }
            let certainty = match (value.has_holes(), unset) {
                (false, _) => Certainty::Certain,
                (true, true) => Certainty::Unset,
                (true, false) => Certainty::Unknown,
            };
            let flow = self.run_guarded(certainty, &arm.body);
            falling = arm.ending == CaseEnding::Fall;
            if flow != Flow::Next || arm.ending == CaseEnding::Stop {
                self.mark_skipped(&skipped, &names);
                return if flow == Flow::Guard { Flow::Next } else { flow };
            }
        }
        self.mark_skipped(&skipped, &names);
        Flow::Next
    }

    /// Whether one of an arm's patterns matches; `None` if one of them is not supported and no other matches.
    fn case_matches(&mut self, arm: &CaseArm, value: &Value, text: Option<&str>) -> Option<bool> {
        let mut all = Some(false);
        for word in &arm.patterns {
            let Some(pattern) = self.pattern_of(&word.parts) else { continue };
            if text.is_none() || value.has_holes() {
                self.add_pattern_choice(value, &pattern);
            }
            let decided = match text {
                Some(text) => pattern::decided(&pattern, text, self.any_case),
                // `*` matches any unknown, unless an arm above would have matched it.
                None => Some(pattern == "*"),
            };
            match decided {
                Some(true) => return decided,
                Some(false) => {}
                None => all = None,
            }
        }
        all
    }

    fn add_pattern_choice(&mut self, value: &Value, pattern: &str) {
        if let Some(hole) = value.only_hole()
            && !pattern.contains(['*', '?', '['])
        {
            self.add_choice(hole, pattern);
        }
    }
}
