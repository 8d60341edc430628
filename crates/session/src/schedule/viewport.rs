//! The visible part of a step.

/// A part of a step, as fractions of its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Viewport {
    /// Start, as a share of the step: 0 to 1.
    pub from: f64,
    /// Length, as a share of the step: up to 1.
    pub length: f64,
}

impl Viewport {
    /// The whole step.
    pub const WHOLE: Self = Self { from: 0.0, length: 1.0 };
    /// The shortest part that is shown.
    pub const SHORTEST: f64 = 1e-4;

    /// The same part with its length times `factor`, around the place `at` of it (0 its left, 1 its right end).
    #[must_use]
    pub fn zoomed(self, factor: f64, at: f64) -> Self {
        let length = (self.length * factor).clamp(Self::SHORTEST, 1.0);
        // The moment under the pointer stays under it: the change in length is distributed left and right of `at` in
        // proportion.
        Self { from: self.from + (self.length - length) * at, length }.inside()
    }

    /// The same part, moved by a share of its own length.
    #[must_use]
    pub fn moved(self, share: f64) -> Self {
        Self { from: self.from + self.length * share, ..self }.inside()
    }

    fn inside(self) -> Self {
        // The length is kept and the start moved, so that panning at an edge does not zoom.
        Self { from: self.from.clamp(0.0, 1.0 - self.length), ..self }
    }

    /// Where a moment of the step (0 to 1) is in the window, 0 to 1 inside of it.
    #[must_use]
    pub fn place(self, moment: f64) -> f64 {
        (moment - self.from) / self.length
    }
}

#[cfg(test)]
mod tests {
    use super::Viewport;

    #[test]
    fn a_window_stays_inside_the_step() {
        let near = Viewport::WHOLE.zoomed(0.5, 1.0);
        assert_eq!(near, Viewport { from: 0.5, length: 0.5 });
        assert_eq!(near.moved(1.0), near);
        assert_eq!(near.moved(-0.5), Viewport { from: 0.25, length: 0.5 });
        assert_eq!(near.zoomed(4.0, 0.0), Viewport::WHOLE);
        assert!(near.zoomed(0.0, 0.5).length >= Viewport::SHORTEST);
        assert!((near.place(0.75) - 0.5).abs() < 1e-12);
    }
}
