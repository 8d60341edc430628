//! What could be better, each change already tried, one press away.

use shardscope::plan::Field;
use shardscope::quantity::{gib, seconds};
use shardscope::report::Finding;
use shardscope::session::{Event, Fit, Shown};

use super::diagnostics::sentence;
use crate::app::act::Act;
use crate::app::desk::Desk;
use crate::app::parts::{Tag, button, details, group, section, tag};
use crate::app::words::{Panel, advice as words, fill};

pub(crate) fn advice(desk: &Desk, shown: &Shown) -> Tag {
    let findings = &shown.report.advice;
    if findings.is_empty() {
        return group();
    }
    let lacking = shown.worst().is_some_and(|worst| worst.fit == Fit::DoesNotFit);
    let title = if lacking { words::LACKING } else { words::TITLE };
    section(desk, "section.panel#advice", "advice-title", &Panel { title, about: words::ABOUT })
        .child(tag("ul.findings").each(findings, |finding| item(desk, finding)))
}

fn item(desk: &Desk, finding: &Finding) -> Tag {
    let why =
        details("details.reasons", false, tag("summary").text(words::WHY)).saying("p", finding.why.clone());
    let told = |sentence: &str, figure: String| tag("span").say(fill(sentence, [figure]));
    let expected = tag("p.expected")
        .maybe(finding.expected.peak_reserved.map(|peak| told(words::PEAK, gib(peak))))
        .maybe(finding.expected.step.map(|step| told(words::STEP, seconds(step))));
    tag("li")
        .child(tag("div").saying("p", sentence(&finding.message)).child(why))
        .child(expected)
        .child(try_it(desk, &finding.change))
}

/// A button that tries a change; nothing when there is none.
pub(crate) fn try_it(desk: &Desk, change: &[(Field, String)]) -> Tag {
    if change.is_empty() {
        return group();
    }
    let values = change.iter().map(|(field, value)| (field.name().to_owned(), value.clone())).collect();
    button(desk, "button.button", Act::Do(Event::Try(values))).attr("title", written(change)).text(words::TRY)
}

/// `name = value, …`
pub(crate) fn written(change: &[(Field, String)]) -> String {
    let mut text = String::new();
    for (field, value) in change {
        if !text.is_empty() {
            text.push_str(", ");
        }
        if value.is_empty() {
            text.push_str(words::WITHOUT);
        }
        text.push_str(field.name());
        if !value.is_empty() {
            text.push_str(" = ");
            text.push_str(value);
        }
    }
    text
}
