//! Where in the texts a setting may be changed or added.

use crate::bridge;
use crate::megatron::{is_legacy, quoted_all};
use shardscope_launch::formats::is_setting;
use shardscope_launch::{Origin, Resolution, megatron};
use shardscope_plan::{Field, Software, Subject, ValueKind};
use shardscope_source::{Source, Span};

/// Maximum number of settings next to which an addition is tried.
const ANCHORS: usize = 6;

/// Settings that name data and its tokenizer, which scripts keep in a separate group of arguments (`DATA_ARGS`).
const OF_DATA: [Field; 3] = [Field::TokenizerType, Field::TokenizerModel, Field::VocabFile];

/// Settings of which a Megatron command states one: what states none of them is read as its options only because nothing else knows it.
const OF_MEGATRON: [Field; 8] = [
    Field::NumLayers,
    Field::HiddenSize,
    Field::SeqLength,
    Field::MicroBatchSize,
    Field::GlobalBatchSize,
    Field::TensorModelParallelSize,
    Field::PipelineModelParallelSize,
    Field::ExpertModelParallelSize,
];

/// A piece of a file to be replaced.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    /// Index of the file.
    pub(super) file: usize,
    /// Byte range within the file.
    pub(super) span: Span,
    /// Replacement text.
    pub(super) text: String,
}

/// Ways to change a setting where the texts state it.
pub(crate) fn in_place(source: &Source, now: &Resolution, field: Field, value: &str) -> Vec<Change> {
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
    let mut changes = Vec::new();
    for text in spellings(field, old, value) {
        changes.push(Change { file, span, text });
    }
    changes
}

/// Removes a switch: the whole line if nothing else is on it, otherwise the word and the blanks before it.
fn without(source: &Source, file: usize, span: Span) -> Change {
    let place = Anchor::at(source, file, span);
    let (line, word) =
        (place.of_line(), place.text.get(span.start as usize..span.end as usize).unwrap_or(""));
    let before = place.text.get(..place.line.start as usize).unwrap_or("");
    let goes_on = line.trim_end().ends_with('\\');
    // A line that ends a command keeps its newline because of the backslash before it.
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

/// Words for which some formats have their own.
const OTHER_WORDS: [(&str, &str); 4] =
    [("RMSNorm", "rmsnorm"), ("LayerNorm", "layernorm"), ("rope", "rotary"), ("learned_absolute", "learned")];

/// The ways in which a format may write a value, in the style of the old one.
fn spellings(field: Field, old: &str, value: &str) -> Vec<String> {
    // Never write anything that a shell would run or that ends a quotation: a value may come from a stranger's link.
    if value.contains(['$', '`', '\\', '"', '\'', '\n', '\r', ';', '&', '<', '>', '#']) {
        return Vec::new();
    }
    const QUOTES: [char; 2] = ['"', '\''];
    let bare = old.trim_matches(QUOTES);
    // A dictionary in one word: what it says of this setting is a part of it.
    if bare.starts_with('{') {
        return Vec::new();
    }
    // Outside of quotes, anything but plain words gets quoted.
    let quoted = quoted_all(&[value.to_owned()]);
    let is_open = bare == old;
    // The name of an option stays where its value is in the same word.
    let valued = bare.strip_prefix("--").and_then(|option| option.split_once('='));
    let bare = valued.map_or(bare, |(_, value)| value.trim_matches(QUOTES));
    let value = if is_open && matches!(field.kind(), ValueKind::Text) { quoted.as_str() } else { value };
    let mut spelled = Vec::new();
    let mut spell = |text: &str| {
        if !value.is_empty() {
            let at = old.rfind(bare).unwrap_or_default();
            let (before, after) = (old.get(..at), old.get(at + bare.len()..));
            spelled.push([before.unwrap_or_default(), text, after.unwrap_or_default()].concat());
        }
    };
    match field.kind() {
        ValueKind::Flag => {
            let mut words = if value == "true" { ["true", "false"] } else { ["false", "true"] };
            if value != "true" && value != "false" {
                words = [value, "true"];
            }
            for word in words {
                let capital = match word {
                    "true" => "True",
                    "false" => "False",
                    other => other,
                };
                spell(if bare.starts_with(['T', 'F']) { capital } else { word });
            }
        }
        ValueKind::Counts | ValueKind::Words => {
            let listed = bare.starts_with('[');
            let between = if listed || bare.contains(',') { ", " } else { " " };
            let mut text = String::from(if listed { "[" } else { "" });
            for (place, word) in value.split_ascii_whitespace().enumerate() {
                text.push_str(if place == 0 { "" } else { between });
                text.push_str(word);
            }
            text.push_str(if listed { "]" } else { "" });
            spell(&text);
        }
        _ => spell(value),
    }
    for (_, theirs) in OTHER_WORDS.iter().filter(|(ours, _)| *ours == value) {
        spell(theirs);
    }
    spelled
}

/// Ways to add a setting next to others that the texts state, the last ones first, and the data settings after them.
pub(crate) fn added(source: &Source, now: &Resolution, field: Field, value: &str) -> Vec<Change> {
    let legacy = is_legacy(now);
    // Another trainer's reader may understand the words, but its program does not; nor need one whose options are not known.
    let strange = now.not_modelled.iter().any(|item| item.subject == Subject::Program);
    let stated = |field: &Field| {
        let origin = now.setting(*field).map(|setting| setting.origin);
        matches!(origin, Some(Origin::Script | Origin::Environment))
    };
    let strange = strange || !OF_MEGATRON.iter().any(stated);
    let core = !strange && (now.is(Software::MegatronCoreTe) || now.is(Software::MegatronCoreLocal));
    let flag = megatron::spell(field, value, legacy).filter(|_| core || legacy && !strange);
    let flag = flag.map(|words| quoted_all(&words));
    let dotted = bridge::spell_words(field, value).filter(|_| core);
    let mut anchors: Vec<(bool, Span)> = Vec::new();
    for setting in now.settings.iter().filter(|setting| setting.origin == Origin::Script) {
        let of_data = OF_DATA.contains(&setting.field);
        let known = |span: &Span| anchors.iter().any(|(_, known)| known == span);
        if let Some(span) = setting.span.filter(|span| !span.is_empty() && !known(span)) {
            anchors.push((of_data, span));
        }
    }
    anchors.sort_by(|one, other| one.0.cmp(&other.0).then(other.1.cmp(&one.1)));
    let mut changes = Vec::new();
    for (_, anchor) in anchors.into_iter().take(ANCHORS) {
        let Some((file, span)) = local(source, anchor) else { continue };
        let place = Anchor::at(source, file, span);
        if let Some(words) = if place.is_dotted() { &dotted } else { &flag } {
            place.option(words, &mut changes);
        }
        changes.extend(place.key(field, value));
    }
    changes
}

/// A stated setting next to which another may be added.
struct Anchor<'a> {
    file: usize,
    text: &'a str,
    span: Span,
    /// Its line, without the newline.
    line: Span,
}

