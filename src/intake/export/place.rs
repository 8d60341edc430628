//! Where in the texts a setting may be changed or added.

use super::bridge;
use super::megatron::quoted;
use super::round::written;
use crate::intake::formats::is_setting;
use crate::intake::{Origin, Resolution, megatron};
use crate::plan::{Field, Kind};
use crate::text::{Source, Span, sort};

/// Most settings beside which an addition is tried.
const ANCHORS: usize = 6;

/// A piece of a file to be replaced.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    /// Which file.
    pub(super) file: usize,
    /// Which bytes of it.
    pub(super) span: Span,
    /// By what.
    pub(super) text: String,
}

/// Ways to change a setting where the texts state it.
pub(super) fn in_place(source: &Source, now: &Resolution, field: Field, value: &str) -> Vec<Change> {
    let Some(setting) = now.setting(field).filter(|setting| setting.origin == Origin::Script) else {
        return Vec::new();
    };
    let Some(span) = setting.span.filter(|span| !span.is_empty()) else { return Vec::new() };
    let Some((file, span)) = local(source, span) else { return Vec::new() };
    let text = source.part_text(file);
    let old = text.get(span.start as usize..span.end as usize).unwrap_or("");
    if old.starts_with("--") && !old.contains('=') {
        return vec![without(source, file, span)];
    }
    spellings(field, old, value).into_iter().map(|text| Change { file, span, text }).collect()
}

/// A switch taken out: its whole line where nothing else stands on it, else the word with the blanks before it.
fn without(source: &Source, file: usize, span: Span) -> Change {
    let place = Place::at(source, file, span);
    let (line, word) =
        (place.of_line(), place.text.get(span.start as usize..span.end as usize).unwrap_or(""));
    let before = place.text.get(..place.line.start as usize).unwrap_or("");
    let goes_on = line.trim_end().ends_with('\\');
    // A line that ends a command keeps its line end, for the backslash before it.
    let alone = line.trim().trim_end_matches('\\').trim_end() == word
        && (goes_on || !before.trim_end().ends_with('\\'));
    let span = if alone {
        Span::new(place.line.start, (place.line.end + 1).min(Span::from_bytes(0, place.text.len()).end))
    } else {
        let blanks = place.text.get(..span.start as usize).unwrap_or("").trim_end_matches([' ', '\t']).len();
        Span::new(Span::from_bytes(blanks, blanks).start, span.end)
    };
    Change { file, span, text: String::new() }
}

/// A value in the ways a format may write it, after the manner of the old one.
fn spellings(field: Field, old: &str, value: &str) -> Vec<String> {
    let bare = old.trim_matches(['"', '\'']);
    let wrap = |text: &str| old.replacen(bare, text, 1);
    let mut values = vec![value.to_owned()];
    if field.kind() == Kind::Flag {
        let other = if value == "true" { "false" } else { "true" };
        values = vec![value.to_owned(), other.to_owned()];
        if bare.starts_with(['T', 'F']) {
            values = values.iter().map(|word| word.replacen('t', "T", 1).replacen('f', "F", 1)).collect();
        }
    }
    if let Some(inner) = matches!(field.kind(), Kind::Counts | Kind::Words)
        .then(|| value.split_ascii_whitespace().collect::<Vec<_>>())
    {
        let joined = inner.join(if bare.contains(',') { ", " } else { " " });
        values = vec![if bare.starts_with('[') { format!("[{}]", inner.join(", ")) } else { joined }];
    }
    let words: &[(&str, &str)] = &[
        ("RMSNorm", "rmsnorm"),
        ("LayerNorm", "layernorm"),
        ("rope", "rotary"),
        ("learned_absolute", "learned"),
    ];
    values.extend(words.iter().filter(|(ours, _)| *ours == value).map(|(_, theirs)| (*theirs).to_owned()));
    if value.is_empty() { Vec::new() } else { values.iter().map(|text| wrap(text)).collect() }
}

