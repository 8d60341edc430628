//! Settings as they are put together, by name.

/// Names and values.
pub(super) type Named = Vec<(String, String)>;

/// `settings` says `name` once more, and nothing else of it.
pub(super) fn say(settings: &mut Named, name: &str, value: &str) {
    settings.retain(|(other, _)| other != name);
    settings.push((name.to_owned(), value.to_owned()));
}

pub(super) fn count(settings: &mut Named, name: &str, value: u64) {
    say(settings, name, &value.to_string());
}
