//! Which names of a program are its own, and which of its objects it uses.

use super::built::is_trainer;
use super::names::{Names, is_of_name};

/// Libraries whose class names have a fixed meaning; some re-export those of others.
const LIBRARIES: [&str; 14] = [
    "transformers",
    "trl",
    "peft",
    "unsloth",
    "unsloth_zoo",
    "accelerate",
    "bitsandbytes",
    "modelscope",
    "torch",
    "liger_kernel",
    "optimum",
    "alignment",
    "open_r1",
    "llm_blender",
];
/// Most names stored for one program.
const MOST: usize = 512;

/// PEFT configurations that only determine how LoRA's adapters are initialized, and the base class of all.
const OF_LORA: [&str; 7] = [
    "LoraConfig",
    "LoftQConfig",
    "EvaConfig",
    "CordaConfig",
    "LoraGAConfig",
    "LoraRuntimeConfig",
    "PeftConfig",
];

/// Configurations that a program imports from PEFT and that are not LoRA's: other adapters,
/// prompts, single trained layers.
pub(super) fn other_adapters(text: &str) -> Vec<&str> {
    /// Most statements that are examined, and most names of one.
    const MOST: usize = 16;
    const SIGN: &str = "from peft import ";
    let mut found = Vec::new();
    for (at, _) in text.match_indices(SIGN).take(MOST) {
        let rest = text.get(at + SIGN.len()..).unwrap_or_default();
        let end = if rest.trim_start().starts_with('(') { rest.find(')') } else { rest.find('\n') };
        let names = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        let names = names.split(|sign| !is_of_name(sign)).filter(|name| name.ends_with("Config"));
        found.extend(names.filter(|name| !OF_LORA.contains(name)).take(MOST));
    }
    found
}

/// The call with which a program gives transformers' classes a model of its own
/// (`AutoModelForCausalLM.register(Config, LLM)`).
pub(super) fn registers(text: &str) -> Option<&'static str> {
    const CALLS: [&str; 2] = ["AutoModelForCausalLM.register", "AutoModel.register"];
    /// Lines with a call that are examined.
    const LINES: usize = 16;
    CALLS.into_iter().find(|call| {
        text.match_indices(call).take(LINES).any(|(at, _)| {
            let before = text.get(..at).unwrap_or_default().rsplit('\n').next().unwrap_or_default();
            !before.contains('#')
        })
    })
}

/// Parts of the names of language-model classes.
const MODELS: [&str; 3] = ["ForCausalLM", "ForConditionalGeneration", "LMHeadModel"];

fn is_model(name: &str) -> bool {
    MODELS.iter().any(|kind| name.contains(kind))
}

/// Trainer classes that the program imports from a module next to it, and classes that it defines under a library's
/// name: trainers, and argument classes without a base. A class that it derives from a library's trainer under another
/// name is that trainer, except for what it overrides.
#[derive(Default)]
pub(super) struct Owned<'a> {
    names: Vec<&'a str>,
    /// Model classes from modules next to it (`from models.modeling_qwen2 import Qwen2ForCausalLM as Qwen2Quantized`).
    models: Vec<&'a str>,
    /// Whether it defines a trainer.
    pub(super) writes_trainer: bool,
}

impl<'a> Owned<'a> {
    pub(super) fn new(text: &'a str, is_known: &dyn Fn(&str) -> bool) -> Self {
        let (mut own, mut models): (Vec<&'a str>, Vec<&'a str>) = (Vec::new(), Vec::new());
        let (mut foreign, mut writes_trainer) = (false, false);
        for line in text.lines() {
            let words = line.split('#').next().unwrap_or_default().trim();
            let (named, opens) = if let Some((module, rest)) =
                words.strip_prefix("from ").and_then(|rest| rest.split_once(" import "))
            {
                let first = module.trim().split('.').next().unwrap_or_default();
                if LIBRARIES.contains(&first) {
                    continue;
                }
                (rest, rest.contains('(') && !rest.contains(')'))
            } else if let Some(head) = words.strip_prefix("class ") {
                let (name, bases) = head.split_at(head.find(|sign| !is_of_name(sign)).unwrap_or(head.len()));
                let bare =
                    bases.starts_with(':') || bases.starts_with("():") || bases.starts_with("(object)");
                let trainer = name.ends_with("Trainer");
                writes_trainer |= trainer;
                if own.len() < MOST && (trainer || bare) && is_known(name) {
                    own.push(name);
                }
                continue;
            } else if foreign {
                (words, !words.contains(')'))
            } else {
                continue;
            };
            foreign = opens;
            let (mut before, mut last) = ("", "");
            for name in named.split(|sign| !is_of_name(sign)).filter(|name| !name.is_empty()) {
                if is_trainer(name) && own.len() < MOST {
                    own.push(name);
                }
                if (is_model(name) || last == "as" && is_model(before)) && models.len() < MOST {
                    models.push(name);
                }
                (before, last) = (last, name);
            }
        }
        Self { names: own, models, writes_trainer }
    }

