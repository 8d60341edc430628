//! How the window on the schedule moves: by buttons, keys, the wheel and dragging.

use shardscope::session::schedule::Viewport;

/// Zoom factor per step.
pub(super) const ZOOM: f64 = 2.0;
/// Fraction of its length by which the window moves per step.
pub(super) const STEP: f64 = 0.25;

/// How the window on the schedule moves.
#[derive(Clone, Copy)]
pub(super) enum Pan {
    /// This many times longer, around a position in it from 0 to 1.
    Zoom(f64, f64),
    /// By this many of its lengths.
    Shift(f64),
    /// To the whole step.
    Whole,
}

impl Pan {
    /// The window after the move from `now`.
    pub(super) fn from(self, now: Viewport) -> Viewport {
        match self {
            Self::Zoom(factor, at) => now.zoomed(factor, at),
            Self::Shift(share) => now.moved(share),
            Self::Whole => Viewport::WHOLE,
        }
    }

    /// The move for a key; other keys are left to the browser.
    pub(super) fn of_key(key: &str) -> Option<Self> {
        Some(match key {
            "ArrowLeft" => Self::Shift(-STEP),
            "ArrowRight" => Self::Shift(STEP),
            "+" | "=" => Self::Zoom(1.0 / ZOOM, 0.5),
            "-" => Self::Zoom(ZOOM, 0.5),
            "0" | "Home" => Self::Whole,
            _ => return None,
        })
    }
}
