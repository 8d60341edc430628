//! Vocabularies of well-known tokenizers, by what a script may call them.

use super::models;
use shardscope_plan::Field;

/// A tokenizer: its names (lower case, `-` for `_`, model sizes and variants left out), its token count, and a
/// description. Token counts are what Megatron takes from the tokenizer itself, including added tokens (which may be
/// fewer than the rows of a model's embedding). From the published tokenizers of the models named; recalled if no
/// stored copy was available, and omitted if not certain.
type Row = (&'static [&'static str], u64, &'static str);

const ROWS: &[Row] = &[
    (&["codellama"], 32_016, "Code Llama's tokenizer"),
    (
        &["llama-3", "llama3", "llama-3.1", "llama3.1", "llama-3.2", "llama3.2", "llama-3.3", "llama3.3"],
        128_256,
        "Llama 3's tokenizer",
    ),
    (&["llama-2", "llama2"], 32_000, "Llama 2's tokenizer"),
    (&["mixtral", "mixtral-v0.1"], 32_000, "Mixtral's tokenizer"),
    (&["mistral-v0.3"], 32_768, "Mistral v0.3's tokenizer"),
    (&["mistral", "mistral-v0.1", "mistral-v0.2"], 32_000, "Mistral's tokenizer"),
    (&["mistral-nemo", "mistral-nemo-2407"], 131_072, "Mistral Nemo's tokenizer"),
    (&["qwen3"], 151_669, "Qwen 3's tokenizer"),
    (&["qwen2.5"], 151_665, "Qwen 2.5's tokenizer"),
    (&["qwen2", "qwen1.5"], 151_646, "Qwen 2's tokenizer"),
    (
        &["deepseek-v3", "deepseek-r1", "deepseekv3", "deepseek-v3-0324", "deepseek-r1-0528"],
        128_815,
        "DeepSeek V3's tokenizer",
    ),
    (&["gemma-2", "gemma2"], 256_000, "Gemma's tokenizer"),
    (&["gpt-neox", "20b-tokenizer"], 50_277, "GPT-NeoX's tokenizer"),
    (&["bigscience/tokenizer", "bloom"], 250_680, "BLOOM's tokenizer"),
    (&["falcon"], 65_024, "Falcon's tokenizer"),
    (&["starcoder", "starcoder2", "starcoderbase"], 49_152, "StarCoder's tokenizer"),
    (&["gpt2bpetokenizer", "gpt2"], 50_257, "GPT-2's BPE vocabulary"),
    (&["t5-small", "t5-base", "t5-large"], 32_100, "T5's tokenizer"),
    (&["bertwordpiecelowercase"], 30_522, "BERT's uncased vocabulary"),
    (&["bertwordpiececase"], 28_996, "BERT's cased vocabulary"),
];

/// Parts of a name that say which model of a family it is, and nothing about its tokenizer.
const PLAIN: &[&str] = &[
    "meta",
    "hf",
    "instruct",
    "chat",
    "base",
    "it",
    "vocab",
    "merges",
    "bpe",
    "tokenizer",
    "small",
    "medium",
    "large",
    "xl",
    "fp8",
    "bf16",
];

/// How many more rows an embedding may have than its tokenizer has tokens: Qwen2.5-72B's has 399 more, DeepSeek-V3's
/// 465.
const SPARE_ROWS: u64 = 1024;

/// The vocabulary of a tokenizer named in a flag or a path, and whose it is. Names are compared in full, without
/// sizes and variants: a name that only begins like one of these may belong to another family (Falcon3, Qwen3.5,
/// llama-30b). If the catalog has the model, its own figure takes precedence.
#[must_use]
pub fn vocabulary(name: &str) -> Option<(u64, String)> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    // From the file or model to the folders that contain it; a hub's cache has `models--organisation--name`.
    let parts = || name.rsplit('/').flat_map(|part| part.rsplit("--")).filter(|part| !part.is_empty());
    for part in parts() {
        let tokens = row(&name, part);
        let Some((model, rows)) = embedding(part) else {
            match tokens {
                Some((_, size, whose)) => return Some((*size, (*whose).to_owned())),
                None => continue,
            }
        };
        return Some(match tokens {
            Some((_, size, whose)) if *size <= rows && rows - size < SPARE_ROWS => {
                (*size, (*whose).to_owned())
            }
            _ => (rows, format!("{model}'s vocabulary")),
        });
    }
    None
}

/// The embedding rows of a model in the catalog, with its name there.
fn embedding(part: &str) -> Option<(&'static str, u64)> {
    let (model, settings) = models::model(part)?;
    let (_, size) = settings.into_iter().find(|(field, _)| *field == Field::VocabSize)?;
    Some((model, size.parse().ok()?))
}

/// The tokenizer that a path component names.
fn row(whole: &str, part: &str) -> Option<&'static Row> {
    let part = [".json", ".model", ".txt"].iter().find_map(|end| part.strip_suffix(end)).unwrap_or(part);
    let mut family = String::new();
    for word in part.split('-').filter(|word| !PLAIN.contains(word) && !is_size(word)) {
        family.push_str(if family.is_empty() { "" } else { "-" });
        family.push_str(word);
    }
    // `Llama2Tokenizer`
    let bare = family.strip_suffix("tokenizer").unwrap_or(&family);
    let is = |known: &&str| {
        *known == part
            || *known == family
            || *known == bare
            || (known.contains('/') && whole.ends_with(known))
    };
    ROWS.iter().find(|(names, _, _)| names.iter().any(is))
}

/// Whether a word is a count of parameters: `7b`, `0.5b`, `8x22b`, `a3b`, `7b1`, `560m`.
fn is_size(word: &str) -> bool {
    let digits = word.strip_prefix('a').unwrap_or(word);
    digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_digit() || b".xbm".contains(&byte))
        && digits.contains(['b', 'm'])
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
        check("/ckpt/Meta-Llama-3-8B-Instruct/tokenizer.model", Some(128_256));
        check("/cache/models--meta-llama--Llama-3.2-1B/snapshots/0a1b", Some(128_256));
        check("Llama2Tokenizer", Some(32_000));
        check("/data/llama2/tokenizer.model", Some(32_000));
        check("Qwen/Qwen2.5-7B", Some(151_665));
        check("Qwen/Qwen3-30B-A3B", Some(151_669));
        check("deepseek-ai/DeepSeek-V3", Some(128_815));
        check("EleutherAI/gpt-neox-20b", Some(50_277));
        check("/data/20B_tokenizer.json", Some(50_277));
        check("bigscience/bloom-7b1", Some(250_680));
        check("mistralai/Mistral-7B-Instruct-v0.3", Some(32_768));
        check("t5-small", Some(32_100));
        check("HuggingFaceTokenizer", None);
        check("/data/llama/2024/tokenizer.model", None);
        check("", None);
    }

    #[test]
    fn a_name_that_begins_alike_is_another_tokenizer() {
        check("huggyllama/llama-30b", Some(32_000));
        check("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", Some(152_064));
        check("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", Some(128_256));
        check("tiiuae/Falcon3-7B-Base", Some(131_072));
        check("tiiuae/falcon-7b", Some(65_024));
        check("Falcon3", None);
        check("Qwen/Qwen3.5-27B", Some(248_320));
        check("Qwen3.5", None);
        check("codellama/CodeLlama-7b-Python-hf", Some(32_000));
        check("codellama/CodeLlama-7b-hf", Some(32_016));
        check("llama-3-mine", None);
    }
}
