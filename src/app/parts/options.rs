//! Lists to choose from.

use super::{Tag, tag};

/// The options of a list, `chosen` of them chosen.
#[inline(never)]
pub(crate) fn options(list: Tag, names: &mut dyn Iterator<Item = &str>, chosen: &str) -> Tag {
    names.fold(list, |list, name| {
        let option = tag("option").attr("value", name.to_owned()).flag("selected", name == chosen);
        list.child(option.say(name.to_owned()))
    })
}

/// A list as a field.
pub(crate) fn choose() -> Tag {
    tag("select.field")
}
