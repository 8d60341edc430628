//! Settings assembled by name.

/// Names with their values, each name once.
pub(super) type Named = Vec<(String, String)>;

/// Sets `name` to `value`, in place of an earlier value.
pub(super) fn say(settings: &mut Named, name: &str, value: &str) {
    settings.retain(|(other, _)| other != name);
    settings.push((name.to_owned(), value.to_owned()));
}

pub(super) fn count(settings: &mut Named, name: &str, value: u64) {
    say(settings, name, &value.to_string());
}
