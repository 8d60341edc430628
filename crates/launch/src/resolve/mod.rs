//! From what was found to a plan: spelling, the software, defaults, rules, then [`Plan::new`].

mod batch;
mod defaults;
mod frequency;
mod kernels;
mod lacking;
mod layout;
mod model;
mod named;
mod precision;
mod recipe;
mod recompute;
mod rollout;
mod setting;
mod sharding;
mod spelling;
mod switches;
mod synonyms;
mod table;
mod tuning;
mod vocabulary;
mod world;

pub use setting::{Setting, SettingValue};

use super::{NotModelled, Origin, Question, Reading};
use recipe::Basis;
use shardscope_plan::{Accelerator, Field, Plan, Software};
use shardscope_source::{Code, Diagnostic, Severity};
use table::Table;

/// What came of the readings.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolution {
    /// The plan, if there can be one.
    pub plan: Option<Plan>,
    /// Every setting with its value and origin, in the order of [`Field::ALL`].
    pub settings: Vec<Setting>,
    /// What the text leaves open.
    pub questions: Vec<Question>,
    /// What there is to say, errors first.
    pub diagnostics: Vec<Diagnostic>,
    /// Settings that change figures and are not modelled. There is a plan only where the reader goes on without all of them.
    pub not_modelled: Vec<NotModelled>,
}

impl Resolution {
    /// A setting by its name.
    #[must_use]
    pub fn setting(&self, field: Field) -> Option<&Setting> {
        self.settings.get(field.index())
    }
}

/// Resolves what the texts state (later readings win) and what the user sets on top, by setting name.
/// An override with an empty value takes a statement back.
#[must_use]
pub fn resolve(readings: &[Reading], overrides: &[(String, String)]) -> Resolution {
    let (overrides, more) = bounded(overrides);
    let overrides = overrides.as_slice();
    let mut table = Table::stated(readings, overrides);
    if more > 0 {
        let message = format!("and {more} more settings that there are not; they are left out");
        table.diagnostics.push(Diagnostic::warning(Code::UnknownSetting, message));
    }
    named::fill(&mut table);
    let software = software(&mut table, readings);
    spelling::spell_out(&mut table);
    tuning::spell_out(&mut table, software);
    batch::packed(&mut table);
    rollout::batch(&mut table);
    defaults::fill(&mut table, software);
    // Nothing said: the readings tell why, and nothing is missing yet.
    let nothing = overrides.is_empty() && readings.iter().all(|reading| reading.found.is_empty());
    let accelerator = world::machine(&mut table);
    lacking::find(&mut table);
    let (not_modelled, marks) = lacking::marks(&mut table, readings);
    let held = lacking::set_aside(&mut table, &not_modelled);
    let basis = recipe::basis(&mut table, software);
    let plan = if nothing { None } else { plan(&mut table, basis, accelerator) };
    for (field, setting) in held {
        table.put(field, setting);
    }
    let mut plan = plan.zip(marks).map(|(plan, marks)| plan.marked(marks));
    let mut settings = table.settings();
    if !table.has(Field::NumLayers) && !table.has(Field::HiddenSize) {
        // Whatever states the model is not at hand, and may state these too.
        let unknown = |setting: &Setting| {
            setting.origin == Origin::Default
                && defaults::OF_MODEL.iter().any(|field| field.name() == setting.name)
        };
        for setting in &mut settings {
            if unknown(setting) {
                setting.value = SettingValue::Null;
                setting.note = None;
            }
        }
    }
    let (mut questions, mut diagnostics) = (table.questions, table.diagnostics);
    diagnostics.sort_by_key(|said| std::cmp::Reverse(said.severity));
    let more = diagnostics.len().saturating_sub(MAX_DIAGNOSTICS);
    if more > 0 {
        diagnostics.truncate(MAX_DIAGNOSTICS);
        diagnostics.push(Diagnostic::note(
            Code::AndMore,
            format!("and {more} more remarks, none graver than these"),
        ));
    }
    questions.truncate(MAX_DIAGNOSTICS);
    if diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        plan = None;
    }
    Resolution { plan, settings, questions, diagnostics, not_modelled }
}

/// Remarks that are told at most, the gravest; also questions.
pub const MAX_DIAGNOSTICS: usize = 200;
/// Settings of the user's own that do not exist and are told by name at most.
const MAX_UNKNOWN: usize = 20;

/// What the user sets, of each setting the last, and of names that there are not the first few; how many more of these
/// there are.
fn bounded(overrides: &[(String, String)]) -> (Vec<(String, String)>, usize) {
    let mut last = [None; Field::ALL.len()];
    for (index, (name, _)) in overrides.iter().enumerate() {
        if let Some(slot) = Field::named(name).and_then(|field| last.get_mut(field.index())) {
            *slot = Some(index);
        }
    }
    let (mut kept, mut unknown) = (Vec::new(), 0_usize);
    for (index, pair) in overrides.iter().enumerate() {
        match Field::named(&pair.0) {
            Some(field) if last.get(field.index()) != Some(&Some(index)) => continue,
            Some(_) => {}
            None => {
                unknown += 1;
                if unknown > MAX_UNKNOWN {
                    continue;
                }
            }
        }
        kept.push(pair.clone());
    }
    (kept, unknown.saturating_sub(MAX_UNKNOWN))
}

/// The plan of its four parts, each saying what is wrong with it before the next is tried.
fn plan(table: &mut Table, basis: Basis, accelerator: Accelerator) -> Option<Plan> {
    let model = model::model(table);
    let cluster = world::cluster(table, accelerator);
    let layout = cluster.as_ref().and_then(|cluster| layout::layout(table, cluster.gpus()));
    let batch = layout.as_ref().and_then(|layout| batch::batch(table, layout.data));
    let (Some(model), Some(cluster), Some(layout), Some(batch)) = (model, cluster, layout, batch) else {
        return None;
    };
    let recipe = recipe::recipe(table, basis, &model, batch)?;
    match Plan::new(model, cluster, layout, recipe) {
        Ok(plan) => Some(plan),
        Err(refused) => {
            table.refuse_all(refused);
            None
        }
    }
}

/// The software: set, told by a reader, or Megatron core with Transformer Engine, its default since core 0.6.
fn software(table: &mut Table, readings: &[Reading]) -> Software {
    let set = table.word(Field::Software);
    for software in &Software::ALL {
        if software.name() == set {
            return *software;
        }
    }
    let told = readings.iter().rev().find_map(|reading| reading.software.as_ref());
    let (software, origin, note) = match told {
        Some((software, why)) => (*software, Origin::Derived, why.as_str()),
        None => (Software::MegatronCoreTe, Origin::Default, "default of Megatron-LM since core 0.6"),
    };
    table.fill(Field::Software, SettingValue::Text(software.name().to_owned()), origin, note);
    software
}