    /// Whether a model class comes from a module next to the program.
    pub(super) fn has_model(&self, class: &str) -> bool {
        self.models.contains(&class)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.names.contains(&name)
    }
}

/// Whether the object created by the call that begins at `start` is used: the call is within another call, or the name
/// that it is assigned to occurs anywhere other than in an assignment.
pub(super) fn is_used(names: &Names<'_>, text: &str, start: usize) -> bool {
    let line = text.get(..start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
    let before = text.get(line..start).unwrap_or_default().trim();
    let Some(name) = before.strip_suffix('=').map(str::trim_end) else { return true };
    // `name: Kind = …`
    let name = name.split(':').next().unwrap_or(name).trim_end();
    // A keyword at the beginning of its line.
    let above = text.get(..line).unwrap_or_default().trim_end();
    let above =
        above.rsplit('\n').next().unwrap_or_default().split(" #").next().unwrap_or_default().trim_end();
    if name.is_empty() || !name.chars().all(is_of_name) || above.ends_with(['(', '[', '{', ',']) {
        return true;
    }
    names.is_used(name)
}

#[cfg(test)]
mod tests {
    use super::super::names::Names;
    use super::{Owned, is_used};

    #[test]
    fn what_is_taken_from_beside_the_program_is_its_own() {
        let text = "from trl import SFTTrainer, DPOTrainer\nfrom .sft import KTOTrainer\nfrom src.a.b import (\n    x,\n    ORPOTrainer,\n)\n\
            from models.qwen import Qwen2ForCausalLM as Quantized, Other\nfrom transformers import LlamaForCausalLM as Llama\n\
            class GRPOTrainer(Trainer):\n    pass\n@dataclass\nclass GRPOConfig:\n    pass\nclass SFTConfig(trl.SFTConfig):\n    pass\n\
            class MyTrainer(Trainer):\n    pass\n";
        let owned = Owned::new(text, &|name| name.starts_with("GRPO"));
        for name in ["KTOTrainer", "ORPOTrainer", "GRPOTrainer", "GRPOConfig"] {
            assert!(owned.has(name), "{name}");
        }
        for name in ["SFTTrainer", "DPOTrainer", "SFTConfig", "MyTrainer"] {
            assert!(!owned.has(name), "{name}");
        }
        assert!(owned.has_model("Qwen2ForCausalLM") && owned.has_model("Quantized"));
        assert!(
            !owned.has_model("Other") && !owned.has_model("Llama") && !owned.has_model("LlamaForCausalLM")
        );
        assert!(owned.writes_trainer);
        assert!(!Owned::new("from trl import SFTTrainer", &|_| true).writes_trainer);
    }

    #[test]
    fn what_is_built_and_never_handed_on_is_not_used() {
        for (text, used) in [
            ("bnb = BitsAndBytesConfig()\nm = f(name)  # bnb\n", false),
            ("bnb = BitsAndBytesConfig()\nm = f(name, q=bnb)\n", true),
            ("m = f(name, q=BitsAndBytesConfig())\n", true),
            ("m = f(\n    name,  # its name\n    q=BitsAndBytesConfig()\n    if a else None)\n", true),
            ("bnb: Q = BitsAndBytesConfig()\nbnb_2 = bnb_1\n", false),
            ("    bnb = BitsAndBytesConfig()\nelse:\n    bnb = None\nx.bnb = 1\n", false),
        ] {
            let start = text.find("BitsAndBytesConfig").unwrap_or_default();
            assert_eq!(is_used(&Names::new(text), text, start), used, "{text}");
        }
    }
}
