//! What the text leaves open, as fields with a proposal.

use shardscope::intake::Question;

use crate::app::act::Act;
use crate::app::desk::Desk;
use crate::app::parts::{Tag, choose, group, options, section, tag};
use crate::app::words::questions as words;

/// The questions of the answer; nothing when there are none.
pub(crate) fn questions(desk: &Desk) -> Tag {
    let questions = &desk.state.answer.resolution.questions;
    if questions.is_empty() {
        return group();
    }
    section(desk, "section.panel questions", "questions-title", &words::PANEL)
        .each(questions, |question| ask(desk, question))
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
