//! Content to copy and paste elsewhere: a table with its link, a frame for a page.

use super::{Shown, cut, title};
use shardscope_report::text::inert;
use shardscope_units::{gib, percent, rounded, seconds, tflops};

/// Length in characters above which chat tools and issue trackers truncate or refuse a link.
pub const LONG_LINK: usize = 2_000;

/// The verdict as a Markdown table, with the link to the page below.
#[must_use]
pub fn verdict_markdown(shown: &Shown, link: &str) -> String {
    // Titles contain names from pasted scripts: `inert` keeps a pipe or a link in them from becoming table or markup.
    let mut out = format!("| {} | |\n|---|---:|\n", inert(&title(shown)));
    for (name, value) in verdict_lines(shown) {
        out += &format!("| {name} | {} |\n", inert(&value));
    }
    out + &format!("\n[Open in Shardscope]({link})\n")
}

/// The numbers that everyone looks for first.
#[must_use]
pub fn verdict_lines(shown: &Shown) -> Vec<(String, String)> {
    let accelerator = &shown.plan.cluster().accelerator;
    let mut lines = Vec::new();
    let mut say = |name: &str, value: String| lines.push((name.to_owned(), value));
    if let Some(fullest) = shown.fullest() {
        let share = shardscope_units::Quantity::number(fullest.peak)
            // The memory of an unknown card is 0; the share must not divide by it.
            / shardscope_units::Quantity::number(accelerator.memory).max(1.0);
        say("Verdict", fullest.fit.words().to_ascii_lowercase());
        say(
            "Peak rank",
            format!(
                "{} of {} ({}){}",
                gib(fullest.peak),
                gib(accelerator.memory),
                percent(share),
                fullest.condition()
            ),
        );
    }
    // A table pasted elsewhere has no page next to it, so what the verdict leaves out must accompany the figures.
    for sentence in shown.plan.recipe().marks.sentences() {
        say("Beside it", sentence);
    }
    let time = &shown.report.time;
    say("Layout", cut(&shown.plan));
    say(
        "Step",
        format!("{} ({} to {})", seconds(time.step), seconds(time.interval.low), seconds(time.interval.high)),
    );
    let tokens =
        if shown.plan.model().encoder.is_some() { "Target tokens per second" } else { "Tokens per second" };
    say(tokens, rounded(time.tokens_per_second));
    say("Per GPU", format!("{}, MFU {}", tflops(time.model_rate), percent(time.mfu)));
    lines
}

/// A frame for another page, with `address` opened as an embedded view.
#[must_use]
pub fn frame(address: &str, name: &str) -> String {
    // Ampersands first, or the escapes of quotes would be escaped again.
    let quoted = |text: &str| text.replace('&', "&amp;").replace('"', "&quot;");
    // Scripts and the page's own origin are what it needs to run; top-level navigation and forms of the embedder stay
    // forbidden.
    format!(
        "<iframe src=\"{}\" title=\"{}\" width=\"100%\" height=\"520\" loading=\"lazy\" \
         sandbox=\"allow-scripts allow-same-origin allow-popups allow-downloads\" allow=\"clipboard-write\"></iframe>",
        quoted(address),
        quoted(name)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;

    #[test]
    fn the_table_has_the_verdict_and_the_link() {
        let shown = State::default().shown.expect("a plan");
        let table = verdict_markdown(&shown, "https://example.org/#/1?tp=2");
        assert!(table.contains("| Verdict | fits |"), "{table}");
        assert!(table.ends_with("[Open in Shardscope](https://example.org/#/1?tp=2)\n"), "{table}");
        assert!(
            table.lines().filter(|line| line.starts_with('|')).all(|line| line.matches('|').count() == 3)
        );
    }

    #[test]
    fn a_frame_quotes_its_address() {
        let frame = frame("https://example.org/?embed=verdict#/1?a=1&b=2", "a \"b\"");
        assert!(frame.contains("a=1&amp;b=2") && frame.contains("a &quot;b&quot;"), "{frame}");
    }
}
