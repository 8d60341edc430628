//! Vocabularies of well-known tokenizers, by what a script may call them.

/// A tokenizer: words of which its name or path (lower case) contains one, its tokens, and what it is.
/// Sizes are what Megatron takes from the tokenizer itself: the number of its tokens, added ones
/// included (which may be less than a model's embedding has rows). From the published tokenizers of
/// the models named; recalled where no stored copy was at hand, and omitted where not certain.
type Row = (&'static [&'static str], u64, &'static str);

/// The first row that fits counts, so that special names stand before general ones.
const ROWS: &[Row] = &[
    (&["codellama"], 32_016, "Code Llama's tokenizer"),
    (&["llama-3", "llama3", "llama_3"], 128_256, "Llama 3's tokenizer"),
    (&["llama-2", "llama2", "llama_2"], 32_000, "Llama 2's tokenizer"),
    (&["mixtral"], 32_000, "Mixtral's tokenizer"),
    (&["mistral-7b-v0.3", "mistral-7b-instruct-v0.3"], 32_768, "Mistral v0.3's tokenizer"),
    (&["mistral-7b"], 32_000, "Mistral's tokenizer"),
    (&["mistral-nemo"], 131_072, "Mistral Nemo's tokenizer"),
    (&["qwen3"], 151_669, "Qwen 3's tokenizer"),
    (&["qwen2.5"], 151_665, "Qwen 2.5's tokenizer"),
    (&["qwen2", "qwen1.5", "qwen1_5"], 151_646, "Qwen 2's tokenizer"),
    (&["deepseek-v3", "deepseek-r1", "deepseekv3"], 128_815, "DeepSeek V3's tokenizer"),
    (&["gemma-2", "gemma2"], 256_000, "Gemma's tokenizer"),
    (&["gpt-neox", "gpt_neox", "20b_tokenizer"], 50_277, "GPT-NeoX's tokenizer"),
    (&["bigscience/tokenizer", "bigscience/bloom", "bloom-"], 250_680, "BLOOM's tokenizer"),
    (&["falcon"], 65_024, "Falcon's tokenizer"),
    (&["starcoder"], 49_152, "StarCoder's tokenizer"),
    (&["gpt2bpetokenizer", "gpt2-vocab", "gpt2"], 50_257, "GPT-2's BPE vocabulary"),
    (&["t5-small", "t5-base", "t5-large"], 32_100, "T5's tokenizer"),
    (&["bertwordpiecelowercase"], 30_522, "BERT's uncased vocabulary"),
    (&["bertwordpiececase"], 28_996, "BERT's cased vocabulary"),
];

/// The vocabulary of a tokenizer named in a flag or a path, and whose it is.
#[must_use]
pub fn vocabulary(name: &str) -> Option<(u64, String)> {
    let name = name.to_ascii_lowercase();
    let (_, size, whose) = ROWS.iter().find(|(words, _, _)| words.iter().any(|word| name.contains(word)))?;
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
        check("Qwen/Qwen2.5-7B", Some(151_665));
        check("t5-small", Some(32_100));
        check("HuggingFaceTokenizer", None);
        check("/data/llama/2024/tokenizer.model", None);
        check("", None);
    }
}
