//! Models by their names.

use shardscope_architectures::{Architecture, Refusal, Stop};
use shardscope_config_tree::read_json;
use shardscope_plan::Field;

use crate::hub::{self, Entry};
use crate::rows::{self, ROWS, Row};
use crate::shape;

/// The short names of models offered for a plan, smaller and older ones first within a family.
pub fn model_names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.name).chain(FROM_HUB)
}

/// Short names whose models are listed among those of the Hub.
const FROM_HUB: [&str; 2] = ["gpt-oss-20b", "gpt-oss-120b"];

/// All names on the Hub that the catalog knows, with their organisations.
pub fn hub_names() -> impl Iterator<Item = &'static str> {
    hub::entries().flat_map(Entry::names)
}

/// A model of the catalog.
#[derive(Clone, Copy)]
pub struct Model(Source);

#[derive(Clone, Copy)]
enum Source {
    Row(&'static Row),
    Hub(Entry, &'static str),
}

impl Model {
    /// The model's name in the catalog.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Source::Row(row) => row.name,
            Source::Hub(_, name) => name,
        }
    }

    /// Its shape as settings; `None` if it has parts that no setting can express ([`Model::lacking`]).
    #[must_use]
    pub fn settings(self) -> Vec<(Field, String)> {
        match self.0 {
            Source::Row(row) => rows::settings(row),
            Source::Hub(..) if !self.lacking().is_empty() => Vec::new(),
            Source::Hub(..) => self.architecture().map(|read| shape::settings(&read)).unwrap_or_default(),
        }
    }

    /// The parts that no setting can express, in words: layers of another kind, other modalities. Empty for most.
    #[must_use]
    pub fn lacking(self) -> Vec<String> {
        self.architecture().as_ref().map(lacking).unwrap_or_default()
    }

    /// Its architecture, and which parts of that are not estimated. `None` for a model that is listed as settings.
    #[must_use]
    pub fn architecture(self) -> Option<Architecture> {
        match self.0 {
            Source::Row(_) => None,
            Source::Hub(entry, _) => entry.architecture(),
        }
    }

    /// Its type in transformers; `None` where it has none there, or code of its own.
    #[must_use]
    pub fn model_type(self) -> Option<String> {
        match self.0 {
            Source::Row(row) => rows::model_type(row).map(str::to_owned),
            Source::Hub(entry, _) => entry.architecture().map(|read| read.model_type),
        }
    }

    /// Where its shape was read; `None` for models under short names, which are settings written for the catalog.
    #[must_use]
    pub fn source(self) -> Option<&'static str> {
        match self.0 {
            Source::Row(_) => None,
            Source::Hub(entry, _) => Some(entry.source),
        }
    }

    /// Its published parameters as published: all digits, or rounded with a letter (`7.3B`).
    #[must_use]
    pub fn published(self) -> Option<&'static str> {
        match self.0 {
            Source::Row(_) => None,
            Source::Hub(entry, _) => entry.published,
        }
    }
}

fn lacking(read: &Architecture) -> Vec<String> {
    let gaps = read.stopping().into_iter().map(|gap| gap.words().to_owned());
    let towers = read.without_figures().map(|key| format!("another modality ({key})"));
    gaps.chain(towers).collect()
}

fn refused(refusal: Refusal) -> String {
    match refusal {
        Refusal::Nameless => "the configuration names no model_type".to_owned(),
        Refusal::UnknownType(name) => format!("the model type {name} is not known"),
        Refusal::Stopped(Stop::Missing(key)) => format!("the configuration lacks {key}"),
        Refusal::Stopped(Stop::Unfit(key)) => format!("{key} holds a value that its model type cannot use"),
        Refusal::Stopped(Stop::TooLarge) => "its sizes are out of range".to_owned(),
    }
}

/// The shape that the text of a `config.json` states, as settings.
///
/// # Errors
/// Which parts of the model no setting can express, or why it cannot be read, in words.
pub fn of_config(text: &str) -> Result<Vec<(Field, String)>, Vec<String>> {
    let tree = read_json(text, 0);
    let root = tree.documents.first().ok_or_else(|| vec!["the text is not a JSON document".to_owned()])?;
    let read = Architecture::read(root).map_err(|refusal| vec![refused(refusal)])?;
    let lacking = lacking(&read);
    // Settings for only part of the model would describe another model.
    if lacking.is_empty() { Ok(shape::settings(&read)) } else { Err(lacking) }
}

