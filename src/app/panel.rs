//! A part of the page that is drawn anew only when something in it changed.

use std::rc::Rc;

use yew::html::Html;
use yew::virtual_dom::{VComp, VNode};
use yew::{Component, Context, Properties};

use super::desk::{Desk, Draw, Place};
use super::parts::{Tag, group};

/// How a panel is drawn; the same for the life of the panel.
#[derive(Clone, Copy)]
pub(crate) enum Drawn {
    /// Whatever there is.
    Always(fn(&Desk) -> Tag),
    /// Whatever there is, when its turn has come.
    InTurn(fn(&Desk) -> Tag),
    /// When there is a plan and its turn has come.
    OfPlan(Draw),
}

#[derive(Properties)]
pub(crate) struct Props {
    desk: Desk,
    stamp: u32,
    drawn: Drawn,
}

impl PartialEq for Props {
    fn eq(&self, other: &Self) -> bool {
        self.stamp == other.stamp
    }
}

/// The component.
pub(crate) struct Panel;

impl Component for Panel {
    type Message = ();
    type Properties = Props;

    fn create(_: &Context<Self>) -> Self {
        Self
    }

    fn view(&self, context: &Context<Self>) -> Html {
        let Props { desk, drawn, stamp } = context.props();
        match drawn {
            Drawn::Always(draw) => draw(desk),
            Drawn::OfPlan(draw) if *stamp > 0 => desk.of_plan(*draw),
            Drawn::InTurn(draw) if *stamp > 0 => draw(desk),
            _ => group(),
        }
        .into()
    }
}

/// The panel at `place`.
#[inline(never)]
pub(crate) fn panel(desk: &Desk, place: Place, drawn: Drawn) -> VNode {
    let props = Props { desk: desk.clone(), stamp: desk.look.stamp(place), drawn };
    VNode::VComp(Rc::new(VComp::new::<Panel>(Rc::new(props), None)))
}
