//! Every setting: what it is, what it may hold, which flags state it, what it is when nothing does.

use shardscope::intake::formats::keys;
use shardscope::intake::megatron::flags_of;
use shardscope::intake::{Origin, Setting, SettingValue};
use shardscope::plan::{Field, Kind};
use shardscope::quantity::grouped;
use shardscope::session::chapters as grouped_settings;

use super::plans::plans;
use super::write::{Chapter, code, prose};
use crate::html::escape;

/// A chapter for each group of settings, as the page has them.
pub(super) fn chapters() -> Vec<Chapter> {
    let lead = prose(
        "Names are Megatron's arguments in snake case; links and the page's own controls take them as they stand here. A default \
         is that of the framework that the text looks like; where two differ both are given.",
    );
    let mut settings = Chapter::new("settings", "Settings", lead);
    for group in grouped_settings(&every()) {
        let rows: String = group.rows.iter().map(|row| shown(row.field)).collect();
        settings = settings.part(group.title, &format!("<div class=\"settings-list\">\n{rows}</div>\n"));
    }
    vec![settings]
}

/// Every setting with some value, so that none is left out of its group.
fn every() -> Vec<Setting> {
    Field::ALL
        .iter()
        .map(|field| Setting {
            name: field.name(),
            value: SettingValue::Bool(true),
            origin: Origin::Default,
            flag: None,
            span: None,
            note: None,
        })
        .collect()
}

fn shown(field: Field) -> String {
    let name = field.name();
    let mut lines = vec![("takes", kind(field.kind()))];
    let flags: Vec<String> = flags_of(name)
        .iter()
        .map(|(flag, until)| code(flag) + &until.map_or(String::new(), |last| format!(" (up to {last})")))
        .collect();
    if !flags.is_empty() {
        lines.push(("flags", flags.join(", ")));
    }
    let keys = keys_of(field);
    if !keys.is_empty() {
        lines.push(("keys", keys));
    }
    let (defaults, rules) = unstated(field);
    if !defaults.is_empty() {
        lines.push(("default", defaults.join("; ")));
    }
    if !rules.is_empty() {
        lines.push(("derived", rules.join("; ")));
    }
    if field.is_idle() {
        lines.push(("note", "changes no figure by itself".to_owned()));
    }
    let lines: String =
        lines.iter().map(|(what, words)| format!("<div><dt>{what}</dt><dd>{words}</dd></div>")).collect();
    format!(
        "<article class=\"setting\" id=\"setting-{name}\"><h4><a href=\"#setting-{name}\"><code>{name}</code></a></h4>\
         <p>{}</p><dl>{lines}</dl></article>\n",
        escape(field.about())
    )
}

/// The keys of settings files that state `field`, by format.
fn keys_of(field: Field) -> String {
    let mut formats: Vec<(&str, Vec<String>)> = Vec::new();
    for (format, key, _) in keys().into_iter().filter(|(_, _, of)| *of == field) {
        match formats.iter_mut().find(|(name, _)| *name == format.name()) {
            Some((_, all)) => all.push(code(key)),
            None => formats.push((format.name(), vec![code(key)])),
        }
    }
    let line = |(name, keys): &(&str, Vec<String>)| format!("{}: {}", short(name), keys.join(", "));
    formats.iter().map(line).collect::<Vec<_>>().join("; ")
}

fn short(format: &str) -> String {
    let plain = format.trim_start_matches("a ").trim_start_matches("an ");
    escape(plain.trim_end_matches(" configuration").trim_end_matches(" model"))
}

fn kind(kind: Kind) -> String {
    match kind {
        Kind::Count(least, most) => format!("a whole number from {} to {}", grouped(least), grouped(most)),
        Kind::Real(least, most) => format!("a number from {least} to {most}"),
        Kind::Flag => "yes or no".to_owned(),
        Kind::Word(words) => {
            format!("one of {}", words.iter().map(|word| code(word)).collect::<Vec<_>>().join(", "))
        }
        Kind::Text => "text".to_owned(),
        Kind::Counts => "whole numbers".to_owned(),
        Kind::Words => "words".to_owned(),
    }
}

/// What a setting is where no text states it: defaults with whose they are, and rules by which it follows from others.
fn unstated(field: Field) -> (Vec<String>, Vec<String>) {
    const RULES: usize = 3;
    let (mut defaults, mut rules): (Vec<(String, Vec<String>)>, Vec<String>) = (Vec::new(), Vec::new());
    for named in plans() {
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
        let value = if value.is_empty() { "none".to_owned() } else { code(value) };
        if whose.is_empty() { value } else { format!("{value} ({})", escape(&whose.join("; "))) }
    };
    let rules = rules.iter().map(|rule| escape(rule)).collect();
    (defaults.iter().map(words).collect(), rules)
}

/// A rule without the value that it came to in one plan.
fn without_value(rule: &str) -> &str {
    match rule.rsplit_once(" = ") {
        Some((rule, value)) if value.bytes().all(|byte| byte.is_ascii_digit()) => rule,
        _ => rule,
    }
}
