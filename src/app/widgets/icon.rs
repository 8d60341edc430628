//! Icons, drawn in the colour of the surrounding text and hidden from screen readers.

use yew::prelude::*;

/// Which sign.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Sign {
    Good,
    Tight,
    Bad,
    Note,
    Sun,
    Moon,
    Half,
    Download,
    Copy,
    Open,
    Close,
    Undo,
    Redo,
    Pin,
    Share,
    Swap,
}

impl Sign {
    const fn path(self) -> &'static str {
        match self {
            Self::Good => "M3 8.5l3.2 3.2L13 4.8",
            Self::Tight => "M8 2.2L14.5 13.5h-13zM8 6.5v3.2M8 11.6v.2",
            Self::Bad | Self::Close => "M4 4l8 8M12 4l-8 8",
            Self::Note => "M8 1.8a6.2 6.2 0 100 12.4A6.2 6.2 0 008 1.8zM8 7.2v4M8 4.8v.2",
            Self::Sun => {
                "M8 5a3 3 0 100 6 3 3 0 000-6zM8 1v1.6M8 13.4V15M1 8h1.6M13.4 8H15M3 3l1.2 1.2M11.8 11.8L13 13M13 3l-1.2 1.2M4.2 11.8L3 13"
            }
            Self::Moon => "M13.5 9.8A6 6 0 016.2 2.5a6 6 0 107.3 7.3z",
            Self::Half => "M8 1.8a6.2 6.2 0 100 12.4a6.2 6.2 0 100 -12.4v12.4",
            Self::Download => "M8 2v8M4.8 7L8 10.2 11.2 7M2.5 13.5h11",
            Self::Copy => "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
            Self::Open => "M1.8 13V3h4l1.6 2h6.8v8z",
            Self::Undo => "M3 6.5h6.5a3.5 3.5 0 010 7H6M3 6.5l3-3M3 6.5l3 3",
            Self::Redo => "M13 6.5H6.5a3.5 3.5 0 000 7H10M13 6.5l-3-3M13 6.5l-3 3",
            Self::Pin => "M8 10v4.5M5 2h6l-1 4 2.5 2.5V10h-9V8.5L6 6z",
            Self::Share => "M8 10V2M5 4.8L8 1.8l3 3M4.5 7.5h-2v6.5h11V7.5h-2",
            Self::Swap => "M2.5 5.5h10M9.8 2.8l2.7 2.7-2.7 2.7M13.5 10.5h-10M6.2 7.8l-2.7 2.7 2.7 2.7",
        }
    }
}

/// An icon, sized by its context, and no larger than a letter if no style sheet sets a size.
pub(crate) fn icon(sign: Sign) -> Html {
    html! {
        <svg class="icon" width="16" height="16" viewBox="0 0 16 16" aria-hidden="true" focusable="false" fill="none">
            <path
                d={sign.path()}
                stroke="currentColor"
                stroke-width="1.6"
                stroke-linecap="round"
                stroke-linejoin="round"
            />
        </svg>
    }
}
