//! What the text leaves open, as fields with a proposal, and what stops the verdict, with the way on.

use shardscope::intake::{NotModelled, Question};
use shardscope::plan::Field;
use shardscope::session::Event;

use super::diagnostics::sentence;
use crate::app::act::Act;
use crate::app::desk::Desk;
use crate::app::parts::{Tag, button, choose, group, options, section, tag};
use crate::app::words::questions as words;

/// The questions of the answer; nothing when there are none.
pub(crate) fn questions(desk: &Desk) -> Tag {
    let resolution = &desk.state.answer.resolution;
    let gone = resolution.setting(Field::Without).map(|setting| setting.value.written()).unwrap_or_default();
    let stops = |item: &&NotModelled| !gone.split(' ').any(|name| item.is_called(name));
    let stopping: Vec<&NotModelled> = resolution.not_modelled.iter().filter(stops).collect();
    if resolution.questions.is_empty() && stopping.is_empty() {
        return group();
    }
    section(desk, "section.panel questions", "questions-title", &words::PANEL)
        .each(&stopping, |item| go_on(desk, item))
        .each(&resolution.questions, |question| ask(desk, question))
}

/// A setting that is not modelled, and the way on without it.
fn go_on(desk: &Desk, item: &NotModelled) -> Tag {
    let without =
        button(desk, "button.button", Act::Do(Event::Without(item.name.clone()))).text(words::WITHOUT);
    tag("div.question").key(item.name.clone()).saying("span", sentence(&item.sentence())).child(without)
}

fn ask(desk: &Desk, question: &Question) -> Tag {
    let Question { name, prompt, choices, proposal } = question;
    let id = ["ask-", name].concat();
    let proposal = proposal.as_deref().unwrap_or_default();
    let field = if choices.is_empty() {
        tag("input.field").attr("value", proposal.to_owned()).set("autocomplete", "off")
    } else {
        options(choose(), &mut choices.iter().map(String::as_str), proposal)
    };
    let fields = tag("div")
        .child(field.attr("id", id.clone()))
        .child(tag("button.button").set("type", "submit").text(words::USE));
    let label = tag("label").attr("for", id).say(prompt.clone()).text(" ").saying("code", name.clone());
    tag("form.question")
        .key(name.clone())
        .on(desk, "submit", Act::Answer(name.clone()))
        .child(label)
        .child(fields)
}
