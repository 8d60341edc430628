//! The diagnostic for a Python program none of whose calls sets up a known training.

use shardscope_python::statements::{Statement, statements};
use shardscope_source::{Code, Diagnostic};

/// Words by which a program is recognised, and the message for it.
const SIGNS: [(&str, &str); 13] = [
    ("autotrain llm --train", "AutoTrain, whose command and defaults are not known here"),
    (
        "SentenceTransformer",
        "sentence-embedding training (sentence-transformers), whose pair losses are not modelled",
    ),
    ("optimum.habana", "a program for Gaudi accelerators (optimum-habana), which are not known here"),
    ("fine_tuning.jobs.create(", "a fine-tuning job of a hosted service, which decides on what it runs"),
    (
        "from oat.",
        "reinforcement learning with oat, whose learner, actors and oracles share the accelerators",
    ),
    ("rapidfireai", "an experiment of RapidFire AI, which trains several configurations at once"),
    ("from collie", "CoLLiE training, which has its own trainer and modules"),
    ("AutoModelForSequenceClassification", "a custom training loop over a classification model"),
    (
        "art.TrainableModel",
        "agent training with ART, whose backend starts unsloth and vLLM with its own settings",
    ),
    ("from art.", "agent training with ART, whose backend starts unsloth and vLLM with its own settings"),
    (
        "sagemaker.huggingface",
        "a notebook that starts a SageMaker job, whose program and settings are in other files",
    ),
    (
        "GRPOEnvTrainer",
        "reinforcement learning in environments of verifiers, which decide length and number of the samples",
    ),
    ("megatron.bridge", "Megatron-Bridge recipes or modules that are not known here"),
];
const LINE: &str =
    "paste the launch command with its options, or the settings it prints at start (YAML or JSON)";

/// Calls of a hand-written training loop; the first is enough by itself.
const LOOP: [&str; 5] = [".backward(", "optimizer.step(", "torch.optim.", "optim.Adam", "AdamW("];
/// Words in programs that train in any way, or that start one that does; calls that are named after a training count too.
const TRAINS: [&str; 8] =
    ["Trainer", "trainer", ".fit(", "optimizer", "deepspeed", "subprocess", "os.system", "get_ipython"];
/// What functions begin with that do something around a training, or read what one has made.
const AROUND: [&str; 14] = [
    "load", "get", "analyze", "convert", "create", "prepare", "build", "read", "parse", "save", "plot",
    "show", "print", "make",
];
/// Words of programs whose settings are those of their command.
const PARSERS: [&str; 6] =
    ["ArgumentParser(", "TrlParser(", "hydra.main", "hydra_runner", "fire.Fire(", "ConfigManager("];
/// Modules whose top-level calls configure the process and start nothing.
const SETS: [&str; 8] = ["logging", "warnings", "sys", "os", "torch", "logger", "matplotlib", "OmegaConf"];
/// Libraries: what is imported from them is not in one of the program's own files.
const LIBRARIES: [&str; 16] = [
    "transformers",
    "trl",
    "peft",
    "torch",
    "datasets",
    "accelerate",
    "deepspeed",
    "lightning",
    "unsloth",
    "pytorch_lightning",
    "bitsandbytes",
    "sklearn",
    "typing",
    "ray",
    "llamafactory",
    "tqdm",
];
/// Maximum number of statements examined.
const STATEMENTS: usize = 20_000;

/// Says what `program` is, as far as its text shows.
pub(super) fn python(program: &str) -> Diagnostic {
    if let Some((_, what)) = SIGNS.iter().find(|(sign, _)| program.contains(sign)) {
        return Diagnostic::error(Code::Python, *what).hint(LINE);
    }
    let mut written = statements(program);
    written.truncate(STATEMENTS);
    let has = |words: &[&str]| {
        written.iter().any(|statement| words.iter().any(|word| without_remark(statement.text).contains(word)))
    };
    if let Some(message) = module(&written, has(&LOOP[..1])) {
        let hint = "paste the program that imports it, with its launch command, or the settings that it prints at start";
        return Diagnostic::error(Code::Python, message).hint(hint);
    }
    if has(&LOOP) {
        let message = "a custom training loop, whose model, batch, optimizer and precision are not read";
        return Diagnostic::error(Code::Python, message).hint(LINE);
    }
    if let Some((module, name)) = trains_elsewhere(&written) {
        let message = format!("a program whose training is in another file (from {module} import {name})");
        return Diagnostic::error(Code::Python, message).hint(LINE);
    }
    let hint = "paste the training config or script";
    if has(&[".generate("]) && !has(&[".train(", ".fit(", "Trainer("]) {
        return Diagnostic::error(Code::NoTraining, "a text generation program, not a training run")
            .hint(hint);
    }
    if !has(&TRAINS) && !written.iter().any(|statement| calls_training(without_remark(statement.text))) {
        let message = "a program without a training: it calls no trainer, optimizer or backward()";
        return Diagnostic::error(Code::NoTraining, message).hint(hint);
    }
    if has(&PARSERS) {
        let message = "a program whose settings come from its launch command, which is not here";
        return Diagnostic::error(Code::Python, message).hint(LINE);
    }
    Diagnostic::error(Code::Python, "this looks like Python, which is not evaluated here").hint(LINE)
}

