//! A plot of predicted against measured: logarithmic axes, the diagonal, and the bands of 5 and 10 %.

use maud::{Markup, html};

use super::entry::{Architecture, Entry};

/// Side of the square spanned by the axes, in the plot's units.
const SIDE: f64 = 480.0;
/// Space for the numbers on the axes.
const MARGIN: f64 = 44.0;
/// Margin on the other sides.
const EDGE: f64 = 12.0;
/// Space between the two frames, including the numbers of the first.
const GAP: f64 = 48.0;
/// Height of the second frame, which shows the errors.
const ERRORS: f64 = 180.0;
/// The error at its upper end; anything beyond is drawn on the edge.
const FAR: f64 = 0.25;
/// CSS classes of the bands and their errors, the wider band first.
const BANDS: [(&str, f64); 2] = [("band ten", 0.10), ("band five", 0.05)];

/// Span of both axes.
struct Axis {
    /// Logarithm to base 10 of its ends.
    from: f64,
    to: f64,
}

impl Axis {
    /// The smallest span that contains every point, with some padding.
    fn new(entries: &[Entry]) -> Self {
        // Measured and predicted: with the same span on both axes, equal values are on the diagonal.
        let values = || entries.iter().flat_map(|entry| [entry.measured, entry.predicted]);
        let least = values().fold(f64::INFINITY, f64::min);
        let most = values().fold(0.0, f64::max);
        Self { from: least.log10() - 0.08, to: most.log10() + 0.08 }
    }

    /// Position along the axis, for a logarithm.
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

/// The data of one plot.
pub(super) struct Plot<'a> {
    /// Its name in identifiers.
    pub(super) key: &'static str,
    /// A description, for readers who cannot see it.
    pub(super) about: &'static str,
    /// The unit of both axes.
    pub(super) unit: &'static str,
    /// Its points.
    pub(super) entries: &'a [Entry],
}

impl Plot<'_> {
    /// The plot as SVG: one `use` element per row and frame, in the order of the rows.
    #[must_use]
    pub(super) fn svg(&self) -> Markup {
        let axis = Axis::new(self.entries);
        let (width, height) = (MARGIN + SIDE + EDGE, EDGE + SIDE + GAP + ERRORS + MARGIN);
        let frame = format!("{}-frame", self.key);
        html! {
            svg.scatter viewBox={ "0 0 " (width) " " (height) } role="img" aria-label=(self.about) {
                (self.marks())
                clipPath id=(frame) { path d={ "M0 0h" (SIDE) "v" (SIDE) "h-" (SIDE) "z" } {} }
                g transform={ "translate(" (MARGIN) " " (EDGE) ")" } {
                    (self.ground(&axis, &frame))
                    (self.points(|entry| (axis.at(entry.measured.log10()), SIDE - axis.at(entry.predicted.log10()))))
                }
                (self.errors(&axis))
            }
        }
    }

    /// The same points by error, with enough space for the bands.
    fn errors(&self, axis: &Axis) -> Markup {
        let y = |error: f64| ERRORS * (0.5 - error.clamp(-FAR, FAR) / FAR / 2.0);
        html! {
            g transform={ "translate(" (MARGIN) " " (EDGE + SIDE + GAP) ")" } {
                @for (name, share) in BANDS {
                    path class=(name) d=(format!("M0 {:.1}H{SIDE}V{:.1}H0z", y(share), y(-share))) {}
                }
                @for error in [-0.2, -0.1, 0.0, 0.1, 0.2] {
                    path class=(if error == 0.0 { "diagonal" } else { "grid" }) d=(format!("M0 {:.1}H{SIDE}", y(error))) {}
                    text.tick x="-8" y=(format!("{:.1}", y(error) + 4.0)) text-anchor="end" {
                        @if error > 0.0 { "+" } (format!("{:.0}%", 100.0 * error))
                    }
                }
                @for tick in axis.ticks() {
                    @let place = format!("{:.1}", axis.at(tick.log10()));
                    path.grid d={ "M" (place) " 0V" (ERRORS) } {}
                    text.tick x=(place) y=(ERRORS + 18.0) text-anchor="middle" { (tick) }
                }
                path.frame d={ "M0 0h" (SIDE) "v" (ERRORS) "h-" (SIDE) "z" } {}
                text.axis x=(SIDE) y=(ERRORS + 36.0) text-anchor="end" { "measured, " (self.unit) }
                text.axis x="8" y="18" { "error" }
                (self.points(|entry| (axis.at(entry.measured.log10()), y(entry.error()))))
            }
        }
    }

    /// Every row at its position, and the ring around the selected one.
    fn points(&self, place: impl Fn(&Entry) -> (f64, f64)) -> Markup {
        html! {
            g.points {
                @for entry in self.entries {
                    @let (x, y) = place(entry);
                    @let kind = entry.architecture.key();
                    use href={ "#" (self.key) "-" (kind) } class=(kind)
                        x=(format!("{x:.1}")) y=(format!("{y:.1}")) {}
                }
            }
            circle.here r="7" visibility="hidden" {}
        }
    }

    /// One shape per kind, so that they can be told apart without colour.
    fn marks(&self) -> Markup {
        let id = |kind: Architecture| format!("{}-{}", self.key, kind.key());
        html! {
            defs {
                circle id=(id(Architecture::Dense)) r="2.7" {}
                path id=(id(Architecture::Experts)) d="M0-3.8 3.5 2.4H-3.5z" {}
                path id=(id(Architecture::Sharded)) d="M-2.5-2.5h5v5h-5z" {}
            }
        }
    }

    /// Bands, diagonal, grid and axes.
    fn ground(&self, axis: &Axis, frame: &str) -> Markup {
        let band = |share: f64| {
            // On logarithmic axes a relative error is a shift, the same at both ends.
            let [over, under] = [1.0 + share, 1.0 - share].map(|factor| axis.at(axis.from + factor.log10()));
            format!("M0 {:.2}L{SIDE} {:.2}V{:.2}L0 {:.2}z", SIDE - over, -over, -under, SIDE - under)
        };
        html! {
            g clip-path={ "url(#" (frame) ")" } {
                @for (name, share) in BANDS { path class=(name) d=(band(share)) {} }
                path.diagonal d={ "M0 " (SIDE) "L" (SIDE) " 0" } {}
            }
            @for tick in axis.ticks() {
                @let place = axis.at(tick.log10());
                path.grid d=(format!("M{place:.1} 0V{SIDE}M0 {:.1}H{SIDE}", SIDE - place)) {}
                text.tick x=(format!("{place:.1}")) y=(SIDE + 18.0) text-anchor="middle" { (tick) }
                text.tick x="-8" y=(format!("{:.1}", SIDE - place + 4.0)) text-anchor="end" { (tick) }
            }
            path.frame d={ "M0 0h" (SIDE) "v" (SIDE) "h-" (SIDE) "z" } {}
            text.axis x="8" y="18" { "predicted, " (self.unit) }
        }
    }
}
