//! What reading a file of the run's own tools came to, as a worker tells it.

use serde::{Deserialize, Serialize};
use shardscope_measured::{MOST_BYTES, Measured, Unread, read};
use shardscope_units::{Bytes, Quantity};

/// Outcome of reading a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
// A single text: the page's program is lighter without a reader of JSON for every figure.
#[serde(from = "String", into = "String")]
pub enum Measurement {
    /// Its figures, by tool.
    Found(Vec<Measured>),
    /// It is no output of a tool that is read here.
    Nothing,
    /// It is not read, and why.
    Refused(String),
}

impl Measurement {
    /// The refusal of a file of `size` bytes, if it is not even to be loaded.
    #[must_use]
    pub fn too_large(size: f64) -> Option<Self> {
        (size > Bytes::new(MOST_BYTES as u64).number()).then(|| Self::Refused(Unread::TooLarge.to_string()))
    }

    /// Reads `bytes`.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        match read(bytes) {
            Ok(found) => Self::Found(found),
            Err(Unread::Nothing) => Self::Nothing,
            Err(why) => Self::Refused(why.to_string()),
        }
    }
}

/// Begins the text of a refusal; figures begin with a digit.
const REFUSED: &str = "!";

impl From<Measurement> for String {
    fn from(one: Measurement) -> Self {
        match one {
            Measurement::Found(found) => found.iter().map(Measured::written).collect::<Vec<_>>().join("\n"),
            Measurement::Nothing => Self::new(),
            Measurement::Refused(why) => REFUSED.to_owned() + &why,
        }
    }
}

impl From<String> for Measurement {
    fn from(text: String) -> Self {
        if let Some(why) = text.strip_prefix(REFUSED) {
            return Self::Refused(why.to_owned());
        }
        let found: Vec<Measured> = text.split('\n').filter_map(Measured::parse).collect();
        if found.is_empty() { Self::Nothing } else { Self::Found(found) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beside::Progress;

    #[test]
    fn what_a_worker_read_comes_back() {
        let told =
            |bytes: &[u8]| Progress::read(&Progress::Measured(Measurement::new(bytes)).written()).unwrap();
        let text = b"{'train_runtime': 44.055, 'train_steps_per_second': 6.81}";
        assert_eq!(told(text), Progress::Measured(Measurement::Found(read(text).unwrap())));
        assert_eq!(Measurement::too_large(536_870_912.0), None);
        assert!(matches!(Measurement::too_large(536_870_913.0), Some(Measurement::Refused(_))));
        assert_eq!(told(b"a letter"), Progress::Measured(Measurement::Nothing));
        let Progress::Measured(Measurement::Refused(why)) = told(b"\x80\x02)R.") else { panic!() };
        assert!(why.contains("REDUCE would run arbitrary code"), "{why}");
    }
}