/// What the catalog knows under a name.
pub enum Named {
    /// The model with exactly this name.
    Known(Model),
    /// Another name of the same model: all sizes are equal.
    Alias(Model),
    /// The catalog has none of that name.
    Unknown {
        /// Its organisation on the Hub, if the name states it.
        organisation: Option<String>,
        /// Its own name.
        name: String,
    },
}

impl Named {
    /// The model, by its own name or an alias; `None` if it is unknown.
    #[must_use]
    pub fn model(self) -> Option<Model> {
        match self {
            Self::Known(model) | Self::Alias(model) => Some(model),
            Self::Unknown { .. } => None,
        }
    }

    /// The address of an unknown model's `config.json` on the Hub. `None` if no organisation is named.
    #[must_use]
    pub fn address(&self) -> Option<String> {
        match self {
            Self::Unknown { organisation: Some(organisation), name } => {
                Some(config_address(&format!("{organisation}/{name}")))
            }
            _ => None,
        }
    }
}

/// The address of a repository's `config.json` on the Hub.
#[must_use]
pub fn config_address(repository: &str) -> String {
    format!("https://huggingface.co/{repository}/blob/main/config.json")
}

/// Suffixes of a name that change no size of the model: instruction tuning, another layout or another number format.
const VARIANTS: [&str; 7] = ["-instruct", "-chat", "-hf", "-base", "-it", "-fp8", "-bf16"];

/// Other official names, normalised, with the names of the rows that they refer to.
const ALIASES: &[(&str, &str)] = &[
    ("gpt2", "GPT-2-124M"),
    ("gpt2-medium", "GPT-2-355M"),
    ("gpt2-large", "GPT-2-774M"),
    ("gpt2-xl", "GPT-2-1.5B"),
    ("meta-llama-3-8b", "Llama-3-8B"),
    ("meta-llama-3-70b", "Llama-3-70B"),
    ("meta-llama-3.1-8b", "Llama-3.1-8B"),
    ("meta-llama-3.1-70b", "Llama-3.1-70B"),
    ("llama-3.3-70b", "Llama-3.1-70B"),
    ("meta-llama-3.1-405b", "Llama-3.1-405B"),
    ("mistral-7b-v0.1", "Mistral-7B"),
    ("mixtral-8x7b-v0.1", "Mixtral-8x7B"),
    ("mixtral-8x22b-v0.1", "Mixtral-8x22B"),
    ("deepseek-r1-distill-llama-8b", "Llama-3.1-8B"),
    ("deepseek-r1-distill-llama-70b", "Llama-3.1-70B"),
    ("deepseek-r1-0528", "DeepSeek-R1"),
    ("deepseek-v3-0324", "DeepSeek-V3"),
];

/// The model that a name refers to: its own name, `organisation/name`, a path to it or the address of its page. Names
/// are compared in full, ignoring case and treating `_` as `-`: a name that only begins like one in the catalog is
/// another model (DeepSeek-R1-Distill-Qwen-7B is not DeepSeek-R1).
#[must_use]
pub fn find(name: &str) -> Named {
    let (organisation, last) = parts(name);
    let wanted = last.to_ascii_lowercase().replace('_', "-");
    let own = |wanted: &str| {
        ROWS.iter().find(|row| row.name.eq_ignore_ascii_case(wanted)).map(|row| Model(Source::Row(row)))
    };
    let of =
        |wanted: &str| own(wanted).or_else(|| own(ALIASES.iter().find(|(alias, _)| *alias == wanted)?.1));
    // Exact names first: stripping a suffix must not find a different model than the one with exactly that name.
    if let Some(model) = own(&wanted) {
        return Named::Known(model);
    }
    if let Some((entry, name)) = hub::named(&wanted) {
        return Named::Known(Model(Source::Hub(entry, name)));
    }
    if let Some(model) = of(&wanted) {
        return Named::Alias(model);
    }
    let mut rest = wanted.as_str();
    // One suffix after the other: `-Instruct-FP8`.
    while let Some(shorter) = VARIANTS.iter().find_map(|end| rest.strip_suffix(end)) {
        rest = shorter;
        if let Some(model) = of(rest) {
            return Named::Alias(model);
        }
    }
    Named::Unknown { organisation: organisation.map(str::to_owned), name: last.to_owned() }
}

