//! Evaluates a formula's expression, so that tests can compare it with the number it explains.

/// The value of `expression`, with integer symbols looked up by `value`.
#[track_caller]
pub(crate) fn evaluate(expression: &str, value: &dyn Fn(&str) -> Option<u64>) -> f64 {
    evaluate_real(expression, &|name| value(name).map(|value| value as f64))
}

/// The value of `expression`, with symbols looked up by `value`.
#[track_caller]
pub(crate) fn evaluate_real(expression: &str, value: &dyn Fn(&str) -> Option<f64>) -> f64 {
    let mut reader = Reader { rest: expression, value };
    let result = reader.sum();
    assert!(reader.rest.trim().is_empty(), "`{}` is left of `{expression}`", reader.rest);
    result
}

struct Reader<'a> {
    rest: &'a str,
    value: &'a dyn Fn(&str) -> Option<f64>,
}

impl Reader<'_> {
    fn takes(&mut self, sign: char) -> bool {
        let rest = self.rest.trim_start();
        let found = rest.strip_prefix(sign);
        self.rest = found.unwrap_or(rest);
        found.is_some()
    }

    fn sum(&mut self) -> f64 {
        let mut sum = self.product();
        loop {
            if self.takes('+') {
                sum += self.product();
            } else if self.takes('-') {
                sum -= self.product();
            } else {
                return sum;
            }
        }
    }

    fn product(&mut self) -> f64 {
        let mut product = self.factor();
        loop {
            if self.takes('·') {
                product *= self.factor();
            } else if self.takes('/') {
                product /= self.factor();
            } else {
                return product;
            }
        }
    }

    #[track_caller]
    fn factor(&mut self) -> f64 {
        if self.takes('(') {
            let sum = self.sum();
            assert!(self.takes(')'), "an open bracket before `{}`", self.rest);
            return sum;
        }
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        if let Ok(number) = word.parse::<f64>() {
            return number;
        }
        (self.value)(word).unwrap_or_else(|| panic!("no symbol `{word}`"))
    }
}

#[test]
fn reads_products_before_sums() {
    let value = |name: &str| if name == "n" { Some(4) } else { None };
    assert!((evaluate("2·n·(3 + 1) - n/2", &value) - 30.0).abs() < 1e-9);
}
