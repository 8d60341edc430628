//! `if` and `case`: branches the text does not decide are read as not taken, and remembered.

use super::super::limits;
use super::super::script::{Branch, Hole, HoleKind};
use super::super::tree::{Arm, CaseArm, CaseEnding, List, Word};
use super::super::value::{HoleId, Value};
use super::state::{Certainty, Data, Evaluator, Flow, Status};
use super::{assigned, pattern};
use crate::text::{Span, sort};

impl Evaluator<'_> {
    pub(crate) fn run_if(&mut self, arms: &[Arm], otherwise: Option<&List>) -> Flow {
        let mut skipped: Vec<(u16, Vec<HoleId>, bool)> = Vec::new();
        let mut names = Vec::new();
        let mut flow = Flow::Next;
        let mut chosen = false;
        let outer_doubt = self.doubt;
        for arm in arms {
            let (status, holes, stop) = self.condition(&arm.condition);
            if let Some(stop) = stop {
                return stop;
            }
            let taken = status.ok && status.certainty != Certainty::Assumed;
            if status.certainty != Certainty::Certain {
                let unknown = matches!(status.certainty, Certainty::Unknown | Certainty::Assumed);
                let sets = if taken { Vec::new() } else { assigned::names(&arm.body) };
                let index = self.branch(arm.span, taken, !unknown, &holes, &sets);
                if !taken {
                    names.extend(sets);
                    skipped.push((index, holes, unknown));
                }
            }
            if taken {
                chosen = true;
                self.doubt = self.doubt.or(skipped.iter().find(|arm| arm.2).map(|arm| arm.0));
                flow = self.guarded(status.certainty, |shell| shell.run_list(&arm.body));
                break;
            }
        }
        if !chosen {
            self.status = Status::SUCCESS;
            if let Some(otherwise) = otherwise {
                let certainty = if skipped.is_empty() { Certainty::Certain } else { Certainty::Unknown };
                self.doubt = self.doubt.or(skipped.iter().find(|arm| arm.2).map(|arm| arm.0));
                flow = self.guarded(certainty, |shell| shell.run_list(otherwise));
            }
        }
        self.doubt = outer_doubt;
        self.mark_skipped(&skipped, &names);
        if flow == Flow::Guard { Flow::Next } else { flow }
    }

    /// Evaluates a condition: its outcome, the unknowns in it, and a flow that leaves it.
    pub(crate) fn condition(&mut self, condition: &List) -> (Status, Vec<HoleId>, Option<Flow>) {
        let outer = std::mem::take(&mut self.condition_holes);
        self.status = Status::SUCCESS;
        let flow = self.run_list(condition);
        let mut holes = std::mem::replace(&mut self.condition_holes, outer);
        sort(&mut holes, &HoleId::cmp);
        holes.dedup();
        let stop = if matches!(flow, Flow::Next | Flow::Guard) { None } else { Some(flow) };
        (self.status, holes, stop)
    }

    /// Remembers a branch; its index.
    pub(crate) fn branch(
        &mut self,
        span: Span,
        taken: bool,
        decided: bool,
        holes: &[HoleId],
        sets: &[(String, Span)],
    ) -> u16 {
        let known = self.branches.iter().position(|branch| branch.span == span);
        if let Some(known) = known {
            return u16::try_from(known).unwrap_or(u16::MAX);
        }
        let index = u16::try_from(self.branches.len()).unwrap_or(u16::MAX);
        if self.branches.len() < limits::BRANCHES {
            let name = |hole: &Hole| match hole.kind {
                HoleKind::Positional => format!("${}", hole.name),
                _ => hole.name.clone(),
            };
            let known = holes.iter().filter_map(|id| self.notes.holes.get(id.0 as usize));
            let names: Vec<String> = known.map(name).take(4).collect();
            let why = match (decided, names.is_empty()) {
                (true, true) => "a variable is not set".to_owned(),
                (true, false) => format!("{} is not set", names.join(", ")),
                (false, true) => "it asks the machine that runs the script".to_owned(),
                (false, false) => format!("{} is not known", names.join(", ")),
            };
            let sets = sets.iter().take(64).cloned().collect();
            self.branches.push(Branch { span, taken, decided, why, needs: holes.to_vec(), sets });
        }
        index
    }

    /// Variables that only branches not taken would set become holes; others are doubtful if the text does not decide.
    pub(crate) fn mark_skipped(&mut self, skipped: &[(u16, Vec<HoleId>, bool)], names: &[(String, Span)]) {
        let Some((index, _, _)) = skipped.first() else { return };
        let needs: Vec<HoleId> = skipped.iter().flat_map(|(_, holes, _)| holes.iter().copied()).collect();
        let unknown = skipped.iter().any(|(_, _, unknown)| *unknown);
        for (name, span) in names {
            match self.variables.get_mut(name) {
                None => {
                    let mut needs = needs.clone();
                    sort(&mut needs, &HoleId::cmp);
                    needs.dedup();
                    let value = self.unknown(HoleKind::Branch, name, *span, needs);
                    self.branch_of.extend(value.only_hole().filter(|_| unknown).map(|hole| (hole, *index)));
                    self.set(name, value, Some(*span));
                }
                Some(slot) if unknown => match &mut slot.data {
                    Data::Scalar(value) => value.set_doubt(*index),
                    Data::Array(values) => values.values_mut().for_each(|value| value.set_doubt(*index)),
                    Data::Map(map) => map.values_mut().for_each(|value| value.set_doubt(*index)),
                },
                Some(_) => {}
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
            let matched = falling || self.case_matches(arm, &value, text.as_deref());
            if !matched {
                if value.has_holes() {
                    let sets = assigned::names(&arm.body);
                    let span = arm.patterns.first().map_or(subject.span, |pattern| pattern.span);
                    let holes: Vec<HoleId> = value.holes().collect();
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
            let flow = self.guarded(certainty, |shell| shell.run_list(&arm.body));
            falling = arm.ending == CaseEnding::Fall;
            if flow != Flow::Next || arm.ending == CaseEnding::Stop {
                self.mark_skipped(&skipped, &names);
                return if flow == Flow::Guard { Flow::Next } else { flow };
            }
        }
        self.mark_skipped(&skipped, &names);
        Flow::Next
    }

    fn case_matches(&mut self, arm: &CaseArm, value: &Value, text: Option<&str>) -> bool {
        arm.patterns.iter().any(|word| {
            let Some(pattern) = self.pattern_of(&word.parts) else { return false };
            match text {
                Some(text) if value.has_holes() => {
                    self.add_pattern_choice(value, &pattern);
                    pattern::matches(&pattern, text)
                }
                Some(text) => {
                    text.len().saturating_mul(pattern.len()) <= pattern::MATCH_COST
                        && pattern::matches(&pattern, text)
                }
                None => {
                    self.add_pattern_choice(value, &pattern);
                    pattern == "*"
                }
            }
        })
    }

    fn add_pattern_choice(&mut self, value: &Value, pattern: &str) {
        if let Some(hole) = value.only_hole()
            && !pattern.contains(['*', '?', '['])
        {
            self.add_choice(hole, pattern);
        }
    }
}
