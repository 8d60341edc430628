//! A model that the reader names in place of a shape.

use super::parse::parse;
use super::table::Table;
use crate::{Origin, Question};
use shardscope_catalog as catalog;
use shardscope_plan::Field;
use shardscope_source::{Code, Diagnostic, Severity};

/// Takes the shape of the model named by `model` for all that is not stated.
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
        // What the text leaves to a variable stays open: the catalog's value is not what the script will run with.
        if !table.has(field)
            && !table.is_open(field)
            && let Ok(value) = parse(field, &value)
        {
            table.fill(field, value, Origin::Catalog, model.name());
        }
    }
    // The reader has named a model since: what was said of an unknown one is settled.
    table.diagnostics.retain(|said| said.code != Code::UnknownModel);
    table.questions.retain(|question| question.name != Field::Model.name());
}

impl Table {
    /// A text of which nothing is understood asks for the model; with one that the reader names it stops nothing.
    pub(super) fn go_on_from_nothing(&mut self, is_empty: bool) {
        let lost = |said: &&mut Diagnostic| {
            said.severity == Severity::Error
                && matches!(said.code, Code::NoTrainingCommand | Code::UnknownSettings)
        };
        let named = self.has(Field::Model);
        let mut all = self.diagnostics.iter_mut().filter(lost);
        // With anything found the text is understood in part, and its own errors stand.
        if is_empty && all.next().is_some() {
            ask(self);
        } else if named {
            // The model that the reader names is enough for a plan; the text's silence is then only worth a warning.
            for said in all {
                said.severity = Severity::Warning;
            }
        }
    }
}

/// Whether neither text nor catalog gives a size of the model, so that the model is asked for. Any size in the text speaks for a
/// shape of its own, of which the rest is asked for.
pub(super) fn is_open(table: &Table) -> bool {
    [Field::NumLayers, Field::HiddenSize].iter().all(|field| !table.has(*field) && !table.is_open(*field))
}

/// Asks which model it is, where neither text nor catalog gives its shape.
pub(super) fn ask(table: &mut Table) {
    if !is_open(table) {
        return;
    }
    table.ask(Question {
        name: Field::Model.name().to_owned(),
        prompt: "Which model is trained? Its name on the Hub, or paste its config.json as well".to_owned(),
        choices: Vec::new(),
        proposal: None,
    });
    let tower = table.on(Field::VisionTower) && !table.has(Field::VisionParameters);
    let asked = table.questions.iter_mut().find(|question| question.name == Field::Model.name());
    if let Some(question) = asked.filter(|_| tower) {
        question.prompt.push_str(". The sizes of its vision tower are in the same file");
    }
}
