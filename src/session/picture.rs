//! Pictures that stand alone: the bars of every stage and the map of the cluster as SVG, with their own colours.

use std::fmt::Write;

use super::map::{Amounts, Colour, Geometry, paint};
use super::{Shown, StageMemory, Use, title};
use crate::quantity::{Quantity, decimal, gib};
use crate::text::sort;

/// Width of a picture. Unit: CSS pixel.
const WIDTH: u32 = 960;
/// Around everything.
const MARGIN: u32 = 24;
/// From one bar to the next.
const PITCH: u32 = 34;
/// Height of a bar.
const BAR: u32 = 22;
/// Most bars; of more stages the fullest are kept.
const MOST_BARS: usize = 24;
/// Left and right of the bars, for names and values.
const NAMES: u32 = 80;
const VALUES: u32 = 110;

/// The colours of [`Use::ALL`], as in the style sheet.
const USES: [&str; 6] = ["#0072b2", "#56b4e9", "#009e73", "#e69f00", "#cc79a7", "#7a828a"];
/// Patterns over them, so that colour does not tell alone.
const PATTERNS: [&str; 6] = ["", "falling", "dots", "", "rising", "crossed"];
/// Pale colours of stages on the map.
const HUES: [&str; 8] =
    ["#a8cee3", "#f5dba8", "#a8dccc", "#ecd0df", "#c6e4f6", "#f0c3a8", "#e2dfa8", "#d4d7da"];

const DEFINITIONS: &str = r##"<defs><pattern id="falling" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0v7" stroke="#14171a" stroke-opacity=".35" stroke-width="2"/></pattern><pattern id="rising" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><path d="M0 0v7" stroke="#14171a" stroke-opacity=".35" stroke-width="2"/></pattern><pattern id="dots" width="7" height="7" patternUnits="userSpaceOnUse"><circle cx="2" cy="2" r="1" fill="#14171a" fill-opacity=".45"/></pattern><pattern id="crossed" width="7" height="7" patternUnits="userSpaceOnUse"><path d="M0 0l7 7M7 0l-7 7" stroke="#14171a" stroke-opacity=".35" stroke-width="2"/></pattern></defs>"##;

/// A picture under way.
struct Sheet {
    out: String,
    height: u32,
}

