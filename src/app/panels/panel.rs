//! What a panel is.

use shardscope::session::{PtrEq, Shown};
use yew::prelude::*;

use crate::app::panel_id::PanelId;

/// A detail of an answer.
pub(super) struct Panel {
    pub id: PanelId,
    /// The text on its tab; `None` if it is reached from elsewhere.
    pub tab: Option<&'static str>,
    pub view: fn(PtrEq<Shown>) -> Html,
    /// Its step of the tour.
    pub story: Option<Story>,
}

/// A step of the tour.
#[derive(Clone, Copy)]
pub(crate) struct Story {
    pub title: &'static str,
    pub text: fn(&Shown) -> String,
}

#[derive(Properties, PartialEq)]
pub(super) struct PlanProps {
    pub shown: PtrEq<Shown>,
}
