//! The stages from readings to a plan, in their order.

use super::recipe::Basis;
use super::table::Table;
use super::{
    batch, beside, defaults, hybrid, lacking, layout, model, named, packs, recipe, rollout, spelling, tuning,
    variables, world,
};
use crate::{COMMAND_LINE, NotModelled, Origin, Reading, Resolution, Setting, SettingValue};
use shardscope_plan::{Accelerator, Field, Marks, Model, Plan, Software};
use shardscope_sorting::sort_by_key;
use shardscope_source::{Code, Diagnostic, Severity};

/// Resolves what the texts state (later readings win) and what the user sets on top, by setting name.
/// An override with an empty value takes a statement back.
///
/// The stages run in this order because each reads what the ones before it settled, and the types hold it: none can be
/// left out or called twice.
#[must_use]
pub fn resolve(readings: &[Reading], overrides: &[(String, String)]) -> Resolution {
    Stated::new(readings, overrides).filled().checked().planned().concluded()
}

/// What is stated, before any default or rule.
struct Stated<'a> {
    readings: &'a [Reading],
    table: Table,
    /// Nothing is said at all: the readings tell why, and nothing is missing yet.
    is_empty: bool,
}

impl<'a> Stated<'a> {
    fn new(readings: &'a [Reading], overrides: &[(String, String)]) -> Self {
        // Overrides come from links, so their number is anybody's.
        let (overrides, more) = bounded(overrides);
        let mut table = Table::stated(readings, &overrides);
        variables::ask(&mut table);
        if more > 0 {
            let message = format!("and {more} more unknown settings, ignored");
            table.diagnostics.push(Diagnostic::warning(Code::UnknownSetting, message));
        }
        let is_empty = overrides.is_empty() && readings.iter().all(|reading| reading.found.is_empty());
        let silent = table.diagnostics.iter().all(|said| said.severity != Severity::Error);
        // A reader that understood nothing has mostly said why; only silence needs this error.
        if is_empty && silent && !readings.is_empty() && table.questions.is_empty() {
            let message = "nothing here says what is trained; no setting of a model or its layout is stated";
            table.diagnostics.push(Diagnostic::error(Code::NoTrainingCommand, message));
        }
        table.go_on_from_nothing(is_empty);
        Self { readings, table, is_empty }
    }

    /// A model by its name, the software, words that stand for several settings, the software's defaults, the machine.
    fn filled(self) -> Filled<'a> {
        let Self { readings, mut table, is_empty } = self;
        // Sizes of a model by its name come first: everything below asks whether a size is there.
        named::fill(&mut table);
        let software = software(&mut table, readings);
        // Spelled out before defaults: a switch that stands for a word is a statement, and a default must not fill it
        // first.
        spelling::spell_out(&mut table);
        tuning::spell_out(&mut table, software);
        hybrid::spell_out(&mut table);
        packs::fill(&mut table);
        rollout::batch(&mut table);
        // Last of the fillers: whatever still has no value gets its software's.
        defaults::fill(&mut table, software);
        let accelerator = world::machine(&mut table, software);
        table.others = beside::names(&table)
            .into_iter()
            .filter_map(|(field, name)| Some((field, shape(&name, software)?)))
            .collect();
        Filled { readings, table, is_empty, software, accelerator }
    }
}

/// Every setting that is stated or has a default of its software.
struct Filled<'a> {
    readings: &'a [Reading],
    table: Table,
    is_empty: bool,
    software: Software,
    accelerator: Accelerator,
}

impl Filled<'_> {
    /// What is missing becomes a question, and what is not modelled is set aside where the reader goes on without it.
    fn checked(self) -> Checked {
        let Self { readings, mut table, is_empty, software, accelerator } = self;
        lacking::find(&mut table, software);
        let (not_modelled, marks) = lacking::marks(&mut table, readings);
        // Only now may settings be taken away: a setting that is set aside must still have been seen by the checks above.
        let set_aside = lacking::set_aside(&mut table, &not_modelled);
        Checked { table, is_empty, software, accelerator, not_modelled, marks, set_aside }
    }
}

/// The settings that the plan is made of.
struct Checked {
    table: Table,
    is_empty: bool,
    software: Software,
    accelerator: Accelerator,
    not_modelled: Vec<NotModelled>,
    /// What the reader goes on without; none while the verdict is stopped.
    marks: Option<Marks>,
    set_aside: Vec<(Field, Setting)>,
}

impl Checked {
    /// What follows from the settings, and the plan of it all.
    fn planned(self) -> Planned {
        let Self { mut table, is_empty, software, accelerator, not_modelled, marks, set_aside } = self;
        // Even without a plan: what follows from the settings alone is shown beside the questions.
        let basis = recipe::basis(&mut table, software);
        let plan = if is_empty { None } else { plan(&mut table, basis, accelerator) };
        // The reader sees these as stated, though the plan goes on without them.
        for (field, setting) in set_aside {
            table.put(field, setting);
        }
        // Without marks the verdict is stopped by something not modelled.
        let plan = plan.zip(marks).map(|(plan, marks)| {
            let images_untimed = plan.model().vision.is_some_and(|tower| !tower.in_engine_alone);
            plan.marked(Marks { images_untimed, ..marks })
        });
        Planned { table, not_modelled, plan }
    }
}

