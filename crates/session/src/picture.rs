//! Standalone pictures: the bars of every stage and the map of the cluster as SVG, with their own colours.

use super::map::{Amounts, Area, Colour, Geometry, paint};
use super::{Shown, StageMemory, Use, title};
use shardscope_units::{Count, Quantity, decimal, gib, grouped};

/// Width of a picture. Unit: CSS pixel, as for all lengths here.
const WIDTH: f64 = 960.0;
/// Around everything.
const MARGIN: f64 = 24.0;
/// From one bar to the next.
const PITCH: f64 = 34.0;
/// Height of a bar.
const BAR: f64 = 22.0;
/// Maximum number of bars; if there are more stages, the fullest are kept.
const MOST_BARS: usize = 24;
/// Left and right of the bars, for names and values.
const NAMES: f64 = 80.0;
const VALUES: f64 = 110.0;

/// Fill of each of [`Use::ALL`], in that order and as in the style sheet, and the pattern over it, so that colour is
/// not the only cue.
const USES: [[&str; 2]; 6] = [
    [r##"fill="#0072b2""##, ""],
    [r##"fill="#56b4e9""##, "fill=\"url(#falling)\""],
    [r##"fill="#009e73""##, "fill=\"url(#dots)\""],
    [r##"fill="#e69f00""##, ""],
    [r##"fill="#cc79a7""##, "fill=\"url(#rising)\""],
    [r##"fill="#7a828a""##, "fill=\"url(#crossed)\""],
];
/// Pale colours of stages on the map.
const HUES: [&str; 8] = [
    r##"rx="2" fill="#a8cee3""##,
    r##"rx="2" fill="#f5dba8""##,
    r##"rx="2" fill="#a8dccc""##,
    r##"rx="2" fill="#ecd0df""##,
    r##"rx="2" fill="#c6e4f6""##,
    r##"rx="2" fill="#f0c3a8""##,
    r##"rx="2" fill="#e2dfa8""##,
    r##"rx="2" fill="#d4d7da""##,
];
/// The same again with an edge, and again paler: [`super::map::HUES`] in total.
const AGAIN: [&str; 3] = ["", r##" stroke="#5a616d" stroke-width="2""##, r#" fill-opacity=".4""#];

const DEFINITIONS: &str = r##"<defs><pattern id="falling" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0v7" stroke="#14171a" stroke-opacity=".35" stroke-width="2"/></pattern><pattern id="rising" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><path d="M0 0v7" stroke="#14171a" stroke-opacity=".35" stroke-width="2"/></pattern><pattern id="dots" width="7" height="7" patternUnits="userSpaceOnUse"><circle cx="2" cy="2" r="1" fill="#14171a" fill-opacity=".45"/></pattern><pattern id="crossed" width="7" height="7" patternUnits="userSpaceOnUse"><path d="M0 0l7 7M7 0l-7 7" stroke="#14171a" stroke-opacity=".35" stroke-width="2"/></pattern></defs>"##;

/// A picture under construction.
struct Sheet {
    out: String,
    height: f64,
}

impl Sheet {
    /// With its name at the head.
    fn called(name: &str, definitions: &str) -> Self {
        let mut sheet = Self { out: definitions.to_owned(), height: MARGIN + 14.0 };
        // `height` is the baseline of what comes next, moved down by each drawing function.
        sheet.text(MARGIN, r##"font-size="17" font-weight="650" fill="#1a1d21""##, name);
        sheet.height += 22.0;
        sheet
    }

    /// Opens an element with `numbers` as attributes, rounded to a tenth, then `more`; the caller closes it.
    fn begin(&mut self, name: &str, numbers: &[(&str, f64)], more: &str) {
        self.out.push('<');
        self.out.push_str(name);
        for (name, number) in numbers {
            let number = decimal(*number, 1);
            // Tenths are below what a screen shows, and whole numbers without ".0" keep the file small.
            for piece in [" ", name, "=\"", number.strip_suffix(".0").unwrap_or(&number), "\""] {
                self.out.push_str(piece);
            }
        }
        self.out.push(' ');
        self.out.push_str(more);
    }

    fn text(&mut self, x: f64, style: &str, text: &str) {
        self.begin("text", &[("x", x), ("y", self.height)], style);
        self.out.push('>');
        escape(text, &mut self.out);
        self.out.push_str("</text>");
    }

    fn rect(&mut self, [x, y, width, height]: [f64; 4], style: &str) {
        self.begin("rect", &[("x", x), ("y", y), ("width", width), ("height", height)], style);
        self.out.push_str("/>");
    }

    fn finish(self, width: f64, name: &str) -> String {
        let (width, height) = (decimal(width, 0), decimal(self.height + MARGIN, 0));
        let mut title = String::new();
        escape(name, &mut title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"system-ui, 'Segoe UI', Roboto, sans-serif\" font-size=\"13\"><title>{title}</title>\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>{}</svg>\n",
            self.out
        )
    }
}

/// Writes `text` to `out` with SVG's special characters escaped.
fn escape(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
}

const STRONG: &str = r##"font-weight="600" fill="#1a1d21""##;
const SOFT: &str = r##"fill="#545b63""##;
const RIGHT: &str = r##"text-anchor="end" font-weight="600" fill="#1a1d21""##;

/// The bars of every stage against the accelerator's capacity.
#[must_use]
pub fn bars_svg(shown: &Shown) -> String {
    let name = title(shown);
    let mut sheet = Sheet::called(&name, DEFINITIONS);
    let capacity = shown.plan.cluster().accelerator.memory;
    if let Some(fullest) = shown.fullest() {
        let (words, place) = (fullest.fit.words(), fullest.place_name());
        let (peak, condition) = (gib(fullest.peak), fullest.condition());
        let verdict = format!("{words}: in {place}, peak {peak} of {}{condition}", gib(capacity));
        sheet.text(MARGIN, SOFT, &verdict);
    }
    sheet.height += 22.0;
    legend(&mut sheet);
    let capacity = capacity.number();
    // A stage above capacity widens the scale: the limit is then inside the picture, with the excess right of it.
    let most = shown.stages.iter().map(|stage| stage.reserved.number()).fold(capacity, f64::max).max(1.0);
    // Shared scale for all bars, otherwise their lengths could not be compared.
    let room = WIDTH - 2.0 * MARGIN - NAMES - VALUES;
    let left = MARGIN + NAMES;
    let top = sheet.height - 4.0;
    for stage in visible(&shown.stages) {
        bar(&mut sheet, stage, left, room / most);
    }
    let x = left + room * capacity / most;
    // Back over the gap below the last bar, so that the limit ends where the bars do.
    let bottom = sheet.height - PITCH + BAR + 4.0;
    let limit = r##"stroke="#1a1d21" stroke-width="2" stroke-dasharray="3 2"/>"##;
    sheet.begin("line", &[("x1", x), ("x2", x), ("y1", top), ("y2", bottom)], limit);
    if shown.stages.len() > MOST_BARS {
        let words = format!("The fullest {MOST_BARS} of {} stages.", shown.stages.len());
        sheet.height += 8.0;
        sheet.text(MARGIN, SOFT, &words);
    }
    sheet.finish(WIDTH, &name)
}

/// The stages that get a bar, in their order.
fn visible(stages: &[StageMemory]) -> Vec<&StageMemory> {
    let mut visible: Vec<&StageMemory> = stages.iter().collect();
    // By size to choose, then by stage to draw: gaps in the numbers show that some are left out.
    visible.sort_by_key(|stage| std::cmp::Reverse(stage.reserved));
    visible.truncate(MOST_BARS);
    visible.sort_by_key(|stage| stage.stage);
    visible
}

fn bar(sheet: &mut Sheet, stage: &StageMemory, left: f64, per_byte: f64) {
    let mut x = left;
    for (bytes, styles) in stage.uses.iter().zip(&USES) {
        let width = bytes.number() * per_byte;
        for style in styles.iter().filter(|style| !style.is_empty()) {
            sheet.rect([x, sheet.height, width, BAR], style);
        }
        x += width;
    }
    sheet.height += 16.0;
    sheet.text(MARGIN, STRONG, &format!("Stage {}", stage.stage));
    sheet.text(WIDTH - MARGIN, RIGHT, &gib(stage.reserved));
    sheet.height += PITCH - 16.0;
}

fn legend(sheet: &mut Sheet) {
    let mut x = MARGIN;
    for (kind, styles) in Use::ALL.iter().zip(&USES) {
        for style in styles.iter().filter(|style| !style.is_empty()) {
            sheet.rect([x, sheet.height - 11.0, 14.0, 14.0], style);
        }
        sheet.text(x + 20.0, SOFT, kind.name());
        // Some 8 px a character at 13 px; text cannot be measured without a browser.
        x += 40.0 + Count::new(8 * kind.name().len() as u64).number();
    }
    sheet.text(x, SOFT, "┆ on the device");
    sheet.height += 20.0;
}

/// Maximum number of GPUs in a standalone map; if there are more, only the first are drawn.
const MOST_GPUS: u64 = 2_048;

/// The map of the cluster, coloured by pipeline stage.
#[must_use]
pub fn map_svg(shown: &Shown) -> String {
    let name = title(shown);
    let plan = &shown.plan;
    let gpus = plan.layout().world_size;
    let drawn = gpus.min(MOST_GPUS);
    let geometry = Geometry::fit(drawn, plan.cluster().gpus_per_node, ROOM);
    // Stage colours are those of the whole cluster, however many GPUs are drawn.
    let paint = paint(plan, Colour::Stage, &Amounts::default(), &mut (0..drawn));
    let mut sheet = Sheet::called(&name, "");
    let words = if drawn < gpus {
        format!("; the first {} of {} GPUs", grouped(drawn), grouped(gpus))
    } else {
        String::new()
    };
    sheet.text(MARGIN, SOFT, &format!("Colored and numbered by pipeline stage{words}."));
    sheet.height += 18.0;
    let top = sheet.height;
    let place = |area: Area| {
        let [x, y, width, height] = [area.x, area.y, area.width, area.height].map(f64::from);
        [x + MARGIN, y + top, width, height]
    };
    for node in 0..geometry.nodes() {
        sheet.rect(place(geometry.node(node)), r##"rx="6" fill="#f0f0ea""##);
    }
    let groups = shardscope_topology::Groups::new(plan.layout());
    for (gpu, class) in (0..drawn).zip(&paint.classes) {
        let cell @ [x, y, width, height] = place(geometry.cell(gpu));
        let class = usize::from(*class);
        // Classes run over hues first, then over edge and fill: as many as `map::HUES`, distinguishable without the
        // page's style sheet.
        let again = AGAIN[class / HUES.len() % AGAIN.len()];
        sheet.rect(cell, &[HUES[class % HUES.len()], again].concat());
        // Three digits fit from here on.
        if width >= 24.0 {
            let stage = groups.coordinates(shardscope_topology::Rank::new(gpu)).pipeline;
            // A little below the middle, the baseline for visually centred text.
            sheet.height = y + height / 2.0 + 4.0;
            sheet.text(x + width / 2.0, MIDDLE, &stage.to_string());
        }
    }
    let (width, height) = geometry.size();
    sheet.height = top + f64::from(height);
    // At least as wide as the title may need; a few GPUs alone would be a sliver.
    sheet.finish(f64::from(width.max(ROOM)) + 2.0 * MARGIN, &name)
}

/// Width of the map itself.
const ROOM: u32 = 912;
const MIDDLE: &str = r##"text-anchor="middle" font-size="12" fill="#1a1d21""##;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;
    use crate::examples::gallery;

    /// Every element that opens closes, and no quote is left open.
    #[track_caller]
    fn check(svg: &str) {
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        let count = |part: &str| svg.matches(part).count();
        assert_eq!(count("<"), count(">"));
        assert_eq!(count("<text"), count("</text>"));
        assert_eq!(count("\"") % 2, 0);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn every_example_has_its_pictures() {
        for example in gallery().into_iter().flat_map(|chapter| chapter.examples) {
            let state = State::new(example.input);
            let shown = state.shown.expect("a plan");
            let bars = bars_svg(&shown);
            check(&bars);
            assert!(bars.contains("Stage 0") && bars.contains("GiB"), "{}", example.name);
            check(&map_svg(&shown));
        }
    }

    #[test]
    fn text_is_text() {
        let mut out = String::new();
        escape("<a & \"b\">", &mut out);
        assert_eq!(out, "&lt;a &amp; &quot;b&quot;&gt;");
    }
}
