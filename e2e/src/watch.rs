//! What the driver reports about a page.
use std::collections::BTreeSet;

use serde_json::Value;

/// What the driver has reported so far; it reports everything once.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) console: Vec<(String, String)>,
    pub(crate) requests: BTreeSet<String>,
}

/// The address in an event of the network log, if it is about a request.
pub(crate) fn requested(event: &str) -> Option<String> {
    let event: Value = serde_json::from_str(event).ok()?;
    let message = event.get("message")?;
    if message.get("method")? != "Network.requestWillBeSent" {
        return None;
    }
    Some(message.pointer("/params/request/url")?.as_str()?.to_owned())
}