/// Every setting with its value, and the plan where there can be one.
struct Planned {
    table: Table,
    not_modelled: Vec<NotModelled>,
    plan: Option<Plan>,
}

impl Planned {
    /// What the reader is told of it: no defaults of a model that is not stated, the gravest remarks, no plan beside an error.
    fn concluded(self) -> Resolution {
        let Self { table, not_modelled, plan } = self;
        let mut settings = table.settings();
        if !table.has(Field::NumLayers) && !table.has(Field::HiddenSize) {
            // Whatever states the model is not at hand, and may state these too.
            let unknown = |setting: &Setting| {
                setting.origin == Origin::Default
                    && defaults::OF_MODEL.iter().any(|field| field.name() == setting.name)
            };
            for setting in settings.iter_mut().filter(|setting| unknown(setting)) {
                setting.value = SettingValue::Null;
                setting.note = None;
            }
        }
        let (mut questions, mut diagnostics) = (table.questions, table.diagnostics);
        // The line that starts a program says all of it, so that nothing else is asked before.
        if questions.iter().any(|asked| asked.name == COMMAND_LINE) {
            questions.retain(|asked| asked.name == COMMAND_LINE);
            let follows = [Code::MissingSetting, Code::NoWorldSize, Code::OpenValue, Code::UnknownModel];
            diagnostics.retain(|said| !follows.contains(&said.code));
        }
        // Stable, so equal severities keep the order in which stages found them.
        sort_by_key(&mut diagnostics, |said| std::cmp::Reverse(said.severity));
        // A verdict beside an error would answer another question than the text asks.
        // Before truncation, which keeps the gravest, though not their number.
        let plan = plan.filter(|_| diagnostics.iter().all(|said| said.severity != Severity::Error));
        let more = diagnostics.len().saturating_sub(MAX_DIAGNOSTICS);
        if more > 0 {
            diagnostics.truncate(MAX_DIAGNOSTICS);
            let message = format!("and {more} more messages, none more severe");
            diagnostics.push(Diagnostic::note(Code::AndMore, message));
        }
        questions.truncate(MAX_DIAGNOSTICS);
        Resolution { plan, settings, questions, diagnostics, not_modelled }
    }
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
            // The same setting twice: the last wins, as on a command line, and the earlier one is not even parsed.
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
    // The layout needs the number of ranks, and the batch needs the replicas of the layout.
    let model = model::model(table);
    let cluster = world::cluster(table, accelerator);
    let layout = cluster.as_ref().and_then(|cluster| layout::layout(table, cluster.gpus()));
    let batch = layout.as_ref().and_then(|layout| batch::batch(table, layout.data));
    // All four are tried before any is missed, so that one pass says everything that is lacking.
    let (Some(mut model), Some(cluster), Some(layout), Some(batch)) = (model, cluster, layout, batch) else {
        return None;
    };
    if let Some(pack) = batch.pack {
        model.seq_length = pack.tokens;
        // Positions start again with every sample.
        model.max_position_embeddings = model.max_position_embeddings.max(pack.tokens);
    }
    let recipe = recipe::recipe(table, basis, &model, batch)?;
    match Plan::new(model, cluster, layout, recipe) {
        Ok(plan) => Some(plan),
        Err(refused) => {
            table.refuse_all(refused);
            None
        }
    }
}

/// The shape of a model of this name as `software` builds it; none where the catalog does not have it, or it has parts beside a decoder.
fn shape(name: &str, software: Software) -> Option<Model> {
    // Batch and machine are those of the model that trains; these only let the plan be made.
    let alone = [
        ("model", name),
        ("software", software.name()),
        ("seq_length", "8"),
        ("micro_batch_size", "1"),
        ("num_nodes", "1"),
        ("gpus_per_node", "1"),
    ];
    let resolution = resolve(&[], &alone.map(|(field, value)| (field.to_owned(), value.to_owned())));
    resolution.plan.filter(|_| resolution.not_modelled.is_empty()).map(|plan| plan.model().clone())
}

/// The software: set, told by a reader, or Megatron core with Transformer Engine, its default since core 0.6.
fn software(table: &mut Table, readings: &[Reading]) -> Software {
    let set = table.word(Field::Software);
    for software in &Software::ALL {
        if software.name() == set {
            return *software;
        }
    }
    // The last reading wins, as for settings.
    let told = readings.iter().rev().find_map(|reading| reading.software.as_ref());
    let (software, origin, note) = match told {
        Some((software, why)) => (*software, Origin::Derived, why.as_str()),
        None => (Software::MegatronCoreTe, Origin::Default, "default of Megatron-LM since core 0.6"),
    };
    table.fill(Field::Software, SettingValue::Text(software.name().to_owned()), origin, note);
    software
}
