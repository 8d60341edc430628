//! Text helpers that several parts of the page share.

use shardscope::plan::Field;
use yew::prelude::*;

/// `one` for 1, else `many`.
pub(crate) const fn plural(count: u64, one: &'static str, many: &'static str) -> &'static str {
    if count == 1 { one } else { many }
}

/// Settings by their names.
pub(crate) fn names(fields: &[Field]) -> String {
    let names: Vec<&str> = fields.iter().map(|field| field.name()).collect();
    names.join(", ")
}

/// A message of the engine as a sentence: capitalised, unless it begins with a name.
pub(crate) fn sentence(message: &str) -> String {
    let first = message.split([' ', ',', ':']).next().unwrap_or_default();
    let mut text = with_times(message);
    // `NCCL` or `vLLM` keep their spelling, and so do a flag and a program (`llamafactory-cli`); `micro-batch` is a word.
    let first = first.strip_prefix("micro-").unwrap_or(first);
    if !first.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return text;
    }
    if let Some(head) = text.get_mut(..1) {
        head.make_ascii_uppercase();
    }
    text
}

/// Products with a multiplication sign: `TP 2 x PP 4` is written for terminals.
fn with_times(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    let mut rest = message;
    while let Some((before, after)) = rest.split_once(" x ") {
        // Factors are figures and the names of dimensions; a word next to an `x` belongs to the user's text.
        let is_factor =
            |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
        let is_product = is_factor(before.bytes().last()) && is_factor(after.bytes().next());
        text += before;
        text += if is_product { " × " } else { " x " };
        rest = after;
    }
    text + rest
}

/// A pipeline schedule as its papers write it, from its name in settings.
pub(crate) fn schedule_name(name: &'static str) -> &'static str {
    match name {
        "1f1b" => "1F1B",
        "1f1b-v" => "1F1B-V",
        "interleaved" => "interleaved 1F1B",
        "gpipe" => "GPipe",
        "zb-h1" => "ZB-H1",
        "zb-h2" => "ZB-H2",
        "zb-v" => "ZB-V",
        "v-half" => "V-Half",
        "v-min" => "V-Min",
        "dualpipe" => "DualPipe",
        "dualpipe-v" => "DualPipe-V",
        other => other,
    }
}

/// How a missing value is displayed.
pub(crate) const NONE: &str = "–";

/// The glossary term for a name used by the engine.
pub(crate) fn term_of(name: &str) -> &str {
    match name {
        "TP" | "tensor" | "tensor parallel" => "tensor parallelism",
        "PP" | "pipeline" | "pipeline parallel" => "pipeline stage",
        "CP" | "context" | "context parallel" => "context parallelism",
        "EP" | "expert" | "expert parallel" => "expert parallelism",
        "expert tensor parallel" => "expert tensor parallelism",
        "DP" | "data" | "data parallel" => "data-parallel group",
        "optimizer" => "optimizer states",
        "framework" => "framework memory",
        "all_reduce" => "all-reduce",
        "all_gather" => "all-gather",
        "reduce_scatter" => "reduce-scatter",
        "all_to_all" => "all-to-all",
        "send_recv" => "point-to-point",
        other => other,
    }
}

/// A sentence with its addresses as links, and its flags unbroken.
pub(crate) fn linked(text: &str) -> Html {
    text.split_inclusive(' ').map(word).collect()
}

/// A sentence whose flags stay on one line each: a browser would break `--nproc_per_node` after its dashes.
pub(crate) fn unbroken_flags(text: &str) -> Html {
    text.split_inclusive(' ').map(flag).collect()
}

fn flag(word: &str) -> Html {
    // Longer ones could be wider than a phone.
    let is_flag = word.trim_start_matches('(').starts_with("--") && word.len() <= WIDEST_FLAG;
    if is_flag {
        // A space inside would not break either, and a list of flags would become one line.
        let flag = word.trim_end_matches(' ');
        html! { <><span class="flag">{ flag }</span>{ &word[flag.len()..] }</> }
    } else {
        html!(word)
    }
}

/// Longest word that is kept on one line. Unit: byte.
const WIDEST_FLAG: usize = 40;

fn word(word: &str) -> Html {
    // The sentence's own comma or point is not part of the address.
    let address = word.trim_end_matches([' ', ',', '.', ';']);
    if !address.starts_with("https://") {
        return flag(word);
    }
    html! {
        <>
            <a href={address.to_owned()} target="_blank" rel="noopener">{ address }</a>
            { word.get(address.len()..).unwrap_or_default() }
        </>
    }
}
