//! Every setting as it was understood: its value, where it comes from, and a control to try another.

use shardscope::intake::Origin;
use shardscope::session::{Chapter, Event, Row, chapters};

use super::rewritten::rewritten_script;
use crate::app::act::Act;
use crate::app::desk::{Desk, Place};
use crate::app::parts::{Tag, button, choose, details, group, tag};
use crate::app::words::{fill, numbered, settings as words};

pub(crate) fn settings(desk: &Desk) -> Tag {
    let (hand, all) = (&desk.state.hand, desk.look.all_settings);
    let chapters = chapters(&desk.state.answer.resolution.settings);
    let (mut stated, mut assumed) = (0_u64, 0_u64);
    for chapter in &chapters {
        for row in &chapter.rows {
            *(if row.is_stated() { &mut stated } else { &mut assumed }) += 1;
        }
    }
    let summary = tag("summary")
        .with("h2", words::TITLE)
        .saying("span.soft small", numbered(words::COUNTED, &[stated, assumed]));
    let alone = hand.is_settings_alone();
    let about = tag("p.soft small").text(if alone { words::ALONE } else { words::BESIDE });
    let reset = (hand.is_changed() && !alone).then(|| {
        let reset = button(desk, "button.link", Act::Do(Event::UnsetAll));
        group().text(" ").child(reset.text(words::RESET))
    });
    let toggle = button(desk, "button.button", Act::All(Place::Settings))
        .says("aria-expanded", all)
        .text(if all { words::FEWER } else { words::ALL });
    details("details.panel settings", desk.look.wide, summary)
        .child(about.maybe(reset))
        .maybe(rewritten_script(desk))
        .each(&chapters, |chapter| table(desk, chapter, all))
        .child(toggle)
}

/// Settings shown without being stated: what everyone asks about first.
fn matters(row: &Row) -> bool {
    const FIRST: [&str; 16] = [
        "num_layers",
        "hidden_size",
        "ffn_hidden_size",
        "num_attention_heads",
        "num_query_groups",
        "seq_length",
        "padded_vocab_size",
        "accelerator",
        "world_size",
        "tensor_model_parallel_size",
        "pipeline_model_parallel_size",
        "data_parallel_size",
        "micro_batch_size",
        "num_micro_batches",
        "software",
        "params_dtype",
    ];
    row.is_stated() || FIRST.contains(&row.setting.name)
}

fn table(desk: &Desk, chapter: &Chapter, all: bool) -> Tag {
    let mut rows = group();
    for row in chapter.rows.iter().filter(|row| all || matters(row)) {
        rows = rows.child(line(desk, row));
    }
    if rows.is_empty() {
        return group();
    }
    let columns = tag("colgroup").child(tag("col.name")).child(tag("col.value")).child(tag("col.from"));
    let heads = tag("tr").each(&words::HEADS, |head| tag("th").set("scope", "col").text(head));
    tag("table.settings-table")
        .with("caption", chapter.title)
        .child(columns)
        .child(tag("thead.hidden").child(heads))
        .child(tag("tbody").child(rows))
}

fn line(desk: &Desk, row: &Row) -> Tag {
    let setting = &row.setting;
    let name = setting.name;
    let written = setting.value.written();
    let choices = row.choices();
    let about = row.field.about();
    let control = if choices.is_empty() {
        tag("input.field").attr("value", written).set("autocomplete", "off").set("spellcheck", "false").on(
            desk,
            "keydown",
            Act::Set(name),
        )
    } else {
        choose().each(&choices, |choice| {
            let option = tag("option").set("value", choice).flag("selected", **choice == *written);
            option.text(shown(choice))
        })
    };
    let control = control.attr("aria-label", fill("{0}, {1}", [name.to_owned(), about.to_owned()])).on(
        desk,
        "change",
        Act::Set(name),
    );
    tag(if row.is_stated() { "tr" } else { "tr.assumed" })
        .key(name.to_owned())
        .child(tag("th").set("scope", "row").attr("title", about.to_string()).child(breakable(name)))
        .child(tag("td").child(control))
        .child(tag("td.origin").child(origin(desk, row)))
}

/// The name, which may be broken after each underscore.
fn breakable(name: &'static str) -> Tag {
    name.split_inclusive('_').fold(group(), |drawn, word| drawn.text(word).child(tag("wbr")))
}

fn shown(choice: &'static str) -> &'static str {
    match choice {
        "true" => words::YES,
        "false" => words::NO,
        other => other,
    }
}

/// Where the value comes from: a place in the text to go to, or a word.
fn origin(desk: &Desk, row: &Row) -> Tag {
    let setting = &row.setting;
    let word = match setting.origin {
        Origin::Script => words::SCRIPT,
        Origin::Environment => words::ANSWER,
        Origin::Catalog => words::CATALOG,
        Origin::Default => words::DEFAULT,
        Origin::Derived => words::DERIVED,
        Origin::User if desk.state.hand.is_settings_alone() => words::SET,
        Origin::User => {
            return button(desk, "button.link", Act::Do(Event::Unset(setting.name.to_owned())))
                .text(words::YOURS)
                .saying("span.hidden", fill(words::UNDONE, [setting.name.to_owned()]));
        }
    };
    let origin = match setting.span {
        Some(span) => {
            let place = desk.state.answer.source.position(span.start);
            button(desk, "button.link", Act::Show(span))
                .say(numbered(words::LINE, &[place.line.into()]))
                .saying("span.hidden", fill(words::STATES, [setting.name.to_owned()]))
        }
        None => tag("span").text(word),
    };
    match setting.note.as_ref().or(setting.flag.as_ref()) {
        Some(note) => origin.attr("title", note.clone()),
        None => origin,
    }
}
