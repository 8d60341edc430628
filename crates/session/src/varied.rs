//! How far each dimension of a search is varied, as the user states it: fixed, open, or between two sizes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use shardscope_search::{Choices, Dimension, Values};

/// How far one dimension is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Extent {
    /// As in the plan.
    Fixed,
    /// Whatever the software supports.
    Open,
    /// One size.
    #[serde(untagged)]
    Exactly(u64),
    /// Sizes between two, both included.
    #[serde(untagged)]
    Between(u64, u64),
}

/// The user's choices for a search's dimensions; others are varied as in [`Choices::default`]. As JSON an object by
/// the dimensions' names, for example `{"tp": [1, 8], "mbs": "fixed", "precision": "open"}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, Extent>", into = "BTreeMap<String, Extent>")]
pub struct Varied(BTreeMap<Dimension, Extent>);

impl Varied {
    /// The same with `extent` for `dimension`.
    ///
    /// # Errors
    /// Why the dimension cannot be varied this way.
    pub fn with(mut self, dimension: Dimension, extent: Extent) -> Result<Self, String> {
        let name = dimension.name();
        let (least, most) = match extent {
            Extent::Fixed | Extent::Open => (1, 1),
            Extent::Exactly(size) => (size, size),
            Extent::Between(least, most) => (least, most),
        };
        if !dimension.has_sizes() && matches!(extent, Extent::Exactly(_) | Extent::Between(..)) {
            return Err(format!("{name} has no sizes: it is fixed or open"));
        }
        if least == 0 || least > most {
            return Err(format!("no size of {name} lies between {least} and {most}"));
        }
        self.0.insert(dimension, extent);
        Ok(self)
    }

    /// How far `dimension` is varied.
    #[must_use]
    pub fn get(&self, dimension: Dimension) -> Extent {
        self.0.get(&dimension).copied().unwrap_or_else(|| Self::usual(dimension))
    }

    /// How far `dimension` is varied by default.
    #[must_use]
    pub fn usual(dimension: Dimension) -> Extent {
        match Choices::default().get(dimension) {
            Values::Stated => Extent::Fixed,
            Values::Open => Extent::Open,
            Values::Between(least, most) => Extent::Between(*least, *most),
        }
    }

    /// How many dimensions are not varied as by default.
    #[must_use]
    pub fn stated(&self) -> usize {
        self.0.iter().filter(|(dimension, extent)| Self::usual(**dimension) != **extent).count()
    }

    /// For a search.
    #[must_use]
    pub fn choices(&self) -> Choices {
        let values = |extent: Extent| match extent {
            Extent::Fixed => Values::Stated,
            Extent::Open => Values::Open,
            Extent::Exactly(size) => Values::Between(size, size),
            Extent::Between(least, most) => Values::Between(least, most),
        };
        let each = self.0.iter();
        each.fold(Choices::default(), |choices, (dimension, extent)| {
            choices.with(*dimension, values(*extent))
        })
    }
}

impl TryFrom<BTreeMap<String, Extent>> for Varied {
    type Error = String;

    fn try_from(stated: BTreeMap<String, Extent>) -> Result<Self, String> {
        stated.into_iter().try_fold(Self::default(), |varied, (name, extent)| {
            let dimension = Dimension::named(&name).ok_or_else(|| {
                let names: Vec<&str> = Dimension::NAMED.iter().map(|(_, name)| *name).collect();
                format!("a search has no dimension {name}; it has {}", names.join(", "))
            })?;
            varied.with(dimension, extent)
        })
    }
}

impl From<Varied> for BTreeMap<String, Extent> {
    fn from(varied: Varied) -> Self {
        varied.0.into_iter().map(|(dimension, extent)| (dimension.name().to_owned(), extent)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reader_states_is_read_and_written_alike() {
        let text = r#"{"mbs":"fixed","precision":"open","tp":[1,8],"cp":2}"#;
        let varied: Varied = serde_json::from_str(text).expect("dimensions");
        let choices = varied.choices();
        assert_eq!(choices.get(Dimension::Tensor), &Values::Between(1, 8));
        assert_eq!(choices.get(Dimension::Context), &Values::Between(2, 2));
        assert_eq!(choices.get(Dimension::MicroBatch), &Values::Stated);
        assert_eq!(choices.get(Dimension::Precision), &Values::Open);
        // What is not stated has its default.
        assert_eq!(choices.get(Dimension::Pipeline), Choices::default().get(Dimension::Pipeline));
        assert_eq!(varied.get(Dimension::Instances), Extent::Fixed);
        assert_eq!(varied.stated(), 4);
        let written = serde_json::to_string(&varied).expect("text");
        assert_eq!(serde_json::from_str::<Varied>(&written).expect("dimensions"), varied);
        assert_eq!(Varied::default().choices(), Choices::default());
    }

    #[test]
    fn what_cannot_be_varied_so_is_refused() {
        let said = |text: &str| serde_json::from_str::<Varied>(text).expect_err(text).to_string();
        assert!(said(r#"{"dp": 2}"#).contains("no dimension dp; it has tp, pp"));
        assert!(said(r#"{"recompute": [1, 2]}"#).contains("recompute has no sizes"));
        assert!(said(r#"{"tp": [8, 1]}"#).contains("no size of tp lies between 8 and 1"));
        assert!(said(r#"{"tp": 0}"#).contains("between 0 and 0"));
        assert!(!said(r#"{"tp": "maybe"}"#).is_empty());
    }
}
