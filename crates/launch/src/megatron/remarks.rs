//! One remark on many flags.

use shardscope_sorting::sort;
use shardscope_source::{Code, Diagnostic, Span};

/// Flags listed by name in one remark at most.
pub(super) const LISTED: usize = 40;

/// A flag without influence, and why.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Idle {
    pub(super) why: &'static str,
    pub(super) flag: String,
}

/// One remark on all flags without influence, by reason.
pub(super) fn without_influence(mut idle: Vec<Idle>, span: Option<Span>) -> Option<Diagnostic> {
    sort(&mut idle);
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

/// One warning about `flags`, which the verdict is marked with too: `one` follows the name of a single flag, `many` the number of several, before their names.
pub(super) fn listed(
    code: Code,
    many: &str,
    one: &str,
    mut flags: Vec<String>,
    span: Option<Span>,
) -> Option<Diagnostic> {
    sort(&mut flags);
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
