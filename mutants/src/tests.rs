//! Switches in a small source, and which mutant an error in it belongs to.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use crate::list::{Genre, Mutant, Place, left_out};
use crate::regions::Regions;
use crate::report::{Found, Outcome};
use crate::switches::{Switched, place};

const SOURCE: &str = "\
fn sum(a: u64, b: u64) -> u64 {
    a + b
}
const fn twice(a: u64) -> u64 {
    2 * a
}
const FOUR: u64 = 2 * 2;
fn chosen(a: Option<u64>) -> u64 {
    match a {
        Some(a) if a > 7 => a,
        None => 1,
        _ => 0,
    }
}
fn both(a: bool, b: bool) -> bool {
    a && b
}
fn all() -> impl Iterator<Item = u64> {
    0..9
}
";

fn mutant(number: u32, genre: Genre, start: Place, replacement: &str) -> Mutant {
    let (file, name) = ("a.rs".to_owned(), number.to_string());
    Mutant { number, genre, replacement: replacement.to_owned(), file, start, name }
}

fn switched(mutants: &[Mutant], constant: &[&str]) -> Switched {
    let constant = constant.iter().map(|name| (*name).to_owned()).collect();
    place(mutants, &BTreeSet::new(), &constant, |_| Ok(SOURCE.to_owned())).unwrap()
}

/// The whole source on one line.
fn text(mutants: &[Mutant]) -> String {
    switched(mutants, &[]).files["a.rs"].split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn each_kind_of_mutant_stands_behind_a_switch() {
    let plus = [
        mutant(1, Genre::FnValue, (2, 5), "0"),
        mutant(2, Genre::BinaryOperator, (2, 7), "-"),
        mutant(3, Genre::BinaryOperator, (2, 7), "*"),
    ];
    let found = text(&plus);
    assert!(found.contains("if ::mutant_switch::on(1u32) { return 0; }"), "{found}");
    let chain = "(match ((a), (b)) { (__l, __r) => if ::mutant_switch::on(3u32) { __l * __r } else { \
                 if ::mutant_switch::on(2u32) { __l - __r } else { __l + __r } } })";
    // Independent of how the printer places braces and commas.
    let bare = |text: &str| text.replace([' ', ',', '{', '}'], "");
    assert!(bare(&found).contains(&bare(chain)), "{found}");

    let guards = [
        mutant(4, Genre::MatchArm, (11, 9), ""),
        mutant(5, Genre::MatchArmGuard, (10, 20), "true"),
        mutant(6, Genre::MatchArmGuard, (10, 20), "false"),
    ];
    let found = text(&guards);
    assert!(found.contains("None if !::mutant_switch::on(4u32) => 1"), "{found}");
    assert!(
        found.contains("(!::mutant_switch::on(6u32) && ((::mutant_switch::on(5u32) || (a > 7))))"),
        "{found}"
    );

    let found = text(&[mutant(7, Genre::BinaryOperator, (16, 7), "||")]);
    assert!(
        found.contains("let __l: bool = a; if __l == ::mutant_switch::on(7u32) { __l } else { b }"),
        "{found}"
    );

    let found = text(&[mutant(8, Genre::FnValue, (19, 5), "::std::iter::empty()")]);
    assert!(found.contains("(0..9) .take(if __on { 0 } else { usize::MAX })"), "{found}");
}

#[test]
fn constants_have_none_and_constant_functions_are_none_unless_a_constant_calls_them() {
    let twice =
        [mutant(1, Genre::BinaryOperator, (5, 7), "+"), mutant(2, Genre::BinaryOperator, (7, 21), "+")];
    let free = switched(&twice, &[]);
    assert_eq!(free.placed, BTreeSet::from([1]));
    assert!(!free.files["a.rs"].contains("const fn"));
    let called = switched(&twice, &["twice"]);
    assert!(called.placed.is_empty() && called.files["a.rs"].contains("const fn"));
}

#[test]
fn an_error_belongs_to_the_replacement_it_is_in_or_to_the_least_switch_around_it() {
    let mutants =
        [mutant(1, Genre::BinaryOperator, (2, 7), "-"), mutant(2, Genre::BinaryOperator, (2, 7), "*")];
    let text = switched(&mutants, &[]).files["a.rs"].clone();
    let regions = Regions::of(&text).unwrap();
    let of = |wanted: &str| {
        let (line, found) = text.lines().enumerate().find(|(_, line)| line.contains(wanted)).unwrap();
        regions.blamed((line + 1, found.find(wanted).unwrap() + 1))
    };
    assert_eq!(of("__l - __r"), (BTreeSet::from([1]), true));
    assert_eq!(of("__l * __r"), (BTreeSet::from([2]), true));
    // In neither: the smallest switch around it does not compile.
    assert_eq!(of("__l + __r"), (BTreeSet::from([1]), false));
    assert_eq!(of("const FOUR").0, BTreeSet::new());
}

#[test]
fn what_programs_answer_is_caught_or_not() {
    for (answer, found) in [
        ("moved\tplan 3 memory", Found::Caught),
        ("panicked\tplan 3 memory", Found::Caught),
        ("failed\ttraffic::all", Found::Caught),
        ("crashed\tpinned plans", Found::Caught),
        ("endless\tplan 3 time", Found::Endless),
        ("survived\t7 sections of plans", Found::Survived),
        ("unmet\t", Found::Unmet),
    ] {
        assert_eq!(Outcome::read(answer).found, found, "{answer}");
    }
}

#[test]
fn fields_are_left_out_as_the_configuration_says() {
    let left_out = left_out("exclude_re = [\n  \"one.rs.*field a \",\n]\n").unwrap();
    assert!(left_out.is_match("src/one.rs:1:2: delete field a from struct A expression in new"));
    assert!(!left_out.is_match("src/two.rs:1:2: delete field a from struct A expression in new"));
}
