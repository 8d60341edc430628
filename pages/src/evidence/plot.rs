//! Predicted over measured as a picture: logarithmic axes, the diagonal, and the bands of 5 and 10 %.

use std::fmt::Write;

use super::entry::{Architecture, Entry};

/// The square of the axes, in the units of the picture.
const SIDE: f64 = 480.0;
/// Room for the numbers at the axes.
const MARGIN: f64 = 44.0;
/// The rest of the frame.
const EDGE: f64 = 12.0;
/// Between the two frames, with the numbers of the first.
const GAP: f64 = 48.0;
/// Height of the second frame, which shows the errors.
const ERRORS: f64 = 180.0;
/// The error at its upper end; what is farther off lies on the edge.
const FAR: f64 = 0.25;

/// What one axis spans.
struct Axis {
    /// Logarithm to base 10 of its ends.
    from: f64,
    to: f64,
}

impl Axis {
    /// The least span that holds every point, with some air.
    fn of(entries: &[Entry]) -> Self {
        let values = || entries.iter().flat_map(|entry| [entry.measured, entry.predicted]);
        let least = values().fold(f64::INFINITY, f64::min);
        let most = values().fold(0.0, f64::max);
        Self { from: least.log10() - 0.08, to: most.log10() + 0.08 }
    }

    /// Units along the axis of a logarithm.
    fn at(&self, logarithm: f64) -> f64 {
        SIDE * (logarithm - self.from) / (self.to - self.from)
    }

    /// 1, 2 and 5 of every decade.
    fn ticks(&self) -> Vec<f64> {
        let mut ticks = Vec::new();
        for decade in -3..7 {
            for step in [1.0, 2.0, 5.0] {
                let tick: f64 = step * 10_f64.powi(decade);
                if (self.from..=self.to).contains(&tick.log10()) {
                    ticks.push(tick);
                }
            }
        }
        ticks
    }
}

/// What a picture shows.
pub(super) struct Plot<'a> {
    /// Its name in identifiers.
    pub(super) key: &'static str,
    /// What it shows, for those who do not see it.
    pub(super) about: &'static str,
    /// The unit of both axes.
    pub(super) unit: &'static str,
    /// Its points.
    pub(super) entries: &'a [Entry],
}

