//! Remarks that combine many flags.

use shardscope_source::{Code, Diagnostic, Span};

/// Most flags listed by name in one remark.
pub(super) const LISTED: usize = 40;

/// A flag without effect, and the reason.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Idle {
    pub(super) why: &'static str,
    pub(super) flag: String,
}

/// One remark on all flags without effect, grouped by reason.
pub(super) fn without_influence(mut idle: Vec<Idle>, span: Option<Span>) -> Option<Diagnostic> {
    idle.sort();
    idle.dedup();
    let mut listed = String::new();
    let mut last = "";
    for (index, Idle { why, flag }) in idle.iter().enumerate() {
        if index == LISTED {
            listed.push_str(", …");
            break;
        }
        listed.push_str(match index {
            0 => "",
            _ if *why == last => ", ",
            _ => "; ",
        });
        if *why != last {
            listed.push_str(why);
            listed.push_str(": ");
            last = why;
        }
        listed.push_str(flag);
    }
    let message = match idle.len() {
        0 => return None,
        1 => format!("a flag that does not affect the estimate. {listed}"),
        count => format!("{count} flags that do not affect the estimate. {listed}"),
    };
    Some(Diagnostic::note(Code::NoInfluence, message).at_some(span))
}

/// One warning about `flags`, which also mark the verdict: `one` follows the name of a single flag, `many` follows the
/// number of several, before their names.
pub(super) fn listed(
    code: Code,
    many: &str,
    one: &str,
    mut flags: Vec<String>,
    span: Option<Span>,
) -> Option<Diagnostic> {
    flags.sort();
    flags.dedup();
    let message = match flags.as_slice() {
        [] => return None,
        [single] => format!("{single}{one}"),
        all => {
            let shown = all.get(..LISTED).unwrap_or(all).join(", ");
            let more = if all.len() > LISTED { ", …" } else { "" };
            format!("{}{many}{shown}{more}", all.len())
        }
    };
    Some(Diagnostic::warning(code, message).at_some(span))
}