impl Sheet {
    fn text(&mut self, x: u32, style: &str, text: &str) {
        let y = self.height;
        let _ = write!(self.out, r#"<text x="{x}" y="{y}" {style}>{}</text>"#, escaped(text));
    }

    fn rect(&mut self, x: f64, width: f64, fill: &str) {
        let y = self.height;
        let (x, width) = (decimal(x, 1), decimal(width, 1));
        let _ = write!(self.out, r#"<rect x="{x}" y="{y}" width="{width}" height="{BAR}" fill="{fill}"/>"#);
    }

    fn finish(self, width: u32, name: &str) -> String {
        let height = self.height + MARGIN;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"system-ui, 'Segoe UI', Roboto, sans-serif\" font-size=\"13\"><title>{}</title>\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>{}</svg>\n",
            escaped(name),
            self.out
        )
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const STRONG: &str = r##"font-weight="600" fill="#1a1d21""##;
const SOFT: &str = r##"fill="#545b63""##;
const RIGHT: &str = r##"text-anchor="end" font-weight="600" fill="#1a1d21""##;

/// The bars of every stage against what the accelerator holds.
#[must_use]
pub fn bars_svg(shown: &Shown) -> String {
    let name = title(shown);
    let mut sheet = Sheet { out: DEFINITIONS.to_owned(), height: MARGIN + 14 };
    sheet.text(MARGIN, r##"font-size="17" font-weight="650" fill="#1a1d21""##, &name);
    sheet.height += 22;
    if let Some(worst) = shown.worst() {
        let verdict = format!(
            "{}: the fullest GPU, of stage {}, needs {} of {}",
            worst.fit.words(),
            worst.stage,
            gib(worst.reserved),
            gib(shown.plan.cluster().accelerator.memory)
        );
        sheet.text(MARGIN, SOFT, &verdict);
    }
    sheet.height += 22;
    legend(&mut sheet);
    let capacity = shown.plan.cluster().accelerator.memory.number();
    let most = shown.stages.iter().map(|stage| stage.reserved.number()).fold(capacity, f64::max).max(1.0);
    let room = f64::from(WIDTH - 2 * MARGIN - NAMES - VALUES);
    let left = f64::from(MARGIN + NAMES);
    let top = sheet.height;
    for stage in kept(&shown.stages) {
        bar(&mut sheet, stage, left, room / most);
    }
    let x = left + room * capacity / most;
    let bottom = sheet.height - PITCH + BAR + 4;
    let _ = write!(
        sheet.out,
        r##"<path d="M{} {}V{bottom}" stroke="#1a1d21" stroke-width="2" stroke-dasharray="3 2"/>"##,
        decimal(x, 1),
        top - 4
    );
    if shown.stages.len() > MOST_BARS {
        let words = format!("The fullest {MOST_BARS} of {} stages.", shown.stages.len());
        sheet.height += 8;
        sheet.text(MARGIN, SOFT, &words);
    }
    sheet.finish(WIDTH, &name)
}

/// The stages that get a bar, in their order.
fn kept(stages: &[StageMemory]) -> Vec<&StageMemory> {
    let mut kept: Vec<&StageMemory> = stages.iter().collect();
    sort(&mut kept, &|one, other| other.reserved.cmp(&one.reserved));
    kept.truncate(MOST_BARS);
    sort(&mut kept, &|one, other| one.stage.cmp(&other.stage));
    kept
}

fn bar(sheet: &mut Sheet, stage: &StageMemory, left: f64, per_byte: f64) {
    let mut x = left;
    for ((bytes, fill), pattern) in stage.uses.iter().zip(USES).zip(PATTERNS) {
        let width = bytes.number() * per_byte;
        sheet.rect(x, width, fill);
        if !pattern.is_empty() {
            sheet.rect(x, width, &format!("url(#{pattern})"));
        }
        x += width;
    }
    sheet.height += 16;
    sheet.text(MARGIN, STRONG, &format!("Stage {}", stage.stage));
    sheet.text(WIDTH - MARGIN, RIGHT, &gib(stage.reserved));
    sheet.height += PITCH - 16;
}

fn legend(sheet: &mut Sheet) {
    let mut x = MARGIN;
    for ((kind, fill), pattern) in Use::ALL.iter().zip(USES).zip(PATTERNS) {
        let y = sheet.height - 11;
        for fill in [fill.to_owned(), format!("url(#{pattern})")] {
            if !fill.contains("#)") {
                let _ = write!(
                    sheet.out,
                    r#"<rect x="{x}" y="{y}" width="14" height="14" rx="3" fill="{fill}"/>"#
                );
            }
        }
        sheet.text(x + 20, SOFT, kind.name());
        x += 40 + 8 * u32::try_from(kind.name().len()).unwrap_or(0);
    }
    sheet.text(x, SOFT, "┆ on the device");
    sheet.height += 20;
}

/// Most GPUs of a map that is drawn as a picture of its own; of more only the first are.
const MOST_GPUS: u64 = 2_048;

/// The map of the cluster, coloured by pipeline stage.
#[must_use]
pub fn map_svg(shown: &Shown) -> String {
    let name = title(shown);
    let plan = &shown.plan;
    let gpus = plan.layout().world_size;
    let drawn = gpus.min(MOST_GPUS);
    let geometry = Geometry::fit(drawn, plan.cluster().gpus_per_node, WIDTH - 2 * MARGIN);
    let paint = paint(plan, Colour::Stage, &Amounts::default());
    let mut sheet = Sheet { out: String::new(), height: MARGIN + 14 };
    sheet.text(MARGIN, r##"font-size="17" font-weight="650" fill="#1a1d21""##, &name);
    sheet.height += 22;
    let words = if drawn < gpus { format!("; the first {drawn} of {gpus} GPUs") } else { String::new() };
    sheet.text(MARGIN, SOFT, &format!("Coloured and numbered by pipeline stage{words}."));
    sheet.height += 18;
    let top = sheet.height;
    for node in 0..geometry.nodes() {
        let area = geometry.node(node);
        let (x, y) = (area.x + MARGIN, area.y + top);
        let _ = write!(
            sheet.out,
            r##"<rect x="{x}" y="{y}" width="{}" height="{}" rx="6" fill="#f0f0ea"/>"##,
            area.width, area.height
        );
    }
    let groups = crate::topology::Groups::of(plan.layout());
    for (gpu, class) in (0..drawn).zip(&paint.classes) {
        let area = geometry.cell(gpu);
        let (x, y) = (area.x + MARGIN, area.y + top);
        let fill = HUES[usize::from(*class) % HUES.len()];
        let _ = write!(
            sheet.out,
            r##"<rect x="{x}" y="{y}" width="{}" height="{}" rx="2" fill="{fill}"/>"##,
            area.width, area.height
        );
        if area.width >= 24 {
            let stage = groups.coordinates(crate::topology::Rank::new(gpu)).pipeline;
            let _ = write!(
                sheet.out,
                r##"<text x="{}" y="{}" text-anchor="middle" font-size="12" fill="#1a1d21">{stage}</text>"##,
                x + area.width / 2,
                y + area.height / 2 + 4
            );
        }
    }
    sheet.height = top + geometry.size().1;
    sheet.finish(geometry.size().0.max(WIDTH - 2 * MARGIN) + 2 * MARGIN, &name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::State;
    use crate::session::examples::gallery;

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
            let state = State::new(example.hand);
            let shown = state.shown.expect("a plan");
            let bars = bars_svg(&shown);
            check(&bars);
            assert!(bars.contains("Stage 0") && bars.contains("GiB"), "{}", example.name);
            check(&map_svg(&shown));
        }
    }

    #[test]
    fn text_is_text() {
        assert_eq!(escaped("<a & \"b\">"), "&lt;a &amp; &quot;b&quot;&gt;");
    }
}
