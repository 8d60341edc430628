//! How many tests passed and failed, from the closing lines of cargo's and Node's test runners.
use std::collections::BTreeSet;

/// Totals over every line seen.
#[derive(Debug, Default)]
pub(super) struct Count {
    passed: u64,
    failed: u64,
    not_checked: BTreeSet<String>,
}

impl Count {
    /// Takes in one line of output.
    pub(super) fn line(&mut self, line: &str) {
        if let Some(closing) = line.strip_prefix("test result:") {
            let words: Vec<&str> = closing.split_whitespace().collect();
            for pair in words.windows(2) {
                match (pair[0].parse::<u64>(), pair[1]) {
                    (Ok(number), "passed;") => self.passed += number,
                    (Ok(number), "failed;") => self.failed += number,
                    _ => {}
                }
            }
        }
        // Node's: `# pass 12`, or with its other reporter `ℹ pass 12`
        if let Some(closing) = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ ")) {
            match closing.split_once(' ').map(|(word, number)| (word, number.parse::<u64>())) {
                Some(("pass", Ok(number))) => self.passed += number,
                Some(("fail", Ok(number))) => self.failed += number,
                _ => {}
            }
        }
        // Python's: `Ran 14 tests in 8.8s`, then `OK (skipped=3)` or `FAILED (failures=1, errors=2)`
        if let Some(ran) =
            line.strip_prefix("Ran ").and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok())
        {
            self.passed += ran;
        }
        if let Some(closing) = line.strip_prefix("FAILED (").or_else(|| line.strip_prefix("OK (")) {
            for pair in closing.trim_end_matches(')').split(", ") {
                let pair = pair.split_once('=').map(|(word, number)| (word, number.parse::<u64>()));
                let Some((word @ ("failures" | "errors" | "skipped"), Ok(number))) = pair else { continue };
                // They are included in those that ran, which were counted as passed.
                self.passed = self.passed.saturating_sub(number);
                if word != "skipped" {
                    self.failed += number;
                }
            }
        }
        // Runners indent what tests print.
        if let Some(start) = line.find("NOT CHECKED: ") {
            self.not_checked.insert(line[start..].to_owned());
        }
    }

    /// Adds those of another phase.
    pub(super) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.not_checked.extend(other.not_checked);
    }

    pub(super) fn passed(&self) -> u64 {
        self.passed
    }

    pub(super) fn failed(&self) -> u64 {
        self.failed
    }

    /// What the tests report that they could not check.
    pub(super) fn not_checked(&self) -> impl Iterator<Item = &str> {
        self.not_checked.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_of_both_runners_are_added_up() {
        let mut count = Count::default();
        for line in [
            "running 3 tests",
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "# pass 5",
            "ℹ fail 1",
            "# pass the salt",
            "Ran 14 tests in 8.789s",
            "FAILED (failures=1, errors=2)",
            "Ran 4 tests in 0.1s",
            "OK (skipped=3)",
            "  NOT CHECKED: mkdocs",
            "  NOT CHECKED: mkdocs",
        ] {
            count.line(line);
        }
        assert_eq!((count.passed(), count.failed()), (30, 6));
        assert_eq!(count.not_checked().collect::<Vec<_>>(), ["NOT CHECKED: mkdocs"]);
    }
}