/// The number format of an encoder-decoder's checkpoint, if it is known: Google's T5, FLAN-T5 and mT5 are files of 4 bytes a
/// parameter (t5-base 892 MB for 222.9 million, flan-t5-xl 11.4 GB for 2.85 billion). Fine-tunes of theirs that share the
/// configuration (mT0) or only the name are not known.
#[must_use]
pub fn checkpoint_dtype(name: &str) -> Option<&'static str> {
    let Named::Known(Model(Source::Hub(entry, _))) = find(name) else { return None };
    let (organisation, last) = parts(name);
    let googles = |full: &str| {
        let own = full.strip_prefix("google/").or_else(|| full.strip_prefix("google-t5/"));
        own.is_some_and(|own| own.eq_ignore_ascii_case(last))
    };
    let encodes = || entry.architecture().is_some_and(|read| read.shape.encoder.is_some());
    // A folder of that name may hold a fine-tune.
    let here = matches!(organisation, Some("google" | "google-t5")) || !name.contains('/');
    (here && entry.names().any(googles) && encodes()).then_some("fp32")
}

/// Organisation and name in what people write for a model. A path that does not have exactly two parts names no
/// organisation.
fn parts(written: &str) -> (Option<&str>, &str) {
    let mut rest = written.trim();
    for scheme in ["https://", "http://"] {
        rest = rest.strip_prefix(scheme).unwrap_or(rest);
    }
    for host in ["huggingface.co/", "www.huggingface.co/", "hf.co/"] {
        rest = rest.strip_prefix(host).unwrap_or(rest);
    }
    // A branch or file appended to the model's address.
    for behind in ["/tree/", "/blob/", "/resolve/"] {
        rest = rest.split_once(behind).map_or(rest, |(front, _)| front);
    }
    let rest = rest.trim_end_matches('/');
    // A folder of the Hub's cache: `models--Qwen--Qwen2.5-7B/snapshots/…`.
    let cached = rest.split('/').find_map(|folder| folder.strip_prefix("models--")?.split_once("--"));
    if let Some((organisation, name)) =
        cached.filter(|(organisation, name)| !organisation.is_empty() && !name.is_empty())
    {
        return (Some(organisation), name);
    }
    match rest.rsplit_once('/') {
        Some((organisation, name))
            // `./x`, `$HOME/x` and `/data/x/y` are paths, which say nothing about the Hub.
            if !organisation.is_empty() && !organisation.contains(['/', '.', '$', '~']) =>
        {
            (Some(organisation), name)
        }
        Some((_, name)) => (None, name),
        None => (None, rest),
    }
}

/// The settings of a known model with its catalog name: see [`find`].
#[must_use]
pub fn model(name: &str) -> Option<(&'static str, Vec<(Field, String)>)> {
    find(name).model().map(|model| (model.name(), model.settings()))
}

/// The vocabulary of the models of one shape (layers, hidden size, heads, MLP width), with the name of the first of
/// them; `None` if no model in the catalog has that shape, or if those that do have different vocabularies (Llama 2
/// and 3 of 70B).
#[must_use]
pub fn vocabulary_of_shape(shape: [u64; 4]) -> Option<(&'static str, u64)> {
    // Scripts often give a shape without a vocabulary: it can be suggested if all models of that shape agree.
    agreed(|row| rows::sizes(row) == shape)
}

/// The same, restricted to models with these query groups and QKV biases: the layers of Llama 2 7B with QKV biases
/// are those of the first Qwen, which has a different vocabulary.
#[must_use]
pub fn vocabulary_of_attention(shape: [u64; 4], groups: u64, biases: bool) -> Option<(&'static str, u64)> {
    agreed(|row| rows::sizes(row) == shape && rows::attention(row) == (groups, biases))
}

fn agreed(is_alike: impl Fn(&rows::Row) -> bool) -> Option<(&'static str, u64)> {
    let mut alike = ROWS.iter().filter(|row| is_alike(row));
    let first = alike.next()?;
    let vocabulary = rows::vocabulary(first);
    alike.all(|row| rows::vocabulary(row) == vocabulary).then_some((first.name, vocabulary))
}

#[cfg(test)]
mod tests {
    use super::{find, model, model_names, vocabulary_of_attention, vocabulary_of_shape};

