//! A number that says why: pressing it opens the tree of what it is made of, with formulas and sources.

use std::rc::Rc;

use shardscope::session::Branch;
use yew::prelude::*;

use super::{Icon, Sign, Tree};

/// What is being explained, and the way to explain something else.
#[derive(Clone, PartialEq)]
pub(crate) struct Explain {
    tell: UseStateSetter<Option<Rc<Branch>>>,
}

#[derive(Properties, PartialEq)]
pub(crate) struct ProviderProps {
    pub children: Html,
}

/// Holds the one card in which numbers are explained.
#[component]
pub(crate) fn Explaining(props: &ProviderProps) -> Html {
    let told = use_state(|| None::<Rc<Branch>>);
    html! {
        <ContextProvider<Explain> context={Explain { tell: told.setter() }}>
            { props.children.clone() }
            <div id="why" popover="auto" class="why" role="dialog" aria-labelledby="why-title">
                if let Some(branch) = told.as_ref() {
                    <header>
                        <h2 id="why-title">{ format!("{}: {}", branch.label, branch.value) }</h2>
                        <button type="button" class="button quiet" popovertarget="why" popovertargetaction="hide" aria-label="Close"><Icon sign={Sign::Close} /></button>
                    </header>
                    <Tree root={(**branch).clone()} open={1} />
                }
            </div>
        </ContextProvider<Explain>>
    }
}

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    /// The number as it is shown.
    pub text: AttrValue,
    /// What it is made of, worked out only when asked.
    pub why: Callback<(), Option<Branch>>,
}

#[component]
pub(crate) fn Number(props: &Props) -> Html {
    let explain = use_context::<Explain>();
    let onclick = {
        let why = props.why.clone();
        move |_| {
            if let Some(explain) = &explain {
                explain.tell.set(why.emit(()).map(Rc::new));
            }
        }
    };
    html! {
        <button type="button" class="number-button" popovertarget="why" {onclick}>{ &props.text }</button>
    }
}
