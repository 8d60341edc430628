use super::{Outcome, Value, follow};
use crate::syntax::{Node, node};
use std::time::{Duration, Instant};

fn data(name: &str) -> String {
    let path = format!("{}/../../tests/data/launchers/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|fault| panic!("{path}: {fault}"))
}

#[test]
fn launchers_hand_on_what_their_own_code_does() {
    let recorded = data("recorded.tsv");
    for line in recorded.lines() {
        let [file, model, variables, options] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let text = data(file);
        let Outcome::Starts(started) = follow(&text, &[]) else { panic!("{file} starts nothing") };
        let given =
            |name: &str| started.iter().find(|(keyword, _)| keyword == name).map(|(_, value)| value.clone());
        let words = given("train_args").unwrap_or(Value::None).written();
        assert_eq!(words.split_whitespace().collect::<Vec<_>>().join(" "), options, "{file}");
        // That of `get_megatron_model_type` is another file's.
        match given("megatron_model_type") {
            Some(Value::Open(name)) => assert_eq!(name, "get_megatron_model_type()"),
            other => assert_eq!(other, Some(Value::text(model)), "{file}"),
        }
        let held = match given("extra_env_vars") {
            Some(Value::Map(held)) => held,
            None => Vec::new(),
            other => panic!("{file}: {other:?}"),
        };
        let mut pairs: Vec<String> = held
            .iter()
            .map(|(name, value)| format!("\"{}\": \"{}\"", name.written(), value.written()))
            .collect();
        pairs.sort();
        assert_eq!(format!("{{{}}}", pairs.join(", ")), variables, "{file}");
    }
    assert_eq!(recorded.lines().count(), 8);
}

#[test]
fn hostile_programs_end_soon() {
    /// Far more than an optimised build takes: tests run unoptimised.
    const LONG: Duration = Duration::from_secs(3);
    let call = "    execute_train(train_args=x)\n";
    let run = |body: &str| format!("def run():\n    x = 'abc'\n{body}{call}");
    let texts = [
        run(&"    x = x + x\n".repeat(5_000)),
        run(&"    x = [x, x]\n".repeat(5_000)),
        run(&"    x = {1: x, 2: x}\n".repeat(5_000)),
        run(&format!("    x = {}1\n", "not ".repeat(100_000))),
        run(&format!("    x = {}1{}\n", "f(".repeat(50_000), ")".repeat(50_000))),
        run(&format!("    x = f'{}'\n", "{x}".repeat(100_000))),
        format!(
            "def run(x: A):\n    run(x)\n    run(x)\n{call}class A:\n    def __post_init__(self):\n        run(A())\n"
        ),
        format!("class A(A):\n    a: int = 1\ndef run(a: A):\n{call}"),
        (0..1_000).map(|depth| format!("{}if 1:\n", " ".repeat(depth))).collect::<String>() + call,
    ];
    for text in texts {
        let start = Instant::now();
        let _ = follow(&text, &[]);
        let took = start.elapsed();
        assert!(took < LONG, "{took:?} for {}", text.get(..60).unwrap_or(""));
    }
}

#[test]
fn texts_with_values_and_conditions_are_read() {
    let text = |text: &str| Node::Text(text.to_owned());
    let name = |name: &str| Node::Name(name.to_owned());
    assert_eq!(
        node("\"a \" 'b\\n' # why\n r'\\d'"),
        Node::Joined(vec![text("a "), text("b\n"), text("\\d")])
    );
    assert_eq!(
        node("f\"x {{ {args.a} \""),
        Node::Joined(vec![text("x { "), Node::Attribute(Box::new(name("args")), "a".to_owned()), text(" ")])
    );
    assert_eq!(
        node("f\"{'--a ' if not x else ''}\""),
        Node::Joined(vec![
            text(""),
            Node::Either(Box::new([Node::Not(Box::new(name("x"))), text("--a "), text("")])),
            text("")
        ])
    );
    assert_eq!(
        node("a or b == 2"),
        Node::Binary(
            "or",
            Box::new(name("a")),
            Box::new(Node::Binary("==", Box::new(name("b")), Box::new(Node::Whole(2))))
        )
    );
    assert_eq!(node("(1,)"), Node::List(vec![Node::Whole(1)]));
    for hostile in
        ["((((((", "f\"{", "\"", "'''", "{**", "x[", "a if b", "not ", "f'{{{'", "é[\"ü\"", "a.b.c(d"]
    {
        let _ = node(hostile);
    }
    let _ = node(&"(".repeat(100_000));
    let _ = node(&"not ".repeat(100_000));
    let _ = node(&"-".repeat(100_000));
}

#[test]
fn what_comes_behind_the_start_changes_nothing_of_it() {
    let text = "def run():\n    x = '--a'\n    execute_train(train_args=x)\n    if rate():\n        return\n    raise Ended\n";
    let Outcome::Starts(started) = follow(text, &[]) else { panic!("it starts") };
    assert_eq!(started, [("train_args".to_owned(), Value::text("--a"))]);
}