    #[test]
    fn a_shape_tells_its_vocabulary_where_all_models_of_it_agree() {
        assert_eq!(vocabulary_of_shape([40, 5120, 40, 13_824]), Some(("Llama-2-13B", 32_000)));
        assert_eq!(vocabulary_of_shape([80, 8192, 64, 28_672]), None, "Llama 2 and 3");
        assert_eq!(vocabulary_of_shape([40, 5120, 40, 13_825]), None);
        let shape = [32, 4096, 32, 11_008];
        assert_eq!(vocabulary_of_attention(shape, 32, false), Some(("Llama-2-7B", 32_000)));
        assert_eq!(vocabulary_of_attention(shape, 32, true), None, "the first Qwen of 7B");
        assert_eq!(vocabulary_of_attention(shape, 4, false), None, "Yi of 6B");
        assert_eq!(
            vocabulary_of_attention([32, 4096, 32, 14_336], 8, false),
            None,
            "Llama 3 of 8B and Mistral of 7B"
        );
    }

    #[track_caller]
    fn check(asked: &str, expected: Option<&str>) {
        assert_eq!(model(asked).map(|(name, _)| name), expected, "{asked}");
    }

    #[test]
    fn models_are_found_by_the_names_people_write() {
        for name in model_names() {
            check(name, Some(name));
        }
        check("meta-llama/Llama-3.1-8B-Instruct", Some("Llama-3.1-8B-Instruct"));
        check("Qwen/Qwen2.5-7B/", Some("Qwen2.5-7B"));
        check("/data/models--Qwen--Qwen2.5-7B", Some("Qwen2.5-7B"));
        check(
            "~/.cache/huggingface/hub/models--Qwen--Qwen2.5-7B/snapshots/d149729398750b98c0af14eb82c78cfe92750796",
            Some("Qwen2.5-7B"),
        );
        check("models----Qwen2.5-7B", None);
        check("deepseek-ai/deepseek-v2-lite-chat", Some("DeepSeek-V2-Lite"));
        check("Llama-3.1-80B", None);
        check("Qwen3-8", None);
        check("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", Some("DeepSeek-R1-Distill-Qwen-7B"));
        check("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B-mine", None);
        check("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", Some("DeepSeek-R1-Distill-Llama-70B"));
        check("meta-llama/Meta-Llama-3-8B-Instruct", Some("Meta-Llama-3-8B-Instruct"));
        check("mistralai/Mistral-7B-v0.3", Some("Mistral-7B-v0.3"));
        check("unsloth/Llama-3.2-1B-Instruct-bnb-4bit", None);
        check("https://huggingface.co/Qwen/Qwen2.5-72B-Instruct/tree/main", Some("Qwen2.5-72B-Instruct"));
        check("/data/models/qwen3_8b", Some("Qwen3-8B"));
        check("", None);
    }

    #[test]
    fn a_model_with_parts_that_no_setting_states_says_so() {
        let lacking =
            |name: &str| find(name).model().map(|model| (model.settings().is_empty(), model.lacking()));
        assert_eq!(lacking("Qwen/Qwen2.5-7B-Instruct"), Some((false, Vec::new())));
        let (empty, words) = lacking("moonshotai/Kimi-K2.5").expect("a known model");
        assert!(empty && words.iter().any(|word| word.contains("vision")), "{words:?}");
        // Linear attention alone is modelled.
        assert_eq!(lacking("Qwen/Qwen3-Next-80B-A3B-Instruct"), Some((false, Vec::new())));
        // Settings state a vision tower whose sizes are known.
        assert_eq!(lacking("Qwen/Qwen3-VL-8B-Instruct"), Some((false, Vec::new())));
    }

    #[test]
    fn an_unknown_model_is_asked_for_where_it_lies() {
        let asked = |name: &str| find(name).address();
        let config = "https://huggingface.co/acme/Rocket-7B/blob/main/config.json";
        assert_eq!(asked("acme/Rocket-7B").as_deref(), Some(config));
        assert_eq!(asked("https://huggingface.co/acme/Rocket-7B").as_deref(), Some(config));
        assert_eq!(asked("Rocket-7B"), None);
        assert_eq!(asked("/data/acme/Rocket-7B"), None);
        assert_eq!(asked("./Rocket-7B"), None);
    }
}
