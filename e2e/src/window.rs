//! What a browser's window is like.

/// Size in CSS pixels, device pixels per CSS pixel, and whether it is a phone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) scale: u32,
    pub(crate) mobile: bool,
}

/// The window of a page just opened.
pub(crate) const DESKTOP: Window = Window { width: 1280, height: 900, scale: 1, mobile: false };
