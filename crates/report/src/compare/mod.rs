//! Two plans side by side: every number with its difference, the settings that differ, and the parts that
//! changed most.

mod causes;
mod figures;
mod line;

pub use line::{Amount, Cause, ComparedNumber, Section};

use super::Report;
use shardscope_plan::{Field, Origin, Plan, Resolution, SettingValue};
use shardscope_units::{Count, Seconds};

/// One of the two runs that are compared.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// Its settings with where they come from.
    pub resolution: &'a Resolution,
    /// The plan.
    pub plan: &'a Plan,
    /// Its estimates.
    pub report: &'a Report,
}

/// All differences between two plans.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Settings with different values, explicitly stated ones first.
    pub settings: Vec<SettingDifference>,
    /// Every number of both.
    pub sections: Vec<Section>,
    /// The parts of the fullest GPU's memory that changed most, greatest change first.
    pub memory_causes: Vec<Cause>,
    /// The parts of the step that changed most, greatest change first.
    pub time_causes: Vec<Cause>,
}

/// A setting with two values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingDifference {
    /// Name of the setting.
    pub name: &'static str,
    /// The pinned plan's value; empty if it has none.
    pub before: String,
    /// The current plan's value; empty if it has none.
    pub after: String,
    /// Whether someone stated one of the two; what is not stated is derived from what is.
    pub stated: bool,
}

/// Compares `after` with `before`.
#[must_use]
pub fn compare_plans(before: Side<'_>, after: Side<'_>) -> Comparison {
    Comparison {
        settings: settings(before.resolution, after.resolution),
        sections: figures::sections(before.report, after.report),
        memory_causes: causes::causes(causes::worst(before.report), causes::worst(after.report), |bytes| {
            Amount::Memory(Count::rounded_up(bytes).bytes(1))
        }),
        time_causes: causes::causes(
            Some(&before.report.time.breakdown),
            Some(&after.report.time.breakdown),
            |seconds| Amount::Time(Seconds::new(seconds)),
        ),
    }
}

fn settings(before: &Resolution, after: &Resolution) -> Vec<SettingDifference> {
    let (mut stated_first, mut differences) = (Vec::new(), Vec::new());
    for field in Field::ALL {
        // A setting that only one of two versions knows cannot differ.
        let (Some(a), Some(b)) = (before.setting(*field), after.setting(*field)) else { continue };
        // Idle settings change no figure (a path, a name), so they do not count as differences between plans.
        if a.value == b.value || field.is_idle() {
            continue;
        }
        let stated = [a, b].into_iter().any(|setting| {
            let said = matches!(setting.origin, Origin::Script | Origin::Environment | Origin::User);
            said && setting.value != SettingValue::Null
        });
        let list = if stated { &mut stated_first } else { &mut differences };
        list.push(SettingDifference {
            name: field.name(),
            before: a.value.written(),
            after: b.value.written(),
            stated,
        });
    }
    stated_first.extend(differences);
    // What was stated explains the rest.
    stated_first
}
