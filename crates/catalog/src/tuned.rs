//! Which model of the catalog a checkpoint with another name was probably fine-tuned from.

use std::sync::OnceLock;

use crate::hub::{self, Entry, last};

/// Words at the end of a catalog name that say what it was tuned for, not how large it is.
const ENDS: [&str; 7] = ["hf", "base", "instruct", "chat", "it", "pt", "thinking"];

/// The model of the catalog whose family, version and size appear word for word, in sequence, in a name that the
/// catalog does not have: `OpenRLHF/Llama-3-8b-sft-mixture` has those of `meta-llama/Meta-Llama-3-8B`. If several do,
/// the one that shares the most words. A name proves nothing, so this is only for suggestions: LLaMA-Pro adds layers
/// and keeps the name.
#[must_use]
pub fn tuned_from(name: &str) -> Option<&'static str> {
    let wanted = words(last(name.trim_end_matches('/')));
    let mut best: Option<&Known> = None;
    for known in known() {
        let core = &known.core;
        if !wanted.windows(core.len()).any(|part| part == core) {
            continue;
        }
        // Among equally good matches, the plainest name.
        let better = best.is_none_or(|best| {
            core.len() > best.core.len() || core.len() == best.core.len() && known.words < best.words
        });
        if better {
            best = Some(known);
        }
    }
    best.map(|known| known.name)
}

/// A catalog name that contains a size.
struct Known {
    name: &'static str,
    /// Family, version and size.
    core: Vec<String>,
    /// How many words the full name has.
    words: usize,
}

/// The names that something can be fine-tuned from. Empty as long as the page's programs have not been given the
/// table.
fn known() -> &'static [Known] {
    // Split into words only once: a text is compared with all of them many times.
    static KNOWN: OnceLock<Vec<Known>> = OnceLock::new();
    if hub::entries().next().is_none() {
        return &[];
    }
    KNOWN.get_or_init(|| {
        let known = |name| {
            let all = words(last(name));
            let core = core(&all);
            has_size(core).then(|| Known { name, core: core.to_vec(), words: all.len() })
        };
        hub::entries().flat_map(Entry::names).filter_map(known).collect()
    })
}

/// Runs of letters and runs of digits, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut before = ' ';
    for letter in name.chars().map(|letter| letter.to_ascii_lowercase()) {
        if letter.is_ascii_alphanumeric() {
            match out.last_mut() {
                Some(word)
                    if before.is_ascii_alphanumeric()
                        && before.is_ascii_digit() == letter.is_ascii_digit() =>
                {
                    word.push(letter);
                }
                _ => out.push(letter.to_string()),
            }
        }
        before = letter;
    }
    out
}

/// Without a leading vendor name, and without what it was tuned for.
fn core(words: &[String]) -> &[String] {
    let mut core = words.strip_prefix(&["meta".to_owned()]).unwrap_or(words);
    while let [front @ .., end] = core {
        if !ENDS.contains(&end.as_str()) {
            break;
        }
        core = front;
    }
    core
}

/// Whether a family is followed by a size in billions or millions: without a size, a family's name could mean any of
/// its models.
fn has_size(words: &[String]) -> bool {
    let number = |word: &String| word.bytes().all(|byte| byte.is_ascii_digit());
    words
        .iter()
        .zip(words.iter().skip(1))
        .skip(1)
        .any(|(figure, unit)| number(figure) && matches!(unit.as_str(), "b" | "m"))
}

#[cfg(test)]
mod tests {
    use super::tuned_from;

    #[test]
    fn a_name_with_family_version_and_size_of_a_model_is_proposed_as_tuned_from_it() {
        for (name, base) in [
            ("OpenRLHF/Llama-3-8b-sft-mixture", Some("meta-llama/Llama-3-8B")),
            ("philschmid/llama-3-1-8b-math-orca-spectrum-10k-ep1", Some("meta-llama/Llama-3.1-8B")),
            ("xinlai/Qwen2-7B-SFT", Some("Qwen/Qwen2-7B")),
            ("open-r1/Qwen2.5-Math-7B-RoPE-300k", Some("Qwen/Qwen2.5-Math-7B")),
            ("acme/Qwen3-0.6B-Reverse-Text-GRPO", Some("Qwen/Qwen3-0.6B")),
            ("/data/DeepSeek-R1-Distill-Qwen-7B-mine/", Some("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B")),
            // The size is another one.
            ("acme/Llama-3.1-18B-mine", None),
            ("acme/Qwen2.5-VL-3-7B", None),
            // No size, no family.
            ("sfairXC/llama-rm-v0.1", None),
            ("acme/7b-sft", None),
            ("", None),
        ] {
            assert_eq!(tuned_from(name), base, "{name}");
        }
    }
}