/// Whether a statement calls something that is named after a training (`pretrain(…)`, `finetune_model(…)`), other than what
/// loads a trained model or splits samples.
fn calls_training(text: &str) -> bool {
    let sign = |sign: char| sign.is_alphanumeric() || sign == '_';
    let is_defined = ["def ", "class ", "async def "].iter().any(|start| text.starts_with(start));
    !is_defined
        && text.match_indices('(').any(|(at, _)| {
            let before = text.get(..at).unwrap_or_default();
            let start = before.rfind(|letter| !sign(letter)).map_or(0, |end| end + 1);
            let name = before.get(start..).unwrap_or_default().to_ascii_lowercase();
            let named = (name.contains("train") || name.contains("tune")) && !name.contains("trained");
            let first = name.split('_').find(|part| !part.is_empty()).unwrap_or_default();
            let trains = ["and_train", "and_finetune", "train_step", "train_state"];
            let does = trains.iter().any(|part| name.contains(part));
            named && name != "train_test_split" && (does || !AROUND.contains(&first))
        })
}

/// A statement without a trailing comment; a `#` in a string cuts it short too.
fn without_remark(text: &str) -> &str {
    match text.split_once(" #") {
        Some((before, remark)) if !remark.contains('\n') => before,
        _ => text,
    }
}

/// What kind of module this is, if it only defines and imports and runs nothing when started.
fn module(written: &[Statement<'_>], trains: bool) -> Option<String> {
    let mut defined: Option<&str> = None;
    for statement in written.iter().filter(|statement| statement.indent == 0) {
        let text = statement.text;
        let head = text.strip_prefix("async ").unwrap_or(text);
        if let Some(rest) = head.strip_prefix("class ").or(head.strip_prefix("def ")) {
            let name = rest.split(|sign: char| !sign.is_alphanumeric() && sign != '_').next()?;
            // A trainer is more telling than the definitions before it.
            if defined.is_none()
                || name.ends_with("Trainer") && defined.is_some_and(|known| !known.ends_with("Trainer"))
            {
                defined = Some(name);
            }
            continue;
        }
        if !defines(text) {
            return None;
        }
    }
    Some(match (defined, trains) {
        (Some(name), true) => {
            format!("a module with a custom training loop ({name}), which starts nothing by itself")
        }
        (Some(name), false) => format!("a module ({name}) that starts no training by itself"),
        (None, _) => "a module of names and values, which starts nothing by itself".to_owned(),
    })
}

/// Whether a statement at the left edge imports, names or describes something, or is a branch around such statements.
fn defines(text: &str) -> bool {
    const WORDS: [&str; 11] =
        ["import ", "from ", "@", "\"", "'", "try", "except", "else", "finally", "pass", "elif "];
    if WORDS.iter().any(|word| text.starts_with(word)) {
        return true;
    }
    if text.starts_with("if ") {
        return !text.contains("__name__");
    }
    let name = text.split(|sign: char| !sign.is_alphanumeric() && !matches!(sign, '_' | '.')).next();
    let name = name.unwrap_or_default();
    let rest = text.get(name.len()..).unwrap_or_default().trim_start();
    match rest.chars().next() {
        // A value returned by a call may be a training's (`model = train(…)`); constants and loggers are not.
        Some('=' | ':') if !name.is_empty() && !rest.starts_with("==") => !rest.contains("rain("),
        Some('(') => SETS.contains(&name.split('.').next().unwrap_or_default()),
        _ => false,
    }
}

/// The module and the name by which a program starts a training that is in another file: the trainer or `train`
/// function that it calls.
fn trains_elsewhere<'a>(written: &[Statement<'a>]) -> Option<(&'a str, &'a str)> {
    /// Maximum number of imports whose names are searched for.
    const IMPORTS: usize = 16;
    let trains = |name: &&str| {
        let begins = ["train_", "run_"].iter().any(|start| name.starts_with(start));
        name.ends_with("Trainer") || ["train", "pretrain", "finetune"].contains(name) || begins
    };
    let imported = written.iter().filter_map(|statement| {
        let (module, names) = statement.text.strip_prefix("from ")?.split_once(" import ")?;
        let module = module.trim();
        let first = module.split('.').next().unwrap_or_default();
        let mut names = without_remark(names).split(|sign: char| !sign.is_alphanumeric() && sign != '_');
        let name = names.find(trains)?;
        (!LIBRARIES.contains(&first)).then_some((module, name))
    });
    let calls = |name: &str| {
        written.iter().any(|statement| {
            let mut behind = statement
                .text
                .match_indices(name)
                .filter_map(|(at, _)| statement.text.get(at + name.len()..));
            behind.any(|rest| rest.starts_with('('))
        })
    };
    // Base classes of the program's own classes are called by those.
    let extends = |name: &str| {
        let head = format!("({name})");
        written.iter().any(|statement| statement.text.starts_with("class ") && statement.text.contains(&head))
    };
    imported.take(IMPORTS).find(|(_, name)| calls(name) || extends(name))
}

