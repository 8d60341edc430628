//! Parameters of configurations against the library's own counts (`data/transformers.jsonl`, made by
//! `data/count.py` with transformers 5.23.0). Every line is equal, or refused, or has a gap; none is wrong.

use std::collections::BTreeMap;

use shardscope_architectures::{Architecture, Refusal, Stop};
use shardscope_config_tree::{Node, read_json};

const LINES: &str = include_str!("data/transformers.jsonl");
/// Configurations that are refused for a key, and which.
const UNFIT: [(&str, &str); 2] = [("ovis2-default", "hidden_size"), ("ovis2-random-1", "hidden_size")];
/// Types without rules: a line of them is refused, and a type that gets rules leaves this list.
const WITHOUT_RULES: &str = include_str!("data/without_rules.txt");

fn lines() -> Vec<Node> {
    LINES.lines().map(|line| read_json(line, 0).documents.remove(0)).collect()
}

fn text<'n>(line: &'n Node, key: &str) -> &'n str {
    line.get(key).and_then(Node::text).unwrap_or_default()
}

#[test]
fn every_configuration_counts_as_the_library_does_or_is_refused_by_name() {
    let mut refused: BTreeMap<String, u32> = BTreeMap::new();
    let mut wrong: Vec<String> = Vec::new();
    let (mut equal, mut near, mut unfit) = (0, 0, 0);
    for line in lines() {
        let name = text(&line, "name");
        let config = line.get("config").unwrap_or_else(|| panic!("{name}: a configuration"));
        match Architecture::read(config) {
            Ok(read) => {
                let counts = [("parameters", read.parameters), ("active", read.active)];
                let counted = counts.map(|(key, ours)| (line.get(key).and_then(Node::whole), ours));
                if counted.iter().all(|(theirs, ours)| *theirs == Some(*ours)) {
                    equal += 1;
                } else if counted.iter().all(|(theirs, ours)| {
                    theirs.is_some_and(|theirs| theirs.abs_diff(*ours) <= theirs / 1000)
                }) {
                    near += 1;
                    println!("within 0.1 %: {name} {counted:?}");
                } else {
                    wrong.push(format!("{name} ({}): {counted:?}", read.model_type));
                }
                let beside = line.get("beside").and_then(Node::whole).unwrap_or(0);
                if beside > 0 && read.left_out.is_empty() {
                    wrong.push(format!("{name}: {beside} parameters beside, left out {:?}", read.left_out));
                }
            }
            Err(Refusal::UnknownType(model_type)) => *refused.entry(model_type).or_default() += 1,
            Err(Refusal::Stopped(Stop::Unfit(key))) if UNFIT.contains(&(name, &key)) => unfit += 1,
            Err(refusal) => wrong.push(format!("{name}: {refusal:?}")),
        }
    }
    let known: Vec<&str> = WITHOUT_RULES.split_ascii_whitespace().collect();
    let unlisted: Vec<&String> =
        refused.keys().filter(|model_type| !known.contains(&model_type.as_str())).collect();
    let closed: Vec<&&str> = known.iter().filter(|model_type| !refused.contains_key(**model_type)).collect();
    println!(
        "equal {equal}, within 0.1 % {near}, refused {}, wrong {}",
        refused.values().sum::<u32>(),
        wrong.len()
    );
    assert!(wrong.is_empty(), "wrong:\n{}", wrong.join("\n"));
    assert_eq!(unlisted, Vec::<&String>::new(), "refused and not listed");
    assert_eq!(closed, Vec::<&&str>::new(), "listed and not refused any more");
    assert_eq!(unfit, UNFIT.len(), "a key that is fit now");
    assert!(equal > 400, "{equal}");
}

fn read(config: &str) -> Result<Architecture, Refusal> {
    Architecture::read(&read_json(config, 0).documents[0])
}

#[test]
fn what_is_not_known_is_never_read_as_something_else() {
    let shape = r#""hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"intermediate_size":128,"vocab_size":100"#;
    let unknown = read(&format!(r#"{{"model_type":"brand_new",{shape}}}"#));
    assert_eq!(unknown, Err(Refusal::UnknownType("brand_new".to_owned())));
    assert_eq!(read(&format!("{{{shape}}}")), Err(Refusal::Nameless));
    // A wrapper that is not known around a text model that is.
    let wrapped =
        read(&format!(r#"{{"model_type":"brand_new_vl","text_config":{{"model_type":"llama",{shape}}}}}"#));
    assert_eq!(wrapped.map(|read| read.left_out), Ok(vec!["brand_new_vl".to_owned()]));
    let latent = read(r#"{"model_type":"glm5_next","hidden_size":64}"#);
    assert!(matches!(latent, Err(Refusal::UnknownType(_))));
}

#[test]
fn sizes_beyond_anything_stop_within_bounds() {
    for layers in ["-1", "0", "1e30", "99999999999", "\"many\"", "[]"] {
        let config = format!(r#"{{"model_type":"llama","num_hidden_layers":{layers}}}"#);
        assert!(matches!(read(&config), Err(Refusal::Stopped(_))), "{layers}");
    }
    let wide = read(r#"{"model_type":"llama","hidden_size":9000000000000000000,"num_hidden_layers":4096}"#);
    assert!(matches!(wide, Err(Refusal::Stopped(_))));
    // A key written as nothing has no default, as in the library.
    let nothing = read(r#"{"model_type":"llama","hidden_size":null}"#);
    assert_eq!(nothing, Err(Refusal::Stopped(Stop::Missing("hidden_size".to_owned()))));
}

/// Model types with mixers other than attention, gated attention or layers of one block. The engine's own count of them,
/// from the sizes alone, is the library's.
const HYBRID: &str = "qwen3_next qwen3_5_text qwen3_5_moe_text nemotron_h granitemoehybrid bamba falcon_h1 jamba kimi_linear \
    gpt_oss gemma2 gemma3_text llama4_text mistral cohere2 olmo3 olmo_hybrid";

#[test]
fn the_engine_counts_hybrid_models_as_the_library_does() {
    let mut counted: BTreeMap<String, [u32; 2]> = BTreeMap::new();
    for line in lines() {
        let Some(Ok(read)) = line.get("config").map(Architecture::read) else { continue };
        if HYBRID.split_ascii_whitespace().any(|known| known == read.model_type) {
            let [equal, all] = counted.entry(read.model_type.clone()).or_default();
            *all += 1;
            if read.in_megatron == read.parameters {
                *equal += 1;
            } else {
                // Small parts that are said to be left out, and nothing else.
                let off = read.in_megatron.abs_diff(read.parameters);
                assert!(!read.gaps.is_empty(), "{} off by {off}", text(&line, "name"));
                assert!(read.gaps.iter().all(|gap| !gap.is_another_layer()), "{:?}", read.gaps);
            }
        }
    }
    let equal: u32 = counted.values().map(|[equal, _]| equal).sum();
    assert_eq!(counted.len(), HYBRID.split_ascii_whitespace().count());
    assert!(equal >= 49, "{counted:?}");
    println!("{counted:?}");
}

/// Word and position embeddings that no u64 holds together: refused, where the sum once ran over.
#[test]
fn embeddings_beyond_all_bounds_are_refused() {
    let config = r#"{"model_type": "gpt2", "n_layer": 1, "n_head": 1, "n_embd": 1073741824, "vocab_size": 8589934592,
        "n_positions": 8589934592}"#;
    let read = Architecture::read(&read_json(config, 0).documents[0]);
    assert!(matches!(read, Err(Refusal::Stopped(Stop::TooLarge))), "{:?}", read.map(|read| read.parameters));
}
