//! A model that the user names instead of a shape.

use super::parse::parse;
use super::table::Table;
use crate::{Asked, Origin, Question};
use shardscope_catalog as catalog;
use shardscope_plan::Field;
use shardscope_source::{Code, Diagnostic, Severity};

/// Takes everything that is not stated from the shape of the model named by `model`.
pub(super) fn fill(table: &mut Table) {
    let name = table.word(Field::Model).to_owned();
    if name.is_empty() {
        return;
    }
    let found = catalog::find(&name);
    let address = found.address();
    let Some(model) = found.model() else {
        let message = format!("{name} is not in the model catalog");
        let hint = match address {
            Some(address) => format!("paste or drop its config.json: {address}"),
            None => "paste or drop its config.json".to_owned(),
        };
        let span = table.span(Field::Model);
        table.say(Diagnostic::error(Code::UnknownModel, message), &hint, span);
        return;
    };
    for (field, value) in model.settings() {
        // Values that the text takes from a variable stay open: the script will not run with the catalog's value.
        if !table.has(field)
            && !table.is_open(field)
            && let Ok(value) = parse(field, &value)
        {
            table.fill(field, value, Origin::Catalog, model.name());
        }
    }
    // The user has now named a model: diagnostics about an unknown one no longer apply.
    table.diagnostics.retain(|said| said.code != Code::UnknownModel);
    table.questions.retain(|question| question.asks != Asked::Setting(Field::Model));
}

impl Table {
    /// If nothing in a text is understood, the model is asked for; once the user names one, the text's errors become
    /// warnings.
    pub(super) fn go_on_from_nothing(&mut self, is_empty: bool) {
        let lost = |said: &&mut Diagnostic| {
            said.severity == Severity::Error
                && matches!(said.code, Code::NoTrainingCommand | Code::UnknownSettings)
        };
        let named = self.has(Field::Model);
        let mut all = self.diagnostics.iter_mut().filter(lost);
        // If anything was found, the text is partly understood, and its own errors remain.
        if is_empty && all.next().is_some() {
            ask(self);
        } else if named {
            // The named model is enough for a plan; the text's silence is then only worth a warning.
            for said in all {
                said.severity = Severity::Warning;
            }
        }
    }
}

/// Whether neither text nor catalog gives a size of the model, so that the model is asked for. Any size in the text
/// suggests a custom shape, of which the rest is asked for.
pub(super) fn is_open(table: &Table) -> bool {
    [Field::NumLayers, Field::HiddenSize].iter().all(|field| !table.has(*field) && !table.is_open(*field))
}

/// Whether the model is asked for, whose configuration says more than the text.
pub(super) fn is_asked(table: &Table) -> bool {
    table.questions.iter().any(|question| question.asks == Asked::Setting(Field::Model))
}

/// Asks for the model if neither text nor catalog gives its shape.
pub(super) fn ask(table: &mut Table) {
    if !is_open(table) {
        return;
    }
    table.ask(Question {
        asks: Asked::Setting(Field::Model),
        prompt: "Which model is trained? Its name on the Hub, or paste its config.json as well".to_owned(),
        choices: Vec::new(),
        proposal: None,
    });
    let tower = table.on(Field::VisionTower) && !table.has(Field::VisionParameters);
    let asked = table.questions.iter_mut().find(|question| question.asks == Asked::Setting(Field::Model));
    if let Some(question) = asked.filter(|_| tower) {
        question.prompt.push_str(". The sizes of its vision tower are in the same file");
    }
}
