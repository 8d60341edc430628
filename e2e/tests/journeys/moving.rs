//! The picture of the README, which moves, and that of links in a chat.
use std::fs;

use e2e::{Page, frames_of, moving_picture};

use super::steps::{panel, turn};

/// What a picture in a README may weigh. Unit: byte.
const LARGEST: u64 = 1_500_000;

/// A reader asks whether it fits, looks at memory, changes the layout, and looks at the schedule and the map.
/// `cp target/screenshots/moving.png docs/moving.png` puts it into the README.
#[test]
fn a_reader_s_first_minute_is_a_picture_that_moves() {
    let page = Page::open("");
    page.set_window(1280, 800);
    page.wait_for(".verdict");
    let mut frames = Vec::new();
    let mut keep = |page: &Page, name: &str, stays: u16| {
        frames.push((page.screenshot(&format!("moving-{name}")), stays));
    };
    keep(&page, "verdict", 2200);
    panel(&page, "memory");
    keep(&page, "memory", 2200);
    turn(&page, "More: tensor parallel size");
    page.wait_text(".plan-name", "TP 4");
    keep(&page, "changed", 2200);
    panel(&page, "schedule");
    keep(&page, "schedule", 2200);
    panel(&page, "map");
    keep(&page, "map", 2200);
    let picture = moving_picture("moving", &frames);
    assert_eq!(frames_of(&picture), 5);
    let bytes = fs::metadata(&picture).expect("a picture").len();
    assert!(bytes < LARGEST, "{bytes} bytes");
    // The README's own moves as well.
    assert_eq!(frames_of(&e2e::root().join("docs/moving.png")), 5);
    page.assert_quiet();
}

/// What a chat shows of a link is the page as it is: where the example's figures move, `assets/card.png` (1200 x 630) is made anew from
/// `target/screenshots/card.png`, and the words beside it in `index.html`.
#[test]
fn the_card_of_a_link_tells_the_figures_of_the_page() {
    let page = Page::open("");
    page.set_window(1200, 630);
    page.wait_for(".verdict");
    let alt = page.attribute("meta[property='og:image:alt']", "content").expect("words for the picture");
    let verdict = page.text(".verdict .big").replace('\n', ": ");
    let step = page.text(".stats dd");
    let step = step.lines().next().expect("a step time");
    assert_eq!(alt, format!("{verdict}, step time {step}"));
    page.screenshot("card");
}