#[cfg(test)]
mod tests {
    use super::python;

    #[test]
    fn programs_that_no_reader_knows_are_recognised_by_what_they_are() {
        for (program, said) in [
            (
                "from sentence_transformers import SentenceTransformer\nmodel = SentenceTransformer('a')\n",
                "sentence-embedding training",
            ),
            ("out = model.generate(**inputs)\nprint(out)\n", "text generation program"),
            (
                "!autotrain setup\n!autotrain llm --train --model a --use_peft\nout = model.generate(**inputs)\n",
                "AutoTrain",
            ),
            (
                "import art\nmodel = art.TrainableModel(name='a')\nawait model.generate(1)\n",
                "agent training with ART",
            ),
            ("from sagemaker.huggingface import HuggingFace\n", "SageMaker job"),
            ("out = model.generate(**inputs)\nloss.backward()\n", "a custom training loop, whose"),
            // A command that a program starts through a shell may train.
            ("import subprocess\nsubprocess.run(x)\nprint('hello')\n", "looks like Python"),
            ("!python tools/download.py --a\nprint('hello')\n", "a program without a training"),
            // Samples and a trained model are no training.
            (
                "train_data = load_training_data()\na, b = train_test_split(load_finetuned(x))\n",
                "a program without a training",
            ),
            ("import x\nx.finetune_model(1)\n", "looks like Python"),
            // Megatron-LM's own programs and their forks.
            (
                "from megatron.training import get_args, pretrain\nif __name__ == '__main__':\n    pretrain(a, b)\n",
                "a program whose training is in another file (from megatron.training import pretrain)",
            ),
            (
                "import argparse\nparser = argparse.ArgumentParser()\nrunner.train()\n",
                "a program whose settings come from its launch command, which is not here",
            ),
            // A comment is not a call.
            ("print(1)\nx.show()  # loss.backward()\n", "a program without a training"),
        ] {
            let message = python(program).message;
            assert!(message.contains(said), "{message}");
        }
    }

    #[test]
    fn modules_are_distinguished_from_programs() {
        for (program, said) in [
            (
                "\"\"\"Sizes.\"\"\"\nimport torch\nfrom transformers import Trainer\nlogger = logging.getLogger(__name__)\n\n\
                 def split(a):\n    return a\n\nclass LLaVATrainer(Trainer):\n    def _get_train_sampler(self):\n        return 1\n",
                "a module (LLaVATrainer) that starts no training by itself",
            ),
            (
                "import torch\n\nclass BasicTrainer:\n    def train(self):\n        self.loss.backward()\n",
                "a module with a custom training loop (BasicTrainer), which starts nothing by itself",
            ),
            (
                "LR = 1e-4\nMODEL: str = 'a'\nif LR > 1:\n    LR = 1\n",
                "a module of names and values, which starts nothing by itself",
            ),
            // A call at the left edge, or below the line that checks whether the file is started, makes it a program.
            ("def main():\n    fit()\n\nmain()\n", "a program without a training"),
            (
                "from .own import SFTTrainer\n\ndef main():\n    SFTTrainer(x).run()\n\nif __name__ == '__main__':\n    main()\n",
                "a program whose training is in another file (from .own import SFTTrainer)",
            ),
            (
                "from trl import SFTTrainer\ntrainer = SFTTrainer(model)\ntrainer.train()\n",
                "this looks like Python",
            ),
        ] {
            assert_eq!(python(program).message.get(..said.len()), Some(said), "{program}");
        }
    }
}
