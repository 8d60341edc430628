//! Programs that train a decoder with a head for classes by transformers' Trainer.

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::{Objective, Plan};
use shardscope_source::Source;

fn said(name: &str) -> Resolution {
    let text = format!(
        "from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments\n\
         model = AutoModelForSequenceClassification.from_pretrained('{name}', num_labels=5)\n\
         args = TrainingArguments(output_dir='out', per_device_train_batch_size=8, bf16=True)\n\
         trainer = Trainer(model=model, args=args, train_dataset=data)\n\
         trainer.train()\n"
    );
    let overrides =
        [("gpus_per_node", "8"), ("num_nodes", "1"), ("accelerator", "H200-SXM"), ("seq_length", "512")];
    let overrides = overrides.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let source = Source::from_files([("train.py", text.as_str())]);
    read(&Request { source: &source, environment: &Environment::default(), overrides: &overrides })
}

fn planned(name: &str) -> Plan {
    let found = said(name);
    found.plan.unwrap_or_else(|| panic!("{name}: {:#?}\n{:#?}", found.not_modelled, found.diagnostics))
}

/// Base models are rows of settings in the catalog, their instructed variants configurations of the Hub.
#[test]
fn heads_over_decoders_of_either_list_are_plans() {
    for name in [
        "meta-llama/Llama-3.1-8B",
        "meta-llama/Llama-3.2-1B",
        "Qwen/Qwen2.5-7B",
        "Qwen/Qwen3-8B",
        "Qwen/Qwen3-0.6B",
        "Qwen/Qwen3-30B-A3B",
        "mistralai/Mixtral-8x7B-v0.1",
        "Qwen/Qwen2.5-7B-Instruct",
    ] {
        assert_eq!(planned(name).recipe().tuning.objective, Objective::Classes { labels: 5 }, "{name}");
    }
    // The same shape by both ways.
    let [base, instructed] =
        ["Qwen/Qwen2.5-7B", "Qwen/Qwen2.5-7B-Instruct"].map(|name| planned(name).model().clone());
    assert_eq!(
        (base.num_layers, base.hidden_size, base.embeddings),
        (instructed.num_layers, instructed.hidden_size, instructed.embeddings)
    );
}

/// GPT-2's head is a class of its own; GPT-3 and Kimi K2 are no types of transformers.
#[test]
fn heads_that_were_not_recorded_stop() {
    for name in [
        "openai-community/gpt2",
        "EleutherAI/gpt-neox-20b",
        "GPT-3-6.7B",
        "moonshotai/Kimi-K2",
        "google/flan-t5-large",
    ] {
        let found = said(name);
        assert!(found.plan.is_none(), "{name}");
        let named = found.not_modelled.iter().any(|item| item.name == "AutoModelForSequenceClassification");
        assert!(named, "{name}: {:?}", found.not_modelled);
    }
}
