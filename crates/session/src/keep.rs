//! The user's input as JSON, stored across reloads, in the browser's history and for workers. It never leaves the
//! browser.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::kept::StoredSession;
use super::own::{MOST_FILES, OwnFile};
use super::{State, UserInput};
use shardscope_link::{Compact, Pasted};

/// Everything in `state` that [`restore`] needs: estimates are omitted, since they follow from the input.
#[must_use]
pub fn keep(state: &State) -> String {
    let pinned = state.pinned.as_ref().map(|pinned| &pinned.input);
    keep_pair(&state.input, pinned)
}

/// `input` alone, to be restored by [`restore`] elsewhere: in a worker.
#[must_use]
pub fn keep_input(input: &UserInput) -> String {
    keep_pair(input, None)
}

// In JSON an input is a single string, in the same form as the browser stores, so that only one form has to stay
// readable forever.
impl Serialize for UserInput {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&keep_input(self))
    }
}

impl<'de> Deserialize<'de> for UserInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let kept = restore(&String::deserialize(deserializer)?);
        // The bounds of links apply here too (`Pasted::from_json`): storage and messages from another tab are as
        // untrusted as a link.
        kept.map(|kept| kept.input).ok_or_else(|| D::Error::custom("no input"))
    }
}

fn keep_pair(input: &UserInput, pinned: Option<&UserInput>) -> String {
    /// The stored form.
    #[derive(Serialize)]
    struct Form<'p> {
        // Data stored by earlier versions has this name.
        #[serde(rename = "hand")]
        input: Compact<'p>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pinned: Option<Compact<'p>>,
        /// Figures of the input's own run, which its texts do not have.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        measured: Vec<String>,
    }
    let measured = input.own.files.iter().map(OwnFile::written).collect();
    let (input, pinned) = (input.pasted(), pinned.map(UserInput::pasted));
    let form = Form { input: input.compact(), pinned: pinned.as_ref().map(Pasted::compact), measured };
    // Writing to memory cannot fail, and all keys are text.
    serde_json::to_string(&form).unwrap_or_default()
}

/// Restores `text`, if it was written by [`keep`].
#[must_use]
pub fn restore(text: &str) -> Option<StoredSession> {
    let value: Value = serde_json::from_str(text).ok()?;
    let input = |key: &str| Pasted::from_json(value.get(key)?).map(UserInput::of_pasted);
    // A pinned plan that cannot be read is dropped, and so are figures; without the input itself there is nothing to restore.
    let mut own = input("hand")?;
    let files = value.get("measured").and_then(Value::as_array).into_iter().flatten();
    own.own.files = files.filter_map(Value::as_str).filter_map(OwnFile::parse).take(MOST_FILES).collect();
    Some(StoredSession { input: own, pinned: input("pinned") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, OwnRun, apply};

    #[test]
    fn what_is_kept_comes_back() {
        let set = |name: &str, value: &str| Event::Set { name: name.into(), value: value.into() };
        let mut state = apply(State::default(), Event::Pin);
        for event in [set("num_nodes", "4"), set("RUN", "ü \"7B\"")] {
            state = apply(state, event);
        }
        let found = shardscope_measured::read(b"memory.used [MiB]\n71234\n").expect("figures");
        let own =
            OwnRun::default().with_log("a log").with_file(OwnFile { name: "smi.csv".to_owned(), found });
        state = apply(state, Event::Own(Box::new(own)));
        let kept = restore(&keep(&state)).expect("what was kept");
        assert_eq!(kept.input, state.input);
        assert_eq!(kept.pinned, state.pinned.map(|pinned| pinned.input.clone()));
        assert_eq!(restore("{}"), None);
        assert_eq!(restore("TP=2"), None);
    }
}
