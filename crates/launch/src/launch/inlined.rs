//! The settings of a file that an option names, in the place of its name: for an option that also takes them as JSON.

use crate::Argument;
use crate::formats::{FSDP_SETTINGS, classify};
use shardscope_bash::{Script, base_name};
use shardscope_config_tree::read_json;
use shardscope_source::{Code, Diagnostic, Source};

/// The option, as transformers' parser spells and takes it.
const OPTIONS: [&str; 2] = ["--fsdp_config", "--fsdp-config"];

/// Replaces the file that `--fsdp_config` names by what it says, if it is among the texts or the script writes it: the command's
/// words and the file are then read as the Trainer reads them, together. The only file of such settings is taken for one that
/// is called otherwise. Returns what is to be said about a file that is not here, or is called otherwise.
pub(super) fn settings(arguments: &mut [Argument], script: &Script, source: &Source) -> Option<Diagnostic> {
    let is_option = |word: &Argument| OPTIONS.contains(&word.text.split('=').next().unwrap_or_default());
    // The last one counts.
    let at = arguments.iter().rposition(is_option)?;
    let joined = arguments[at].text.split_once('=').map(|(_, name)| name.to_owned());
    let place = at + usize::from(joined.is_none());
    let name = joined.clone().or_else(|| arguments.get(place).map(|word| word.text.clone()))?;
    // JSON itself, or an option without a value.
    if name.is_empty() || name.starts_with(['{', '-']) {
        return None;
    }
    let wanted = base_name(&name);
    let is_json = |text: &&str| text.trim_start().starts_with('{');
    let of_script = script.files.iter().rev().find(|file| base_name(file.name.text()) == wanted);
    let parts = || (0..source.parts().len()).map(|part| source.part_text(part));
    let called = source.parts().iter().position(|part| base_name(&part.name) == wanted);
    let here =
        of_script.map(|file| file.content.text()).or_else(|| called.map(|part| source.part_text(part)));
    let mut alike = parts().filter(|text| is_settings(text));
    let other = alike.next().filter(|_| alike.next().is_none());
    let span = arguments[place].span;
    let said = |message: String| Diagnostic::warning(Code::MissingFile, message).at_some(span);
    let Some(text) = here.filter(is_json).or(other) else {
        let message = format!("{wanted} is not here: FSDP is taken as --fsdp alone says");
        return Some(said(message).hint(format!("paste or drop {wanted} as well")));
    };
    let remark =
        here.is_none().then(|| said(format!("the FSDP settings beside this text are taken for {wanted}")));
    let word = &mut arguments[place];
    word.text = match joined {
        Some(_) => format!("{}={}", OPTIONS[0], text.trim()),
        None => text.trim().to_owned(),
    };
    word.hole = None;
    remark
}

/// Whether a text holds such settings.
fn is_settings(text: &str) -> bool {
    text.trim_start().starts_with('{')
        && classify(&read_json(text, 0)).is_some_and(|format| format.name() == FSDP_SETTINGS)
}
