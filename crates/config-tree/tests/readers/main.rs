//! The readers of settings files against the crates that parse standard JSON, YAML and TOML.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop with the value at hand")]

mod shapes;

use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, any, proptest};
use proptest::sample::{Index, select};
use proptest::test_runner::RngSeed;
use shapes::{Style, block, flow, shapes};
use shardscope_config_tree::{Node, Tree, Value, read_json, read_toml, read_yaml};
use yaml_rust2::{Yaml, YamlLoader};

/// The same texts on every run.
fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(11),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn is_nothing(yaml: &Yaml) -> bool {
    matches!(yaml, Yaml::Null | Yaml::BadValue)
}

#[track_caller]
fn same(node: &Node, yaml: &Yaml, text: &str) {
    let equal = match yaml {
        Yaml::Hash(hash) => {
            assert_eq!(node.entries().len(), hash.len(), "{node:?}\n{text}");
            for (entry, (key, value)) in node.entries().iter().zip(hash) {
                assert_eq!(Some(entry.key.as_str()), key.as_str(), "{text}");
                same(&entry.node, value, text);
            }
            true
        }
        Yaml::Array(array) => {
            assert_eq!(node.items().len(), array.len(), "{node:?}\n{text}");
            node.items().iter().zip(array).for_each(|(item, value)| same(item, value, text));
            true
        }
        Yaml::String(word) => node.text() == Some(word),
        Yaml::Integer(number) => node.real() == Some(*number as f64) && !quotes(node),
        Yaml::Real(number) => node.real() == number.parse().ok() && !quotes(node),
        Yaml::Boolean(flag) => node.flag() == Some(*flag) && !quotes(node),
        other => is_nothing(other) && node.is_null(),
    };
    assert!(equal, "{node:?} is not {yaml:?} in\n{text}");
}

fn quotes(node: &Node) -> bool {
    matches!(&node.value, Value::Scalar(scalar) if scalar.quoted)
}

/// Every span lies in the text, inside that of its parent, and the span of a bare word covers that word.
#[track_caller]
fn check_spans(node: &Node, text: &str) {
    let under = text.get(node.span.start as usize..node.span.end as usize);
    assert!(under.is_some(), "{:?} of {} bytes", node.span, text.len());
    if let Value::Scalar(scalar) = &node.value
        && !scalar.quoted
        && !scalar.text.contains([' ', '\n'])
    {
        assert_eq!(under, Some(scalar.text.as_str()));
    }
    for entry in node.entries() {
        assert!(text.get(entry.key_span.start as usize..entry.key_span.end as usize).is_some());
        check_spans(&entry.node, text);
    }
    node.items().iter().for_each(|item| check_spans(item, text));
}

#[track_caller]
fn check_yaml(text: &str) {
    let tree = read_yaml(text, 0);
    let expected = YamlLoader::load_from_str(text).unwrap_or_else(|fault| panic!("{fault}\n{text}"));
    assert_eq!(tree.diagnostics, [], "{text}");
    let documents: Vec<&Node> = tree.documents.iter().filter(|node| !node.is_null()).collect();
    assert_eq!(documents.len(), expected.len(), "{text}");
    for (node, yaml) in documents.into_iter().zip(&expected) {
        same(node, yaml, text);
        check_spans(node, text);
    }
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn files_are_read_as_other_readers_read_them(root in shapes(), choices in vec(any::<u8>(), 1..200)) {
        let style = &mut Style::new(choices);
        let mut text = String::new();
        block(&root, style, 0, &mut text);
        check_yaml(&text);
        let mut text = String::from("# remark\n");
        flow(&root, style, false, &mut text);
        check_yaml(&text);
        let mut text = String::new();
        flow(&root, style, true, &mut text);
        let _: serde_json::Value = serde_json::from_str(&text).unwrap();
        check_yaml(&text);
        assert_eq!(bare(&read_json(&text, 0)), bare(&read_yaml(&text, 0)), "{text}");
    }
}

/// A tree without its spans.
fn bare(tree: &Tree) -> String {
    fn show(node: &Node, out: &mut String) {
        match &node.value {
            Value::Scalar(scalar) => out.push_str(&format!("{scalar:?}")),
            Value::List(items) => items.iter().for_each(|item| show(item, out)),
            Value::Map(entries) => entries.iter().for_each(|entry| {
                out.push_str(&entry.key);
                show(&entry.node, out);
            }),
        }
    }
    let mut out = String::new();
    tree.documents.iter().for_each(|node| show(node, &mut out));
    out
}

