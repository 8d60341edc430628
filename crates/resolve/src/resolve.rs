//! The stages from readings to a plan, in their order.

use super::recipe::Basis;
use super::table::Table;
use super::{
    batch, beside, defaults, encoder, hybrid, lacking, layout, model, named, packs, recipe, rollout,
    sharding, spelling, tuning, variables, world,
};
use crate::{Asked, NotModelled, Origin, Reading, Resolution, Setting, SettingValue};
use shardscope_plan::{Accelerator, Field, Marks, Model, Plan, Software, Word};
use shardscope_source::{Code, Diagnostic, Severity};

/// Resolves what the texts state (later readings win) and what the user sets on top, by setting name. An override with
/// an empty value cancels a statement.
///
/// The stages run in this order because each reads what earlier ones settled, and the types enforce it: none can be
/// left out or called twice.
#[must_use]
pub fn resolve(readings: &[Reading], overrides: &[(String, String)]) -> Resolution {
    Stated::new(readings, overrides).filled().checked().planned().concluded()
}

/// The stated values, before any default or rule.
struct Stated<'a> {
    readings: &'a [Reading],
    table: Table,
    /// Nothing is stated at all: the readings say why, and nothing is missing yet.
    is_empty: bool,
}

impl<'a> Stated<'a> {
    fn new(readings: &'a [Reading], overrides: &[(String, String)]) -> Self {
        // Overrides come from links, so there may be any number of them.
        let (overrides, more) = bounded(overrides);
        let mut table = Table::stated(readings, &overrides);
        variables::ask(&mut table);
        if more > 0 {
            let message = format!("and {more} more unknown settings, ignored");
            table.diagnostics.push(Diagnostic::warning(Code::UnknownSetting, message));
        }
        let is_empty = overrides.is_empty() && readings.iter().all(|reading| reading.found.is_empty());
        let silent = table.diagnostics.iter().all(|said| said.severity != Severity::Error);
        // A reader that understood nothing has usually said why; only silence needs this error.
        if is_empty && silent && !readings.is_empty() && table.questions.is_empty() {
            let message = "nothing here says what is trained; no setting of a model or its layout is stated";
            table.diagnostics.push(Diagnostic::error(Code::NoTrainingCommand, message));
        }
        table.go_on_from_nothing(is_empty);
        Self { readings, table, is_empty }
    }

    /// Fills in a model by its name, the software, words that stand for several settings, the software's defaults, the
    /// machine.
    fn filled(self) -> Filled<'a> {
        let Self { readings, mut table, is_empty } = self;
        // The sizes of a named model come first: everything below checks whether a size is present.
        named::fill(&mut table);
        let software = software(&mut table, readings);
        // Spelled out before defaults: a switch that stands for a word is a statement, and a default must not fill the
        // word first.
        spelling::spell_out(&mut table);
        encoder::spell_out(&mut table, software);
        tuning::spell_out(&mut table, software);
        hybrid::spell_out(&mut table);
        packs::fill(&mut table);
        sharding::moments_of_shards(&mut table, software);
        rollout::batch(&mut table);
        // Defaults come last: whatever still has no value gets that of its software.
        defaults::fill(&mut table, software);
        let accelerator = world::machine(&mut table, software);
        table.others = beside::names(&table)
            .into_iter()
            .filter_map(|(field, name)| Some((field, shape(&name, software)?)))
            .collect();
        Filled { readings, table, is_empty, software, accelerator }
    }
}

/// Every setting that is stated or has a default from its software.
struct Filled<'a> {
    readings: &'a [Reading],
    table: Table,
    is_empty: bool,
    software: Software,
    accelerator: Accelerator,
}

impl Filled<'_> {
    /// Missing settings become questions, and settings that are not modelled are set aside if the user continues
    /// without them.
    fn checked(self) -> Checked {
        let Self { readings, mut table, is_empty, software, accelerator } = self;
        lacking::find(&mut table, software);
        encoder::lacking(&mut table);
        let (not_modelled, marks) = lacking::marks(&mut table, readings);
        // Settings may only be removed now: the checks above must still see one that is set aside.
        let set_aside = lacking::set_aside(&mut table, &not_modelled);
        Checked { table, is_empty, software, accelerator, not_modelled, marks, set_aside }
    }
}

/// The settings from which the plan is made.
struct Checked {
    table: Table,
    is_empty: bool,
    software: Software,
    accelerator: Accelerator,
    not_modelled: Vec<NotModelled>,
    /// What the user continues without; none while the verdict is stopped.
    marks: Option<Marks>,
    set_aside: Vec<(Field, Setting)>,
}

impl Checked {
    /// Derived settings, and the plan made from everything.
    fn planned(self) -> Planned {
        let Self { mut table, is_empty, software, accelerator, not_modelled, marks, set_aside } = self;
        // Even without a plan: what follows from the settings alone is shown next to the questions.
        let basis = recipe::basis(&mut table, software);
        let plan = if is_empty { None } else { plan(&mut table, basis, accelerator) };
        if let Some(plan) = &plan {
            sharding::undated(&mut table, plan);
        }
        // The user sees these as stated, although the plan does not include them.
        for (field, setting) in set_aside {
            table.put(field, setting);
        }
        // Without marks something that is not modelled stops the verdict.
        let plan = plan.zip(marks).map(|(plan, marks)| {
            let images_untimed = plan.model().vision.is_some_and(|tower| !tower.in_engine_alone);
            plan.marked(Marks { images_untimed, ..marks })
        });
        Planned { table, not_modelled, plan }
    }
}

