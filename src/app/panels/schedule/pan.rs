//! How the window on the schedule moves: by buttons, keys, the wheel and dragging.

use shardscope::session::schedule::Viewport;

/// How much longer or shorter the window gets at once.
pub(super) const ZOOM: f64 = 2.0;
/// By what part of its length the window moves at once.
pub(super) const STEP: f64 = 0.25;

/// How the window on the schedule moves.
#[derive(Clone, Copy)]
pub(super) enum Pan {
    /// So many times longer, around a place of it from 0 to 1.
    Zoom(f64, f64),
    /// By so many of its lengths.
    Shift(f64),
    /// To the whole step.
    Whole,
}

impl Pan {
    /// Where it leads from `now`.
    pub(super) fn from(self, now: Viewport) -> Viewport {
        match self {
            Self::Zoom(factor, at) => now.zoomed(factor, at),
            Self::Shift(share) => now.moved(share),
            Self::Whole => Viewport::WHOLE,
        }
    }

    /// What a key asks for; keys that mean nothing here are the browser's.
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