#[test]
fn corners_of_yaml() {
    for text in [
        "a: 1\nb:\n- 1\n- 2\nc: 3\n",
        "a:\n  - b: 1\n    c: 2\n  -\n    d: 3\n  - - x\n    - y\n  - {e: 4}\n",
        "a: one two\n  three\n\n  four\nb: 'it''s\n  folded'\nc: \"x\\\n  y\"\n",
        "a: |\n  line\n   deeper\n\n  last\n\nb: >-\n  folded\n  text\n\n  new\n    deeper\n  back\nc: |2\n    two\n",
        "base: &base {tp: 2, pp: 4}\nuse:\n  - *base\n  - &n 3\n  - *n\n",
        "---\na: 1\n---\nb: 2\n...\n",
        "%YAML 1.2\n---\n- !!str 1x\n- !tag {a: b}\n",
        "\"quoted key\": 1\n'other': [a, \"b\", 'c', [d]]\nurl: http://x:80/y\ntime: 0-04:00:00\n",
        "a:   \r\n  b: 1\r\n  c:\r\n    - x\r\n",
        "{\n  # JSON-like\n  \"pipe-parallel-size\": 1,\n  \"optimizer\": {\n    \"params\": {\"lr\": 6.0e-4, \"betas\": [0.9, 0.95],}\n  },\n}\n",
        "a: é\nname: 模型\n",
        "empty:\nlast:",
        "- a\n-\n- b",
    ] {
        check_yaml(text);
    }
}

#[test]
fn faults_are_reported_and_the_rest_is_read() {
    #[track_caller]
    fn check(text: &str, path: &str, expected: &str, codes: &[&str]) {
        let tree = read_yaml(text, 0);
        let found = tree.documents[0].at(path).and_then(Node::text);
        assert_eq!(found, Some(expected), "{tree:?}");
        assert_eq!(tree.diagnostics.iter().map(|fault| fault.code.name()).collect::<Vec<_>>(), codes);
    }
    check("a: 1\n   b: 2\nc: 3\n", "c", "3", &["yaml-form"]);
    check("a: 1\na: 2\n", "a", "2", &["repeated-key"]);
    check("a: 1\nb: [1, 2\n", "a", "1", &["yaml-form"]);
    check("a: 1\nb: \"open\nc: 3\n", "c", "3", &["yaml-form"]);
    check("\u{feff}a: 1\n", "a", "1", &[]);
    check("a: *nowhere\nb: 2\n", "b", "2", &["yaml-form"]);
}

#[test]
fn templates_are_read_around() {
    let text = "{{- if .Values.large }}\nlayers: {{ .Values.layers }}\n{{- end }}\nhidden: 4096\n\
        fp16: {enabled: ${FP16:-true}, scale: 0}\n";
    let tree = read_yaml(text, 0);
    let root = &tree.documents[0];
    let word = |path: &str| root.at(path).and_then(Node::text);
    assert_eq!(word("layers"), Some("{{ .Values.layers }}"));
    assert_eq!(word("hidden"), Some("4096"));
    assert_eq!(word("fp16.enabled"), Some("${FP16:-true}"));
    assert_eq!(word("fp16.scale"), Some("0"));
    assert_eq!(tree.diagnostics, []);
}

#[test]
fn people_write_json_like_this() {
    let text = r#"{
      // a template that somebody fills with sed
      "train_batch_size": CONFIG_BATCH_SIZE,
      "zero_optimization": {"stage": ZERO_STAGE, /* later */ "overlap_comm": true,},
      "fp16": {"enabled": ${FP16_ENABLED:-true}, "loss_scale": 0},
      'betas': [0.9, 0.95,],
    }"#;
    let tree = read_json(text, 100);
    let root = &tree.documents[0];
    let word = |path: &str| root.at(path).and_then(Node::text);
    assert_eq!(word("train_batch_size"), Some("CONFIG_BATCH_SIZE"));
    assert_eq!(word("zero-optimization.stage"), Some("ZERO_STAGE"));
    assert_eq!(root.at("zero_optimization.overlap_comm").and_then(Node::flag), Some(true));
    assert_eq!(word("fp16.loss_scale"), Some("0"));
    assert_eq!(root.get("betas").map(|betas| betas.items().len()), Some(2));
    assert_eq!(tree.diagnostics, []);
    let span = root.get("train_batch_size").map(|node| node.span).unwrap_or_default();
    assert_eq!(text.get(span.start as usize - 100..span.end as usize - 100), Some("CONFIG_BATCH_SIZE"));
}

