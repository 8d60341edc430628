//! One number of two plans, with its difference.

use shardscope_units::{Bytes, Quantity, Seconds, decimal, gib, grouped, percent, rounded, seconds, size};

/// A group of related numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// What they are about.
    pub title: &'static str,
    /// The numbers.
    pub lines: Vec<ComparedNumber>,
}

/// One number of both plans.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedNumber {
    /// Label of the figure.
    pub label: String,
    /// The pinned plan's; `None` if it has no such number.
    pub before: Option<Amount>,
    /// The current plan's; `None` if it has no such number.
    pub after: Option<Amount>,
    /// Whether less is better; `None` if neither direction is.
    pub less_is_better: Option<bool>,
}

/// A number with its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// Memory, shown in GiB.
    Memory(Bytes),
    /// Messages, shown in a suitable unit.
    Sent(Bytes),
    /// A count.
    Count(u64),
    /// A duration.
    Time(Seconds),
    /// A rate per second, rounded.
    PerSecond(f64),
    /// A share, 0 to 1.
    Share(f64),
}

/// A part that changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// Its place: `activations › dense layer › mlp › input`.
    pub path: String,
    /// In the pinned plan.
    pub before: Amount,
    /// In the current plan.
    pub after: Amount,
}

impl Amount {
    /// The bare number, for differences and ordering.
    #[must_use]
    pub fn number(self) -> f64 {
        match self {
            Self::Memory(bytes) | Self::Sent(bytes) => bytes.number(),
            #[allow(clippy::cast_precision_loss)]
            Self::Count(count) => count as f64,
            Self::Time(time) => time.get(),
            Self::PerSecond(value) | Self::Share(value) => value,
        }
    }

    /// The number's unit: `byte`, `count`, `second`, `per second`, or `share` from 0 to 1.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Memory(_) | Self::Sent(_) => "byte",
            Self::Count(_) => "count",
            Self::Time(_) => "second",
            Self::PerSecond(_) => "per second",
            Self::Share(_) => "share",
        }
    }

    /// With its unit.
    #[must_use]
    pub fn shown(self) -> String {
        match self {
            Self::Memory(bytes) => gib(bytes),
            Self::Sent(bytes) => size(bytes),
            Self::Count(count) => grouped(count),
            Self::Time(time) => seconds(time),
            Self::PerSecond(value) => rounded(value),
            Self::Share(value) => percent(value),
        }
    }

    /// `self` minus `before`, with a sign and the unit.
    #[must_use]
    pub fn difference(self, before: Self) -> String {
        let change = self.number() - before.number();
        // U+2212, as wide as the plus sign.
        let sign = if change < 0.0 { "−" } else { "+" };
        let magnitude = match (self, before) {
            (Self::Memory(a), Self::Memory(b)) => Self::Memory(apart(a, b)),
            (Self::Sent(a), Self::Sent(b)) => Self::Sent(apart(a, b)),
            (Self::Count(a), Self::Count(b)) => Self::Count(a.abs_diff(b)),
            (Self::Time(a), Self::Time(b)) => Self::Time(Seconds::new((a.get() - b.get()).abs())),
            (Self::Share(a), Self::Share(b)) => {
                // Between shares the difference is in points.
                return format!("{sign}{} points", decimal((a - b).abs() * 100.0, 1));
            }
            (Self::PerSecond(a), Self::PerSecond(b)) => Self::PerSecond((a - b).abs()),
            // Amounts of different kinds are never on one line.
            _ => return String::new(),
        };
        format!("{sign}{}", magnitude.shown())
    }
}

fn apart(a: Bytes, b: Bytes) -> Bytes {
    Bytes::new(a.get().abs_diff(b.get()))
}

impl ComparedNumber {
    /// The change in words: `+1.20 GiB, +4.3 %`; `None` if nothing changed or one side has no such number.
    #[must_use]
    pub fn change(&self) -> Option<String> {
        let (before, after) = (self.before?, self.after?);
        if before == after {
            return None;
        }
        let difference = after.difference(before);
        let base = before.number();
        // A change from zero has no percentage, and a percentage of a share would be misread.
        if matches!(after, Amount::Share(_)) || base == 0.0 {
            return Some(difference);
        }
        let share = (after.number() - base) / base;
        let sign = if share < 0.0 { "−" } else { "+" };
        Some(format!("{difference}, {sign}{}", percent(share.abs())))
    }

    /// Whether the change is for the better; `None` if nothing changed or neither direction is better.
    #[must_use]
    pub fn is_better(&self) -> Option<bool> {
        let (before, after) = (self.before?.number(), self.after?.number());
        (before != after).then_some((after < before) == self.less_is_better?)
    }
}