impl<'a> Anchor<'a> {
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

    /// Words of a command: on a separate line in the style of this one, otherwise directly after it.
    fn option(&self, words: &str, changes: &mut Vec<Change>) {
        let line = self.of_line().trim_end();
        let own = line.trim_start().starts_with("--")
            || line.trim_start().split(' ').next().is_some_and(is_setting);
        let tail = if line.ends_with('\\') { " \\" } else { "" };
        let behind = self.text.as_bytes().get(self.span.end as usize).copied();
        let closed = self.span.end + u32::from(matches!(behind, Some(b'"' | b'\'')));
        if own {
            changes.push(self.insert(self.line.end, format!("\n{}{words}{tail}", self.indent())));
        }
        for at in [closed, self.span.end] {
            changes.push(self.insert(at, format!(" {words}")));
        }
    }

    /// A key of a settings file on a separate line, in the style of this one.
    fn key(&self, field: Field, value: &str) -> Option<Change> {
        let line = self.of_line().trim_end();
        let (key, rest) = line.trim_start().split_once(':')?;
        let bare = key.trim_matches(['"', '\'']);
        let mut name = String::from(if bare.starts_with("--") { "--" } else { "" });
        let dash = bare.contains('-');
        for character in field.name().chars() {
            name.push(if character == '_' && dash { '-' } else { character });
        }
        let key = key.replacen(bare, &name, 1);
        let word = field.kind() == ValueKind::Text || matches!(field.kind(), ValueKind::Word(_));
        let quote = if word && rest.contains('"') { "\"" } else { "" };
        let code = line.split(" #").next().unwrap_or(line).trim_end();
        let (before, after) = match (key.starts_with('"'), code.ends_with(',')) {
            (true, true) => ("", ","),
            // The last entry of a map gets a comma, which a trailing comment would swallow.
            (true, false) if code.len() == line.len() => (",", ""),
            (true, false) => return None,
            (false, _) => ("", ""),
        };
        let end = self.line.start + u32::try_from(line.len()).ok()?;
        let pieces = [before, "\n", self.indent(), &key, ": ", quote, value, quote, after];
        Some(self.insert(end, pieces.concat()))
    }
}

/// The file of a place, and the place in that file.
fn local(source: &Source, span: Span) -> Option<(usize, Span)> {
    let file = source.parts().iter().position(|part| part.span.contains(span))?;
    let base = source.parts().get(file)?.span.start;
    Some((file, Span::new(span.start - base, span.end - base)))
}
