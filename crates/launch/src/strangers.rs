//! What there is to say of a Python program none of whose calls sets up a training that is known.

use shardscope_source::{Code, Diagnostic};

/// Words that tell what a program is, and what is said of it.
const SIGNS: [(&str, &str); 10] = [
    ("autotrain llm --train", "AutoTrain, whose command and defaults are not known here"),
    (
        "SentenceTransformer",
        "sentence-embedding training (sentence-transformers), whose pair losses are not modelled",
    ),
    ("optimum.habana", "a program for Gaudi accelerators (optimum-habana), which are not known here"),
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
    ("megatron.bridge", "Megatron-Bridge recipes or modules that are not known here"),
];
const LINE: &str =
    "paste the launch command with its options, or the settings it prints at start (YAML or JSON)";

/// Says what `program` is, as far as its text tells.
pub(super) fn python(program: &str) -> Diagnostic {
    if let Some((_, what)) = SIGNS.iter().find(|(sign, _)| program.contains(sign)) {
        return Diagnostic::error(Code::Python, *what).hint(LINE);
    }
    if program.contains(".generate(") && !program.contains(".backward(") {
        let message = "a text generation program, not a training run";
        return Diagnostic::error(Code::NoTraining, message).hint("paste the training config or script");
    }
    Diagnostic::error(Code::Python, "this looks like Python, which is not evaluated here").hint(LINE)
}

#[cfg(test)]
mod tests {
    use super::python;

    #[test]
    fn programs_that_no_reader_knows_are_told_by_what_they_are() {
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
            ("out = model.generate(**inputs)\nloss.backward()\n", "looks like Python"),
            ("!python tools/download.py --a\nprint('hello')\n", "looks like Python"),
        ] {
            let message = python(program).message;
            assert!(message.contains(said), "{message}");
        }
    }
}