impl Plot<'_> {
    /// The picture as SVG: one `use` a row and frame, in the order of the rows.
    #[must_use]
    pub(super) fn svg(&self) -> String {
        let axis = Axis::of(self.entries);
        let (width, height) = (MARGIN + SIDE + EDGE, EDGE + SIDE + GAP + ERRORS + MARGIN);
        let mut out = format!(
            "<svg class=\"scatter\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">\n",
            self.about
        );
        out += &self.marks();
        let _ = write!(
            out,
            "<clipPath id=\"{0}-frame\"><path d=\"M0 0h{SIDE}v{SIDE}h-{SIDE}z\"/></clipPath>\n\
             <g transform=\"translate({MARGIN} {EDGE})\">\n",
            self.key
        );
        out += &self.ground(&axis);
        out += "<g class=\"points\">\n";
        for entry in self.entries {
            out +=
                &self.point(entry, axis.at(entry.measured.log10()), SIDE - axis.at(entry.predicted.log10()));
        }
        let here = "</g>\n<circle class=\"here\" r=\"7\" visibility=\"hidden\"/>\n</g>\n";
        out += here;
        out += &self.errors(&axis);
        out + here + "</svg>\n"
    }

    /// The same points by their error, where the bands have room.
    fn errors(&self, axis: &Axis) -> String {
        let y = |error: f64| ERRORS * (0.5 - error.clamp(-FAR, FAR) / FAR / 2.0);
        let mut out = format!("<g transform=\"translate({MARGIN} {})\">\n", EDGE + SIDE + GAP);
        for (name, share) in [("band ten", 0.10), ("band five", 0.05)] {
            let _ =
                writeln!(out, "<path class=\"{name}\" d=\"M0 {:.1}H{SIDE}V{:.1}H0z\"/>", y(share), y(-share));
        }
        for error in [-0.2, -0.1, 0.0, 0.1, 0.2] {
            let (place, kind) = (y(error), if error == 0.0 { "diagonal" } else { "grid" });
            let sign = if error > 0.0 { "+" } else { "" };
            let _ = writeln!(
                out,
                "<path class=\"{kind}\" d=\"M0 {place:.1}H{SIDE}\"/>\
                 <text class=\"tick\" x=\"-8\" y=\"{:.1}\" text-anchor=\"end\">{sign}{:.0} %</text>",
                place + 4.0,
                100.0 * error
            );
        }
        for tick in axis.ticks() {
            let place = axis.at(tick.log10());
            let _ = writeln!(
                out,
                "<path class=\"grid\" d=\"M{place:.1} 0V{ERRORS}\"/>\
                 <text class=\"tick\" x=\"{place:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{tick}</text>",
                ERRORS + 18.0
            );
        }
        let _ = write!(
            out,
            "<path class=\"frame\" d=\"M0 0h{SIDE}v{ERRORS}h-{SIDE}z\"/>\
             <text class=\"axis\" x=\"{SIDE}\" y=\"{:.0}\" text-anchor=\"end\">measured, {}</text>\
             <text class=\"axis\" x=\"8\" y=\"18\">error</text>\n<g class=\"points\">\n",
            ERRORS + 36.0,
            self.unit
        );
        for entry in self.entries {
            out += &self.point(entry, axis.at(entry.measured.log10()), y(entry.error()));
        }
        out
    }

    fn point(&self, entry: &Entry, x: f64, y: f64) -> String {
        let aside = if entry.aside { " aside" } else { "" };
        let kind = entry.architecture.key();
        format!("<use href=\"#{}-{kind}\" class=\"{kind}{aside}\" x=\"{x:.1}\" y=\"{y:.1}\"/>\n", self.key)
    }

    /// One shape a kind, so that colour is not needed to tell them apart.
    fn marks(&self) -> String {
        let shapes = [
            (Architecture::Dense, "<circle id=\"ID\" r=\"2.7\"/>"),
            (Architecture::Experts, "<path id=\"ID\" d=\"M0-3.8 3.5 2.4H-3.5z\"/>"),
            (Architecture::Sharded, "<path id=\"ID\" d=\"M-2.5-2.5h5v5h-5z\"/>"),
        ];
        let named = shapes.map(|(kind, shape)| shape.replace("ID", &format!("{}-{}", self.key, kind.key())));
        format!("<defs>{}</defs>\n", named.concat())
    }

    /// Bands, diagonal, grid and axes.
    fn ground(&self, axis: &Axis) -> String {
        let mut out = format!("<g clip-path=\"url(#{}-frame)\">\n", self.key);
        for (name, share) in [("band ten", 0.10), ("band five", 0.05)] {
            let [over, under] =
                [1.0 + share, 1.0 - share].map(|factor: f64| axis.at(axis.from + factor.log10()));
            let _ = writeln!(
                out,
                "<path class=\"{name}\" d=\"M0 {:.2}L{SIDE} {:.2}V{:.2}L0 {:.2}z\"/>",
                SIDE - over,
                -over,
                -under,
                SIDE - under
            );
        }
        let _ = writeln!(out, "<path class=\"diagonal\" d=\"M0 {SIDE}L{SIDE} 0\"/>\n</g>");
        for tick in axis.ticks() {
            let place = axis.at(tick.log10());
            let y = SIDE - place;
            let _ = writeln!(
                out,
                "<path class=\"grid\" d=\"M{place:.1} 0V{SIDE}M0 {y:.1}H{SIDE}\"/>\
                 <text class=\"tick\" x=\"{place:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{tick}</text>\
                 <text class=\"tick\" x=\"-8\" y=\"{:.1}\" text-anchor=\"end\">{tick}</text>",
                SIDE + 18.0,
                y + 4.0
            );
        }
        let _ = writeln!(
            out,
            "<path class=\"frame\" d=\"M0 0h{SIDE}v{SIDE}h-{SIDE}z\"/>\
             <text class=\"axis\" x=\"8\" y=\"18\">predicted, {}</text>",
            self.unit
        );
        out
    }
}
