//! How expressions are read.

use super::{Expression, Relation, expression};
use Expression::{Call, List, Name, Number, Text, Unknown};

#[test]
fn literals_names_and_calls_are_read_and_the_rest_is_unknown() {
    let text = |text: &str| Text(text.to_owned());
    let number = |text: &str| Number(text.to_owned());
    let cases = [
        ("\"bf16\"", text("bf16")),
        ("'a' \"b\"", text("ab")),
        ("8 * 2_048", number("16384")),
        ("1 + 2 * 3 ** 2", number("19")),
        ("2**21 // 2", number("1048576")),
        ("3e-4", number("3e-4")),
        ("-1", number("-1")),
        ("torch.bfloat16", Name("torch.bfloat16".to_owned())),
        ("[1, 'x',]", List(vec![number("1"), text("x")])),
        ("(2)", number("2")),
        (
            "AutoBridge.from_hf_pretrained(\"Qwen/Qwen2-0.5B\").to_megatron_provider(load_weights=False)",
            Call("AutoBridge.from_hf_pretrained".to_owned(), vec![(None, text("Qwen/Qwen2-0.5B"))]),
        ),
        (
            "FullAC.Config(x = Y(), # why\n z=None)",
            Call(
                "FullAC.Config".to_owned(),
                vec![
                    (Some("x".to_owned()), Call("Y".to_owned(), Vec::new())),
                    (Some("z".to_owned()), Name("None".to_owned())),
                ],
            ),
        ),
        ("f\"{x}\"", Unknown),
        ("{'a', 1}", Unknown),
        ("{'a': 1, **b}", Unknown),
        ("[x for x in y]", List(vec![Unknown])),
        ("a < b < c", Unknown),
        (
            "f(y for y in z, k=2)",
            Call("f".to_owned(), vec![(None, Unknown), (Some("k".to_owned()), number("2"))]),
        ),
        ("(((((", List(Vec::new())),
        ("", Unknown),
    ];
    for (written, expected) in cases {
        assert_eq!(expression(written), expected, "{written}");
    }
}

#[test]
fn conditions_and_choices_bind_as_pythons_do() {
    let name = |text: &str| Box::new(Name(text.to_owned()));
    let compared = |left: &str, relation, right: Expression| {
        Box::new(Expression::Compared(name(left), relation, Box::new(right)))
    };
    let choice = |condition: Expression, then: Expression, otherwise: Expression| {
        Expression::Choice(Box::new([condition, then, otherwise]))
    };
    let cases = [
        (
            "(a.x if b else (c if not d else e))",
            choice(*name("b"), *name("a.x"), choice(Expression::Not(name("d")), *name("c"), *name("e"))),
        ),
        (
            "a == 'x' and not b in [1] or c",
            Expression::Computed(
                Box::new(Expression::Both(
                    compared("a", Relation::Equal, Text("x".to_owned())),
                    Box::new(Expression::Not(compared(
                        "b",
                        Relation::In,
                        List(vec![Number("1".to_owned())]),
                    ))),
                )),
                "or",
                name("c"),
            ),
        ),
        (
            "a is not None and b not in (4, 8)",
            Expression::Both(
                compared("a", Relation::IsNot, *name("None")),
                compared("b", Relation::NotIn, List(vec![Number("4".to_owned()), Number("8".to_owned())])),
            ),
        ),
        ("iffy or order", Expression::Computed(name("iffy"), "or", name("order"))),
        ("a >= 2", *compared("a", Relation::GreaterOrEqual, Number("2".to_owned()))),
        ("{'r': 16, \"t\": a}['r']", Unknown),
        (
            "{'r': 16, \"t\": a}",
            Expression::Dictionary(vec![
                (Text("r".to_owned()), Number("16".to_owned())),
                (Text("t".to_owned()), *name("a")),
            ]),
        ),
        (
            "cfg['a'][0]",
            Expression::Item(
                Box::new(Expression::Item(name("cfg"), Box::new(Text("a".to_owned())))),
                Box::new(Number("0".to_owned())),
            ),
        ),
    ];
    for (written, expected) in cases {
        assert_eq!(expression(written), expected, "{written}");
    }
    // Deep ones end without a value.
    for deep in ["not ".repeat(40) + "a", "a if b else ".repeat(40) + "c", "{'a': ".repeat(40)] {
        assert!(!matches!(expression(&deep), Name(_)), "{deep}");
    }
}
