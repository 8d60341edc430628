//! Vocabularies of well-known tokenizers, by what a script may call them.

/// A tokenizer: words that its name or path contains (lower case), tokens, and what it is.
/// Sizes are what the tokenizer itself reports (`len(tokenizer)` with added tokens, the base
/// vocabulary for GPT-2 BPE files), from the published configurations of the models named.
const ROWS: &[(&[&str], u64, &str)] = &[
    (&["gpt2-vocab"], 50_257, "GPT-2's BPE vocabulary"),
    (&["gpt2bpetokenizer"], 50_257, "GPT-2's BPE vocabulary"),
    (&["gpt2"], 50_257, "GPT-2's BPE vocabulary"),
    (&["llama", "3"], 128_256, "Llama 3's tokenizer"),
    (&["llama2tokenizer"], 32_000, "Llama 2's tokenizer"),
    (&["llama", "2"], 32_000, "Llama 2's tokenizer"),
    (&["mixtral"], 32_000, "Mixtral's tokenizer"),
    (&["mistral-7b"], 32_000, "Mistral's tokenizer"),
];

/// The vocabulary of a tokenizer named in a flag or a path, and whose it is.
#[must_use]
pub fn vocabulary(name: &str) -> Option<(u64, String)> {
    let name = name.to_ascii_lowercase();
    let matches = |words: &[&str]| {
        let mut rest = name.as_str();
        words.iter().all(|word| match rest.split_once(word) {
            Some((_, after)) => {
                rest = after;
                true
            }
            None => false,
        })
    };
    let (_, size, whose) = ROWS.iter().find(|(words, _, _)| !name.is_empty() && matches(words))?;
    Some((*size, (*whose).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::vocabulary;

    #[track_caller]
    fn check(name: &str, expected: Option<u64>) {
        assert_eq!(vocabulary(name).map(|(size, _)| size), expected, "{name}");
    }

    #[test]
    fn tokenizers_are_known_by_their_names() {
        check("/data/gpt2-vocab.json", Some(50_257));
        check("GPT2BPETokenizer", Some(50_257));
        check("meta-llama/Llama-3.1-8B", Some(128_256));
        check("Llama2Tokenizer", Some(32_000));
        check("HuggingFaceTokenizer", None);
        check("", None);
    }
}
