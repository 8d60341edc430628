//! Options of the frameworks' own that need no reader: what each changes, framework by framework, in one table (`options.txt`).
//!
//! A setting that nobody knows stops the verdict (`telling`). These are known: each was classed by what its framework does with it.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::telling::says_no;
use crate::{Effect, NotModelled};
use shardscope_source::{LaterText, Span};

/// Until a program with the feature `tables-later` is given it, no option is known beside those that readers read.
pub(crate) static TABLE: LaterText = LaterText::new(
    "options.txt",
    if cfg!(feature = "tables-later") { None } else { Some(include_str!("options.txt")) },
);

/// ms-swift's commands over Megatron-LM, by the name of their section.
pub(crate) const SWIFT_MEGATRON: &str = "ms-swift's megatron commands";

/// What an option changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// None of the figures.
    Idle,
    /// A figure by little, or one that no estimate looks at, but for these values, joined by blanks: it marks the verdict.
    Small(&'static str),
    /// Figures, in a way that is not modelled, but for these values, joined by blanks, and those that say no.
    Lacks(Effect, &'static str, &'static str),
}

impl Class {
    fn stated(line: &'static str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        Some(match word {
            "idle" => Self::Idle,
            "small" => Self::Small(rest.split_once(" | ").map_or("", |(_, usual)| usual)),
            "lacks" => {
                let mut parts = rest.split(" | ");
                let effect = Effect::named(parts.next()?)?;
                Self::Lacks(effect, parts.next()?, parts.next().unwrap_or_default())
            }
            _ => return None,
        })
    }

    /// What it does at this value.
    fn at(self, value: &str) -> Self {
        let (Self::Lacks(_, _, usual) | Self::Small(usual)) = self else { return self };
        let is_usual =
            |word: &str| usual.split_ascii_whitespace().any(|known| known.eq_ignore_ascii_case(word));
        // Off is what an option is unless the text says otherwise, but for one that is on.
        let off =
            matches!(self, Self::Lacks(..)) && (value.is_empty() || says_no(value) && !is_usual("true"));
        if off || is_usual(value) { Self::Idle } else { self }
    }

    /// What stops the verdict at it.
    pub(crate) fn stop(self, path: &str, value: &str, span: Option<Span>) -> Option<NotModelled> {
        let Self::Lacks(effect, what, _) = self else { return None };
        Some(NotModelled::new(path, value, effect, what).at_some(span))
    }
}

/// A line of the table.
enum Line {
    /// A framework's section begins, after which those of others are looked through as well.
    Section(&'static str, Vec<&'static str>),
    /// What the options below it do.
    Meaning(Option<Class>),
    /// Options.
    Options(&'static str),
}

/// `[name + other + other] source`, `idle reason:`, and indented names.
fn lines() -> impl Iterator<Item = Line> {
    TABLE.text().lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(|line| {
        if let Some((names, _)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            let mut names = names.split(" + ");
            Line::Section(names.next().unwrap_or_default(), names.collect())
        } else if line.starts_with(' ') {
            Line::Options(line)
        } else {
            Line::Meaning(line.strip_suffix(':').and_then(Class::stated))
        }
    })
}

/// A framework's options.
#[derive(Default)]
struct Section {
    others: Vec<&'static str>,
    named: HashMap<&'static str, Class>,
    /// Beginnings of names.
    begun: Vec<(&'static str, Class)>,
}

fn sections() -> &'static HashMap<&'static str, Section> {
    static SECTIONS: OnceLock<HashMap<&'static str, Section>> = OnceLock::new();
    SECTIONS.get_or_init(|| {
        let mut sections: HashMap<&str, Section> = HashMap::new();
        let (mut at, mut meaning) = ("", None);
        for line in lines() {
            match line {
                Line::Section(name, others) => {
                    at = name;
                    sections.entry(name).or_default().others = others;
                }
                Line::Meaning(class) => meaning = class,
                Line::Options(names) => {
                    let (Some(section), Some(class)) = (sections.get_mut(at), meaning) else { continue };
                    for name in names.split_ascii_whitespace() {
                        match name.strip_suffix('*') {
                            Some(start) => section.begun.push((start, class)),
                            None => drop(section.named.insert(name, class)),
                        }
                    }
                }
            }
        }
        sections
    })
}

/// What an option of a framework does at a value; none where neither it nor those it is made of have the option.
pub(crate) fn find(framework: &str, path: &str, value: &str) -> Option<Class> {
    let section = sections().get(framework)?;
    let path = spelt(path);
    let own = |section: &Section| {
        let begun =
            || section.begun.iter().find(|(start, _)| path.starts_with(start)).map(|(_, class)| *class);
        section.named.get(path.as_str()).copied().or_else(begun)
    };
    let class = own(section)
        .or_else(|| section.others.iter().find_map(|other| sections().get(other).and_then(own)))?;
    Some(class.at(value))
}

/// Dashes as underscores, and the places of a list as 0.
fn spelt(path: &str) -> String {
    let place = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty();
    let path = path.trim_start_matches('-').to_ascii_lowercase().replace('-', "_");
    path.split('.').map(|name| if place(name) { "0" } else { name }).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests;
