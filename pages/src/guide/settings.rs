//! Every setting: its meaning, its values, the flags that state it, and its default.

use maud::{Markup, html};
use shardscope::launch::formats::keys;
use shardscope::launch::megatron::flags_of;
use shardscope::launch::{Origin, Setting, SettingValue};
use shardscope::plan::{Field, ValueKind};
use shardscope::session::chapters as grouped_settings;
use shardscope::units::grouped;

use super::plans::plans;
use super::write::{Chapter, code, joined, plain, prose};

/// A chapter for each group of settings, as on the page.
pub(super) fn chapters() -> Vec<Chapter> {
    let lead = prose(
        "Names are Megatron's arguments in snake case, and links and the page's controls use the same names. Defaults are \
         those of the framework that the text belongs to; where frameworks differ, both are given.",
    );
    let mut settings = Chapter::new("settings", "Settings", lead);
    for group in grouped_settings(&every()) {
        let rows = html! { div.settings-list { @for row in &group.rows { (shown(row.field)) } } };
        settings = settings.part(group.title, rows);
    }
    vec![settings]
}

/// Every setting with some value, so that none is missing from its group.
fn every() -> Vec<Setting> {
    Field::ALL
        .iter()
        .map(|field| Setting {
            field: *field,
            value: SettingValue::Bool(true),
            origin: Origin::Default,
            flag: None,
            span: None,
            note: None,
        })
        .collect()
}

fn shown(field: Field) -> Markup {
    let name = field.name();
    let mut lines = vec![("takes", kind(field.kind()))];
    let flags: Vec<Markup> = flags_of(name)
        .iter()
        .map(|(flag, until)| html! { (code(flag)) @if let Some(last) = until { " (up to " (last) ")" } })
        .collect();
    if !flags.is_empty() {
        lines.push(("flags", joined(&flags, ", ")));
    }
    let keys = keys_of(field);
    if !keys.is_empty() {
        lines.push(("keys", joined(&keys, "; ")));
    }
    let (defaults, rules) = unstated(field);
    if !defaults.is_empty() {
        lines.push(("default", joined(&defaults, "; ")));
    }
    if !rules.is_empty() {
        lines.push(("derived", plain(rules.join("; "))));
    }
    if field.is_idle() {
        lines.push(("note", plain("changes no figure by itself")));
    }
    html! {
        article.setting id={ "setting-" (name) } {
            h4 { a href={ "#setting-" (name) } { code { (name) } } }
            p { (field.about()) }
            dl { @for (what, words) in &lines { div { dt { (what) } dd { (words) } } } }
        }
    }
}

/// The keys of settings files that state `field`, by format.
fn keys_of(field: Field) -> Vec<Markup> {
    let mut formats: Vec<(&str, Vec<Markup>)> = Vec::new();
    for (format, key, _) in keys().into_iter().filter(|(_, _, of)| *of == field) {
        match formats.iter_mut().find(|(name, _)| *name == format.name()) {
            Some((_, all)) => all.push(code(key)),
            None => formats.push((format.name(), vec![code(key)])),
        }
    }
    formats.iter().map(|(name, keys)| html! { (short(name)) ": " (joined(keys, ", ")) }).collect()
}

fn short(format: &str) -> &str {
    let plain = format.trim_start_matches("a ").trim_start_matches("an ");
    plain.trim_end_matches(" configuration").trim_end_matches(" model")
}

fn kind(kind: ValueKind) -> Markup {
    match kind {
        ValueKind::Count(least, most) => {
            plain(format!("a whole number from {} to {}", grouped(least), grouped(most)))
        }
        ValueKind::Real(least, most) => plain(format!("a number from {least} to {most}")),
        ValueKind::Flag => plain("yes or no"),
        ValueKind::Word(words) => {
            let words: Vec<Markup> = words.iter().map(|word| code(word)).collect();
            html! { "one of " (joined(&words, ", ")) }
        }
        ValueKind::Text => plain("text"),
        ValueKind::Counts => plain("whole numbers"),
        ValueKind::Words => plain("words"),
    }
}

/// The value of a setting that no text states: defaults and whose they are, and rules that derive it from others.
fn unstated(field: Field) -> (Vec<Markup>, Vec<String>) {
    const RULES: usize = 3;
    let (mut defaults, mut rules): (Vec<(String, Vec<String>)>, Vec<String>) = (Vec::new(), Vec::new());
    for named in plans() {
        // Resolved settings are in the order of the fields.
        let Some(setting) = named.settings.get(field.index()) else { continue };
        if setting.value == SettingValue::Null {
            continue;
        }
        let note = setting.note.clone().unwrap_or_default();
        // Borrowed from Megatron for software that states none of its own.
        if note.starts_with("as in ") {
            continue;
        }
        match setting.origin {
            Origin::Default => {
                let value = setting.value.written();
                let whose = note.trim_start_matches("default of ").to_owned();
                match defaults.iter_mut().find(|(known, _)| *known == value) {
                    Some((_, all)) if all.contains(&whose) => {}
                    Some((_, all)) => all.push(whose),
                    None => defaults.push((value, vec![whose])),
                }
            }
            Origin::Derived => {
                let rule = without_value(&note).to_owned();
                if !rule.is_empty() && !rules.contains(&rule) && rules.len() < RULES {
                    rules.push(rule);
                }
            }
            _ => {}
        }
    }
    let words = |(value, whose): &(String, Vec<String>)| {
        let whose: Vec<&str> = whose.iter().filter(|one| !one.is_empty()).map(String::as_str).collect();
        html! {
            @if value.is_empty() { "none" } @else { (code(value)) }
            @if !whose.is_empty() { " (" (whose.join("; ")) ")" }
        }
    };
    (defaults.iter().map(words).collect(), rules)
}

/// A rule without the value that it gave in one plan.
fn without_value(rule: &str) -> &str {
    match rule.rsplit_once(" = ") {
        Some((rule, value)) if value.bytes().all(|byte| byte.is_ascii_digit()) => rule,
        _ => rule,
    }
}
