//! Linear layers that a 4-bit checkpoint leaves in 16 bits: the meaning of its list, and the bytes that it holds,
//! compared with what bitsandbytes made of small models on a CPU.

use serde_json::{Value, json};
use shardscope::Asked;
use shardscope::bash::Environment;
use shardscope::estimate::memory;
use shardscope::launch::{Request, Resolution, read};
use shardscope::plan::Field;
use shardscope::source::Source;

use super::drafts::int;

const RECORDED: &str = include_str!("../data/activations/whole_linears.jsonl");

const PROGRAM: &str = r#"
from unsloth import FastLanguageModel
from trl import SFTTrainer, SFTConfig
model, tokenizer = FastLanguageModel.from_pretrained(
    model_name = "NAME", max_seq_length = 512, load_in_4bit = True)
model = FastLanguageModel.get_peft_model(model, r = 8, lora_alpha = 16, lora_dropout = 0, bias = "none",
    target_modules = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"])
trainer = SFTTrainer(model = model, tokenizer = tokenizer, train_dataset = dataset,
    args = SFTConfig(per_device_train_batch_size = 1, gradient_accumulation_steps = 4, optim = "adamw_8bit"))
"#;

fn with(name: &str, config: Option<&Value>, set: &[(String, String)]) -> Resolution {
    let program = PROGRAM.replace("NAME", name);
    let config = config.map(Value::to_string);
    let mut files = vec![("tune.py", program.as_str())];
    files.extend(config.as_deref().map(|text| ("config.json", text)));
    let source = Source::from_files(files);
    read(&Request { source: &source, environment: &Environment::default(), overrides: set })
}

fn config(case: &Value) -> Value {
    let skipped = if case["skipped"] == "none" { Value::Null } else { case["skipped"].clone() };
    let mut config = json!({
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 12, "vocab_size": 512,
        "tie_word_embeddings": false, "hidden_act": "silu", "max_position_embeddings": 2048, "rms_norm_eps": 1e-6,
        "quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": true, "llm_int8_skip_modules": skipped},
    });
    for (key, value) in case["shape"].as_object().expect("a shape") {
        config[key] = value.clone();
    }
    config
}

#[test]
fn bytes_of_a_checkpoint_are_those_that_bitsandbytes_holds() {
    let mut compared = 0;
    for case in RECORDED.lines().skip(1) {
        let case: Value = serde_json::from_str(case).expect("JSON");
        let read = with("someone/small-unsloth-bnb-4bit", Some(&config(&case)), &[]);
        let plan = read.plan.unwrap_or_else(|| panic!("{}: {:?}", case["id"], read.diagnostics));
        assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
        let recorded = int(&case, "packed") + int(&case, "constants") + int(&case, "plain");
        let ours = memory(&plan).ranks[0].frozen.get();
        // Queries, keys and values share one weight here, and so do gate and up: a mean of 4 bytes each instead of five
        // in total.
        let merged = 12 * 3 * 4;
        assert_eq!(ours + merged, recorded, "{}", case["id"]);
        compared += 1;
    }
    assert_eq!(compared, 12);
}

/// For a known model unsloth loads such a checkpoint instead: its list is asked for, with the address.
#[test]
fn the_list_is_asked_for_and_answered_by_the_configuration() {
    let open = with("Qwen/Qwen3-14B", None, &[]);
    let asked: Vec<_> =
        open.questions.iter().filter(|asked| asked.asks == Asked::Setting(Field::WholeLinears)).collect();
    assert!(
        open.plan.is_none() && open.not_modelled.is_empty() && asked.len() == 1,
        "{:?}",
        open.not_modelled
    );
    let address = "https://huggingface.co/unsloth/Qwen3-14B-unsloth-bnb-4bit/blob/main/config.json";
    assert!(asked[0].prompt.contains(address), "{}", asked[0].prompt);

    let frozen = |list: &str| {
        let set = [(Field::WholeLinears.name().to_owned(), list.to_owned())];
        let read = with("unsloth/Qwen3-14B", None, &set);
        memory(&read.plan.unwrap_or_else(|| panic!("{list}: {:?}", read.diagnostics))).ranks[0].frozen.get()
    };
    let all = frozen("none");
    assert_eq!(frozen("lm_head merger"), all);
    // Gate, up and down of 17,408 by 5,120 in two bytes each instead of half a byte, one byte per 64 weights, four per
    // 256 of these, and a mean of four.
    let weight: u64 = 17_408 * 5_120;
    let more = weight * 2 - weight / 2 - weight / 64 - weight / 64 / 256 * 4 - 4;
    assert_eq!(frozen("lm_head, model.layers.4.mlp") - all, 3 * more);
    assert_eq!(frozen("lm_head model.layers.4.mlp.up_proj model.layers.4.mlp") - all, 3 * more);
    assert_eq!(frozen("lm_head up_proj") - all, 40 * more);
}

#[test]
fn lists_that_are_not_understood_stop_by_name() {
    let stops = |name: &str, list: &str| {
        let set = [(Field::WholeLinears.name().to_owned(), list.to_owned())];
        let read = with(name, None, &set);
        assert!(
            read.not_modelled.iter().any(|item| item.name == Field::WholeLinears.name()),
            "{name} {list}"
        );
    };
    stops("unsloth/Qwen3-14B", "lm_head model.layers.40.mlp");
    stops("unsloth/Qwen3-14B", "lm_head model.layers.3.mixer");
    stops("unsloth/Qwen3-14B", "lm_head model.layers.[0-9].mlp");
    // bitsandbytes quantizes an output layer that is not listed.
    stops("unsloth/Qwen3-14B", "model.layers.3.mlp");
    stops("unsloth/Qwen3-30B-A3B", "lm_head model.layers.3.mlp");
}
