//! The settings of a file that an option names, in the place of its name: for an option that also takes them as JSON.

use crate::Argument;
use crate::formats::{FSDP_SETTINGS, classify};
use shardscope_bash::base_name;
use shardscope_config_tree::read_json;
use shardscope_source::Source;

/// The option, as transformers' parser spells and takes it.
const OPTIONS: [&str; 2] = ["--fsdp_config", "--fsdp-config"];

/// Replaces the file that `--fsdp_config` names by what it says, if it is among the texts: the command's words and the
/// file are then read as the Trainer reads them, together. A file of such settings under another name is taken for it.
pub(super) fn settings(arguments: &mut [Argument], source: &Source) {
    let Some(at) =
        arguments.iter().position(|word| OPTIONS.contains(&word.text.split('=').next().unwrap_or_default()))
    else {
        return;
    };
    let (place, name) = match arguments[at].text.split_once('=') {
        Some((_, name)) => (at, name.to_owned()),
        None => match arguments.get(at + 1) {
            Some(word) => (at + 1, word.text.clone()),
            None => return,
        },
    };
    let parts = || source.parts().iter().enumerate();
    let called = |wanted: &str| {
        parts().find(|(_, part)| base_name(&part.name) == wanted).map(|(index, _)| source.part_text(index))
    };
    let alone = || {
        let mut all = parts().map(|(index, _)| source.part_text(index)).filter(|text| is_settings(text));
        all.next().filter(|_| all.next().is_none())
    };
    let text = called(base_name(&name)).filter(|text| text.trim_start().starts_with('{')).or_else(alone);
    let (Some(text), Some(word)) = (text, arguments.get_mut(place)) else { return };
    word.text = match place == at {
        true => format!("{}={}", OPTIONS[0], text.trim()),
        false => text.trim().to_owned(),
    };
    word.hole = None;
}

/// Whether a text holds such settings.
fn is_settings(text: &str) -> bool {
    text.trim_start().starts_with('{')
        && classify(&read_json(text, 0)).is_some_and(|format| format.name() == FSDP_SETTINGS)
}
