//! Every option of a framework is read or classified, and every row of the tables has one meaning.

use super::{Changes, MEGATRON, Row, TRAINERS, at_first, frameworks, stated};

#[test]
fn every_row_has_a_class_and_no_name_two_of_them() {
    let mut rows = 0;
    for framework in frameworks() {
        for (name, same) in &framework.rows {
            let mut paths: Vec<&str> = same.iter().map(|row| row.path.as_str()).collect();
            paths.sort_unstable();
            paths.dedup();
            assert_eq!(paths.len(), same.len(), "{} has {name} twice", framework.reader);
            rows += same.len();
        }
        rows += framework.beginnings.len();
        for other in &framework.others {
            assert!(frameworks().iter().any(|framework| framework.reader == *other), "{other}");
        }
        let mut whole = framework.rows.values().flatten().filter(|_| framework.whole);
        assert!(whole.all(|row| row.path == at_first(&row.path)), "{}", framework.reader);
    }
    // What else such a program's options mean is covered by its own stop.
    for framework in frameworks().iter().filter(|framework| framework.is_foreign) {
        for sign in &framework.signs {
            let stops = |row: &Row| matches!(row.changes, Changes::Program(..)) && row.harmless.is_empty();
            assert!(framework.row(sign).is_some_and(stops), "{sign}");
        }
    }
    for table in [&MEGATRON, &TRAINERS] {
        for line in table.text().lines().filter(|line| line.starts_with('[')) {
            let head = line.strip_prefix('[').and_then(|line| line.strip_suffix(']'));
            assert!(head.and_then(stated).is_some(), "{line}");
        }
    }
    assert!(rows > 2_000, "{rows}");
}