#[test]
fn toml_is_read_as_its_crate_reads_it() {
    fn same(node: &Node, value: &toml::Value) -> bool {
        match value {
            toml::Value::Table(table) => {
                node.entries().len() == table.len()
                    && table.iter().all(|(key, value)| node.get(key).is_some_and(|node| same(node, value)))
            }
            toml::Value::Array(array) => {
                node.items().len() == array.len()
                    && node.items().iter().zip(array).all(|(node, value)| same(node, value))
            }
            toml::Value::String(text) => node.text() == Some(text),
            toml::Value::Integer(number) => node.real() == Some(*number as f64),
            toml::Value::Float(number) => node.real() == Some(*number),
            toml::Value::Boolean(flag) => node.flag() == Some(*flag),
            toml::Value::Datetime(time) => node.text() == Some(&time.to_string()),
        }
    }
    let text = r#"
        # a training job
        title = "job # not a remark"
        [model]
        name = "llama3"   # remark
        flavor = '8B'
        [training]
        seq_len = 8_192
        lr = 3e-4
        steps = 1000
        compile = false
        since = 2024-05-01T10:00:00Z
        [parallelism]
        degrees = [
            1, # one
            2,
        ]
        inline = { a = 1, b = "x, y", c = [true, false] }
        [activation.checkpoint]
        mode = """
selective
more"""
        [[stage]]
        first = 1
        [[stage]]
        first = 2
        [stage.inner]
        x = 3
    "#;
    let tree = read_toml(text, 0);
    assert_eq!(tree.diagnostics, []);
    let expected: toml::Value = toml::from_str(text).unwrap();
    assert!(same(&tree.documents[0], &expected), "{:#?}", tree.documents[0]);
    check_spans(&tree.documents[0], text);
}

/// Texts of every format, to be mutated.
const SEEDS: [&str; 4] = [
    "a: &x {b: [1, 'two', \"thr\\u00e9e\"], c: *x}\nd: |\n  text\n- e\n? f\n<<: *x\n",
    "{\"a\": [1, {\"b\": \"\\ud83d\\ude00\"}], /* x */ c: ${d}, // e\n}",
    "[a.b]\nc = \"\"\"x\"\"\"\n[[d]]\ne = {f = 1, g = [2]}\n'h' = 3\n",
    "---\nkey: >+2\n   é\n...\n!!t &a - - *b",
];
const PIECES: [&str; 29] = [
    "\n", " ", "{", "}", "[", "]", "\"", "'", ":", ": ", "-", "- ", "#", "\\u", "\0", "é", "{{", "}}", "${",
    "|", ">", "&a ", "*a", "=", "\"\"\"", "---\n", "\u{2028}", "\r", "\\",
];

/// Inserts a piece, removes a character or truncates the text somewhere.
fn damage(text: &mut String, (place, kind): (Index, usize)) {
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let at = starts[place.index(starts.len())];
    match kind.checked_sub(PIECES.len()) {
        None => text.insert_str(at, PIECES[kind]),
        Some(0) => text.truncate(at),
        Some(_) => drop(text.drain(at..text[at..].chars().next().map_or(at, |c| at + c.len_utf8()))),
    }
}

proptest! {
    #![proptest_config(config(4_000))]

    #[test]
    fn no_bytes_make_a_reader_panic(
        seed in select(&SEEDS),
        edits in vec((any::<Index>(), 0..PIECES.len() * 2), 1..7),
    ) {
        let mut text = seed.to_owned();
        for edit in edits {
            damage(&mut text, edit);
        }
        for tree in [read_yaml(&text, 0), read_json(&text, 0), read_toml(&text, 0)] {
            for node in &tree.documents {
                let under = text.get(node.span.start as usize..node.span.end as usize);
                assert!(under.is_some(), "{:?} in {text:?}", node.span);
            }
        }
    }
}

#[test]
fn a_megabyte_against_the_readers_ends_soon() {
    let size = 1 << 20;
    let many = |piece: &str| piece.repeat(size / piece.len());
    let bombs: Vec<String> = vec![
        many("["),
        many("{\"a\":"),
        many("{a: {"),
        many("- "),
        many("-\n"),
        many("a: "),
        many("\""),
        many("a\n"),
        many(" "),
        many("\n"),
        many("[a]\n"),
        many("a=1\n"),
        many("[[a.b.c]]\n"),
        many("'x\n"),
        many("a: |\n"),
        many("${"),
        many("{{"),
        many("x: \"\\\n"),
        (0..size / 12).map(|index| format!("key{index}: 1\n")).collect(),
        (0..size / 12).map(|index| format!("[k{index}]\n")).collect(),
        (0..300).map(|depth| format!("{}a:\n", " ".repeat(depth * 10))).collect(),
        (1..64).fold(String::from("a0: &a0 [x, x, x, x, x, x, x, x]\n"), |text, level| {
            let alias = format!("*a{}, ", level - 1).repeat(8);
            text + &format!("a{level}: &a{level} [{alias}]\n")
        }),
        (1..64).fold(String::from("a0: &a0 {k: v}\n"), |text, level| {
            text + &format!("a{level}: &a{level}\n  <<: *a{}\n  k{level}: *a{}\n", level - 1, level - 1)
        }),
    ];
    for (index, bomb) in bombs.iter().enumerate() {
        for read in [read_yaml, read_json, read_toml] {
            let begin = std::time::Instant::now();
            let tree = read(bomb, 0);
            let seconds = begin.elapsed().as_secs_f64();
            // Reading in linear time takes a tenth of a second; anything worse than linear takes minutes.
            assert!(seconds < 15.0, "bomb {index}: {seconds} s");
            assert!(tree.diagnostics.len() <= 20);
        }
    }
}
