//! The model catalog.

use maud::html;
use shardscope::catalog::{model, model_names};
use shardscope::estimate::parameters;
use shardscope::explain::anchor;
use shardscope::launch::{Request, read};
use shardscope::link::{Shared, encode};
use shardscope::plan::Field;
use shardscope::session::UserInput;
use shardscope::units::{Quantity, grouped, rounded};

use super::write::{Chapter, Row, plain, prose, table};

/// Every model.
pub(super) fn chapter() -> Chapter {
    let rows: Vec<_> = model_names().filter_map(row).collect();
    let lead = prose(
        "Shapes are as published in each model's `config.json` and paper. Parameters are counted from the shape by the \
         engine, and tests compare the totals of most models with published counts. Click a name to open the model on one \
         H100.",
    );
    let headings = [
        "Model",
        ">parameters",
        ">active",
        ">layers",
        ">hidden",
        ">MLP",
        ">heads",
        ">K/V heads",
        ">experts",
        ">vocabulary",
    ];
    Chapter::new("models", "Models", html! { (lead) (table("Models", &headings, &rows)) })
}

fn row(name: &'static str) -> Option<Row> {
    let (_, settings) = model(name)?;
    let value =
        |field: Field| settings.iter().find(|(known, _)| *known == field).map(|(_, value)| value.clone());
    let number =
        |field: Field| value(field).and_then(|text| text.parse().ok()).map_or("–".to_owned(), grouped);
    let experts = match (number(Field::NumExperts), number(Field::MoeRouterTopk)) {
        (all, _) if all == "–" => all,
        (all, each) => format!("{all}, {each} each"),
    };
    let mut asked: Vec<(String, String)> =
        settings.iter().map(|(field, value)| (field.name().to_owned(), value.clone())).collect();
    let machine = [
        ("accelerator", "H100-SXM"),
        ("world_size", "1"),
        ("gpus_per_node", "1"),
        ("micro_batch_size", "1"),
        ("global_batch_size", "1"),
        ("bf16", "true"),
        ("seq_length", "1024"),
    ];
    // The model's own values for these, including its sequence length, are replaced.
    asked.retain(|(name, _)| machine.iter().all(|(other, _)| other != name));
    asked.extend(machine.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let link = encode(&Shared::Settings(asked.clone()));
    let input = UserInput::of_settings(asked);
    let source = input.source();
    let plan = read(&Request {
        source: &source,
        environment: &input.shell_environment(),
        overrides: &input.settings,
    })
    .plan?;
    let counted = parameters(&plan);
    let active = if counted.active_per_token == counted.total {
        "all".to_owned()
    } else {
        rounded(counted.active_per_token.number())
    };
    let figures = [
        rounded(counted.total.number()),
        active,
        number(Field::NumLayers),
        number(Field::HiddenSize),
        number(Field::FfnHiddenSize),
        number(Field::NumAttentionHeads),
        number(Field::NumQueryGroups),
        experts,
        number(Field::VocabSize),
    ];
    let name_cell = html! { a href={ "./#" (link) } { (name) } };
    let cells = [name_cell].into_iter().chain(figures.map(plain));
    Some(Row::at(format!("model-{}", anchor(name)), cells))
}