/// Every setting with its value, and the plan if there can be one.
struct Planned {
    table: Table,
    not_modelled: Vec<NotModelled>,
    plan: Option<Plan>,
}

impl Planned {
    /// What the user sees: no defaults of an unknown model, the most severe diagnostics, and no plan if there is an
    /// error.
    fn concluded(self) -> Resolution {
        let Self { table, not_modelled, plan } = self;
        let mut settings = table.settings();
        if !table.has(Field::NumLayers) && !table.has(Field::HiddenSize) {
            // The text that states the model is missing, and may state these too.
            let unknown = |setting: &Setting| {
                setting.origin == Origin::Default && defaults::OF_MODEL.contains(&setting.field)
            };
            for setting in settings.iter_mut().filter(|setting| unknown(setting)) {
                setting.value = SettingValue::Null;
                setting.note = None;
            }
        }
        // The default checkpoint implementation is irrelevant if no layer is recomputed. The plan keeps it, for layouts
        // that recompute.
        if !table.on(Field::GradientCheckpointing) && !table.has(Field::RecomputeGranularity) {
            let by_default = |setting: &&mut Setting| {
                setting.field == Field::ReentrantCheckpoints && setting.origin == Origin::Default
            };
            if let Some(setting) = settings.iter_mut().find(by_default) {
                (setting.value, setting.note) = (SettingValue::Null, None);
            }
        }
        let (mut questions, mut diagnostics) = (table.questions, table.diagnostics);
        // The command line that starts a program states everything, so nothing else is asked for before it.
        if questions.iter().any(|asked| asked.asks == Asked::CommandLine) {
            questions.retain(|asked| asked.asks == Asked::CommandLine);
            let follows = [Code::MissingSetting, Code::NoWorldSize, Code::OpenValue, Code::UnknownModel];
            diagnostics.retain(|said| !follows.contains(&said.code));
        }
        // Stable, so equal severities keep the order in which stages found them.
        diagnostics.sort_by_key(|said| std::cmp::Reverse(said.severity));
        // A verdict next to an error would answer a different question. Checked before truncation, which keeps the most
        // severe diagnostics, but not their number.
        let plan = plan.filter(|_| diagnostics.iter().all(|said| said.severity != Severity::Error));
        // An answered question makes room for the next.
        let unasked = questions.len().saturating_sub(MAX_DIAGNOSTICS);
        questions.truncate(MAX_DIAGNOSTICS);
        let further = diagnostics.split_off(diagnostics.len().min(MAX_DIAGNOSTICS));
        let more = [
            (Code::AndMore, further.len(), "messages, none more severe"),
            (Code::MoreQuestions, unasked, "questions, asked once others are answered"),
        ];
        for (code, count, what) in more.into_iter().filter(|(_, count, _)| *count > 0) {
            diagnostics.push(Diagnostic::note(code, format!("and {count} more {what}")));
        }
        Resolution { plan, settings, questions, diagnostics, further, not_modelled }
    }
}

/// Maximum number of reported diagnostics (the most severe ones), and of questions.
pub const MAX_DIAGNOSTICS: usize = 200;
/// Maximum number of the user's unknown settings that are reported by name.
const MAX_UNKNOWN: usize = 20;

/// The user's settings, with the last value of each and the first few unknown names; returns how many more unknown
/// names there are.
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
            // The same setting twice: the last one wins, as on a command line, and the earlier one is not even parsed.
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

/// The plan from its four parts, each reporting its errors before the next is tried.
fn plan(table: &mut Table, basis: Basis, accelerator: Accelerator) -> Option<Plan> {
    // The layout needs the number of ranks, and the batch needs the replicas of the layout.
    let model = model::model(table);
    let cluster = world::cluster(table, accelerator);
    let layout = cluster.as_ref().and_then(|cluster| layout::layout(table, cluster.gpus()));
    let batch = layout.as_ref().and_then(|layout| batch::batch(table, layout.data));
    if let Some(layout) = &layout {
        rollout::groups(table, layout.data);
    }
    // All four are tried before any is required, so that one pass reports everything that is missing.
    let (Some(mut model), Some(cluster), Some(layout), Some(batch)) = (model, cluster, layout, batch) else {
        return None;
    };
    if let Some(pack) = batch.pack {
        model.seq_length = pack.tokens;
        // Positions restart with every sample.
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

/// The shape of the model with this name as `software` builds it; none if it is not in the catalog, or has parts other
/// than a decoder.
fn shape(name: &str, software: Software) -> Option<Model> {
    // The batch and machine of the trained model do not matter here; these only allow a plan to be made.
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

/// The software: set by the user, recognised by a reader, or Megatron core with Transformer Engine, Megatron-LM's
/// default since core 0.6.
fn software(table: &mut Table, readings: &[Reading]) -> Software {
    if let Some(software) = table.chosen() {
        return software;
    }
    // The last reading wins, as for settings.
    let recognised = readings.iter().rev().find_map(|reading| reading.software.as_ref());
    let (software, origin, note) = match recognised {
        Some((software, why)) => (*software, Origin::Derived, why.as_str()),
        None => (Software::MegatronCoreTe, Origin::Default, "default of Megatron-LM since core 0.6"),
    };
    table.fill(Field::Software, software.value(), origin, note);
    software
}
