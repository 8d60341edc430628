//! `--moe-layer-freq`: a number N (layer i is an MoE layer if i is a multiple of N), or a list expression of 0 and 1
//! such as `([0]*3+[1]*58)`.

use std::cmp::Ordering;

/// The errors of a frequency of MoE layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadFrequency {
    /// Every 0th layer.
    Zero,
    /// Longer than the parser accepts.
    TooLong,
    /// Neither a number nor a list.
    NoList,
    /// A list of fewer layers than the model has.
    Fewer {
        /// Layers that it names.
        named: usize,
        /// Layers of the model.
        layers: u64,
    },
    /// A list of more layers than the model has.
    More {
        /// Layers of the model.
        layers: u64,
    },
}

impl BadFrequency {
    /// The message, for the setting `name`.
    pub(super) fn of(self, name: &str) -> String {
        match self {
            Self::Zero => format!("{name} is 0, and must be at least 1"),
            Self::TooLong => format!("{name} is too long"),
            Self::NoList => format!("{name} is neither a number nor a list of 0 and 1"),
            Self::Fewer { named, layers } => {
                format!("{name} names {named} layers, but the model has {layers}")
            }
            Self::More { layers } => {
                format!("{name} names more layers than the model's {layers}")
            }
        }
    }
}

/// Longest accepted expression, in bytes.
const LONGEST: usize = 1 << 16;

/// Whether each of `layers` layers is an MoE layer.
///
/// # Errors
/// What is wrong with the expression.
pub(super) fn pattern(text: &str, layers: u64) -> Result<Vec<bool>, BadFrequency> {
    let text = text.trim();
    // The limit on layers rejects longer models; 0 here makes any list too long.
    let count = usize::try_from(layers).unwrap_or(0);
    if text.is_empty() {
        // Megatron's own default, 1: every layer.
        return Ok(vec![true; count]);
    }
    if let Ok(every) = text.parse::<usize>() {
        return match every {
            0 => Err(BadFrequency::Zero),
            // Megatron counts from 0: with 2, layers 0, 2, 4 have experts.
            every => Ok((0..count).map(|index| index % every == 0).collect()),
        };
    }
    if text.len() > LONGEST {
        return Err(BadFrequency::TooLong);
    }
    // One element more than there are layers is enough to detect that a list is too long.
    let mut reader = ListParser { rest: text.as_bytes(), most: count.saturating_add(1) };
    let list = reader.sum(0).filter(|_| reader.peek().is_none()).ok_or(BadFrequency::NoList)?;
    match list.len().cmp(&count) {
        Ordering::Equal => Ok(list),
        Ordering::Less => Err(BadFrequency::Fewer { named: list.len(), layers }),
        Ordering::Greater => Err(BadFrequency::More { layers }),
    }
}

/// Sums, products and lists of a Python expression.
struct ListParser<'a> {
    rest: &'a [u8],
    /// Number of elements after which a list is certain to be rejected.
    most: usize,
}

impl ListParser<'_> {
    fn peek(&mut self) -> Option<u8> {
        // Quotes too: the expression passes through shells and YAML, and may keep the quotes of either.
        while let [b' ' | b'\t' | b'\'' | b'"', rest @ ..] = self.rest {
            self.rest = rest;
        }
        self.rest.first().copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        if there {
            self.rest = self.rest.get(1..).unwrap_or_default();
        }
        there
    }

    fn sum(&mut self, depth: u8) -> Option<Vec<bool>> {
        let mut list = self.product(depth)?;
        while self.eat(b'+') {
            list.extend(self.product(depth)?);
            // Truncated after each step: `[1]*99999999` must not be built just to be rejected.
            list.truncate(self.most);
        }
        Some(list)
    }

    fn product(&mut self, depth: u8) -> Option<Vec<bool>> {
        let mut times = None;
        // Python allows the number on either side of the product.
        if self.peek()?.is_ascii_digit() {
            times = Some(self.number()?);
            if !self.eat(b'*') {
                return None;
            }
        }
        let unit = self.unit(depth)?;
        let mut list = repeat(&unit, times.unwrap_or(1), self.most);
        while self.eat(b'*') {
            let times = self.number()?;
            list = repeat(&list, times, self.most);
        }
        Some(list)
    }

    fn unit(&mut self, depth: u8) -> Option<Vec<bool>> {
        /// Maximum nesting.
        const DEEPEST: u8 = 16;
        // The nesting limit prevents a line of parentheses from overflowing the stack.
        if depth < DEEPEST && self.eat(b'(') {
            let list = self.sum(depth + 1)?;
            return self.eat(b')').then_some(list);
        }
        if !self.eat(b'[') {
            return None;
        }
        let mut list = Vec::new();
        while !self.eat(b']') {
            list.push(self.number()? > 0);
            if list.len() > self.most {
                return None;
            }
            // As in Python: elements must be separated by commas.
            if !self.eat(b',') && self.peek() != Some(b']') {
                return None;
            }
        }
        Some(list)
    }

    fn number(&mut self) -> Option<usize> {
        self.peek();
        let mut value = None;
        // Digits separated by a space are two numbers.
        while let [digit @ b'0'..=b'9', rest @ ..] = self.rest {
            value =
                // Saturating: a factor of any length means "too many".
                Some(value.unwrap_or(0_usize).saturating_mul(10).saturating_add(usize::from(digit - b'0')));
            self.rest = rest;
        }
        value
    }
}

fn repeat(list: &[bool], times: usize, most: usize) -> Vec<bool> {
    let mut all = Vec::new();
    // An empty list times any factor is empty, however large.
    if !list.is_empty() {
        for _ in 0..times.min(most) {
            all.extend_from_slice(list);
            if all.len() >= most {
                break;
            }
        }
    }
    all.truncate(most);
    all
}

#[cfg(test)]
mod tests {
    use super::pattern;

    #[track_caller]
    fn check(text: &str, layers: u64, expected: Result<&str, &str>) {
        let shown = |list: Vec<bool>| list.iter().map(|moe| if *moe { '1' } else { '0' }).collect::<String>();
        let found = pattern(text, layers).map(shown).map_err(|why| why.of("moe_layer_freq"));
        assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned));
    }

    #[test]
    fn frequencies_are_numbers_or_lists() {
        check("1", 3, Ok("111"));
        check("2", 5, Ok("10101"));
        check("([0]*1+[1]*4)", 5, Ok("01111"));
        check("[0,1,1]", 3, Ok("011"));
        check("[0, 1, 1,]", 3, Ok("011"));
        // Not valid Python, and not a list for one layer.
        check("[0 1 1]", 1, Err("moe_layer_freq is neither a number nor a list of 0 and 1"));
        check("[1 1,0]", 2, Err("moe_layer_freq is neither a number nor a list of 0 and 1"));
        check("([0] + [1]*2)*2", 6, Ok("011011"));
        check("0", 3, Err("moe_layer_freq is 0, and must be at least 1"));
        check("[1]*4", 5, Err("moe_layer_freq names 4 layers, but the model has 5"));
        check(
            "[1]*99999999999999999999999999",
            5,
            Err("moe_layer_freq names more layers than the model's 5"),
        );
        check("((((", 5, Err("moe_layer_freq is neither a number nor a list of 0 and 1"));
        check(&"(".repeat(1000), 5, Err("moe_layer_freq is neither a number nor a list of 0 and 1"));
    }
}