/// Ways to add a setting beside others that the texts state, the last ones first.
pub(super) fn added(source: &Source, now: &Resolution, field: Field, value: &str) -> Vec<Change> {
    let legacy = matches!(written(now, Field::Software).as_str(), "megatron_legacy" | "megatron_deepspeed");
    let flag = megatron::spell(field, value, legacy);
    let flag = flag.map(|words| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "));
    let dotted = bridge::spell_words(field, value);
    let mut anchors: Vec<Span> = now
        .settings
        .iter()
        .filter(|setting| setting.origin == Origin::Script)
        .filter_map(|setting| setting.span.filter(|span| !span.is_empty()))
        .collect();
    sort(&mut anchors, &Span::cmp);
    anchors.dedup();
    let mut changes = Vec::new();
    for (file, span) in anchors.into_iter().rev().take(ANCHORS).filter_map(|span| local(source, span)) {
        let place = Place::at(source, file, span);
        let words = if place.is_dotted() { &dotted } else { &flag };
        if let Some(words) = words {
            changes.extend(place.option(words));
        }
        changes.extend(place.key(field, value));
    }
    changes
}

/// A stated setting beside which another may be added.
struct Place<'a> {
    file: usize,
    text: &'a str,
    span: Span,
    /// The line it stands on, without its line end.
    line: Span,
}

impl<'a> Place<'a> {
    fn at(source: &'a Source, file: usize, span: Span) -> Self {
        let text = source.part_text(file);
        let start =
            text.get(..span.start as usize).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
        let rest = text.get(span.end as usize..).unwrap_or("");
        let end = span.end as usize + rest.find('\n').unwrap_or(rest.len());
        Self { file, text, span, line: Span::from_bytes(start, end) }
    }

    fn of_line(&self) -> &'a str {
        self.text.get(self.line.start as usize..self.line.end as usize).unwrap_or("")
    }

    fn indent(&self) -> &'a str {
        let line = self.of_line();
        line.get(..line.len() - line.trim_start().len()).unwrap_or("")
    }

    fn is_dotted(&self) -> bool {
        self.of_line().split_ascii_whitespace().any(is_setting)
    }

    fn insert(&self, at: u32, text: String) -> Change {
        Change { file: self.file, span: Span::new(at, at), text }
    }

    /// Words of a command: on a line of their own after the manner of this one, else right behind it.
    fn option(&self, words: &str) -> Vec<Change> {
        let line = self.of_line().trim_end();
        let own = line.trim_start().starts_with("--")
            || line.trim_start().split(' ').next().is_some_and(is_setting);
        let tail = if line.ends_with('\\') { " \\" } else { "" };
        let behind = self.text.as_bytes().get(self.span.end as usize).copied();
        let closed = self.span.end + u32::from(matches!(behind, Some(b'"' | b'\'')));
        let mut changes = Vec::new();
        if own {
            changes.push(self.insert(self.line.end, format!("\n{}{words}{tail}", self.indent())));
        }
        changes.push(self.insert(closed, format!(" {words}")));
        changes.push(self.insert(self.span.end, format!(" {words}")));
        changes
    }

    /// A key of a settings file on a line of its own, after the manner of this one.
    fn key(&self, field: Field, value: &str) -> Option<Change> {
        let line = self.of_line().trim_end();
        let (key, rest) = line.trim_start().split_once(':')?;
        let bare = key.trim_matches(['"', '\'']);
        let mut name = field.name().to_owned();
        if bare.contains('-') {
            name = name.replace('_', "-");
        }
        if bare.starts_with("--") {
            name = format!("--{name}");
        }
        let key = key.replacen(bare, &name, 1);
        let word = field.kind() == Kind::Text || matches!(field.kind(), Kind::Word(_));
        let value = if word && rest.contains('"') { format!("\"{value}\"") } else { value.to_owned() };
        let code = line.split(" #").next().unwrap_or(line).trim_end();
        let (before, after) = match (key.starts_with('"'), code.ends_with(',')) {
            (true, true) => ("", ","),
            // The last entry of a map gets its comma, which a remark would swallow.
            (true, false) if code.len() == line.len() => (",", ""),
            (true, false) => return None,
            (false, _) => ("", ""),
        };
        let end = self.line.start + u32::try_from(line.len()).ok()?;
        Some(self.insert(end, format!("{before}\n{}{key}: {value}{after}", self.indent())))
    }
}

/// The file of a place, and the place in that file.
fn local(source: &Source, span: Span) -> Option<(usize, Span)> {
    let file = source.parts().iter().position(|part| part.span.contains(span))?;
    let base = source.parts().get(file)?.span.start;
    Some((file, Span::new(span.start - base, span.end - base)))
}
