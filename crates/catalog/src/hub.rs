//! Models by their names on the Hub: `models.tsv`, one line per configuration.

use shardscope_architectures::Architecture;
use shardscope_config_tree::read_json;
use shardscope_source::LaterText;

static LINES: LaterText = LaterText::new(
    "models.tsv",
    if cfg!(feature = "tables-later") { None } else { Some(include_str!("models.tsv")) },
);

/// The tables of this crate and of `architectures`: a program with the feature `tables-later` knows no model of the
/// Hub until it is given them.
pub fn tables() -> impl Iterator<Item = &'static LaterText> {
    shardscope_architectures::tables().into_iter().chain([&LINES])
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// `organisation/name`, one or more that share the configuration.
    names: &'static str,
    /// Repository, commit and file that the configuration was read from.
    pub(crate) source: &'static str,
    /// Parameters as published, all digits or rounded with a letter; `None` if nobody publishes them.
    pub(crate) published: Option<&'static str>,
    /// The part of the configuration that determines the shape.
    config: &'static str,
}

impl Entry {
    fn parse(line: &'static str) -> Option<Self> {
        let mut columns = line.split('\t');
        let (names, source, published) = (columns.next()?, columns.next()?, columns.next()?);
        let published = (published != "-").then_some(published);
        Some(Self { names, source, published, config: columns.next()? })
    }

    /// All its names, with organisations.
    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        self.names.split(' ')
    }

    /// What the configuration describes; `None` if it cannot be read, which the tests rule out.
    pub(crate) fn architecture(self) -> Option<Architecture> {
        // Parsed lazily: hundreds of lines are searched by name, and only one configuration is read.
        let tree = read_json(self.config, 0);
        Architecture::read(tree.documents.first()?).ok()
    }
}

/// All lines of the table that can be read; comments begin with `#`.
pub(crate) fn entries() -> impl Iterator<Item = Entry> {
    LINES.text().lines().filter(|line| !line.starts_with('#')).filter_map(Entry::parse)
}

/// The line with a name, and the name as listed there: without its organisation, in lower case, with `-` for `_`.
pub(crate) fn named(wanted: &str) -> Option<(Entry, &'static str)> {
    let fold = |byte: u8| if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
    // `wanted` is already normalised.
    let same = |name: &str| name.len() == wanted.len() && name.bytes().map(fold).eq(wanted.bytes());
    entries().find_map(|entry| Some((entry, entry.names().map(last).find(|name| same(name))?)))
}

/// A model's name without its organisation.
pub(crate) fn last(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, last)| last)
}

#[cfg(test)]
mod tests {
    use super::{entries, last};

    /// Whether a count is the published one: within 0.1 % of all its digits, or the published number when rounded.
    fn is_published(count: u64, published: &str) -> bool {
        let (figure, unit) = match published.as_bytes().last() {
            Some(b'T') => (published.trim_end_matches('T'), 1e12),
            Some(b'B') => (published.trim_end_matches('B'), 1e9),
            Some(b'M') => (published.trim_end_matches('M'), 1e6),
            _ => (published, 1.0),
        };
        let digits = figure.split_once('.').map_or(0, |(_, behind)| behind.len());
        let Ok(value) = figure.parse::<f64>() else { return false };
        let rounding =
            if unit > 1.0 { 0.5 * unit / 10_f64.powi(i32::try_from(digits).unwrap_or(0)) } else { 0.0 };
        #[expect(clippy::cast_precision_loss, reason = "counts are below 2^53")]
        let off = (count as f64 - value * unit).abs();
        off <= rounding + value * unit / 1000.0
    }

    #[test]
    fn every_model_has_its_published_parameters() {
        let (mut compared, mut towers) = (0, 0);
        for entry in entries() {
            let name = entry.names().next().expect("a name");
            assert!(!entry.source.is_empty(), "{name}");
            let read = entry.architecture().unwrap_or_else(|| panic!("{name} is not read"));
            assert_ne!(read.parameters, 0, "{name}");
            if let Some(published) = entry.published {
                let tower = read.tower.map_or(0, |tower| tower.parameters);
                let counted = read.parameters + tower;
                assert!(is_published(counted, published), "{name}: {counted} of {published}");
                // A checkpoint's count is not published by hand: with a tower all digits must match.
                if let (true, Ok(exact)) = (tower > 0, published.parse::<u64>()) {
                    assert_eq!(counted, exact, "{name}");
                    towers += 1;
                }
                compared += 1;
            }
        }
        assert!(compared >= 140 && towers >= 12, "{compared}, {towers}");
    }

    #[test]
    fn a_name_stands_once() {
        let mut names: Vec<String> = entries()
            .flat_map(super::Entry::names)
            .map(|name| last(name).to_ascii_lowercase().replace('_', "-"))
            .collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(all >= 300, "{all}");
    }
}
