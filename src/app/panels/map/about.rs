//! Everything about the picked GPU.

use shardscope::session::Event;
use shardscope::session::map::{About, Relation};
use shardscope::topology::Link;
use shardscope::units::grouped;
use yew::prelude::*;

use crate::app::context::{send, use_dispatch};
use crate::app::widgets::named;

#[derive(Properties, PartialEq)]
pub(super) struct Props {
    pub about: About,
    pub memory: String,
}

/// The panel about the picked GPU.
#[component(AboutGpu)]
pub(super) fn about_gpu(Props { about, memory }: &Props) -> Html {
    let dispatch = use_dispatch();
    let fact = |name: String, value: String| html! { <div><dt>{ name }</dt><dd>{ value }</dd></div> };
    let chunks = about.holds.len();
    html! {
        <aside class="about-gpu" aria-label="The picked GPU">
            <header>
                <h3 class="mono">{ &about.label }</h3>
                <span class="soft">{ format!("rank {}", grouped(about.rank.get())) }</span>
                <button
                    type="button"
                    class="button quiet"
                    onclick={send(&dispatch, || Event::Pick(None).into())}
                >{ "Clear" }</button>
            </header>
            <dl class="facts">
                { fact("Pipeline stage".to_owned(), about.stage.to_string()) }
                { for about.holds.iter().enumerate().map(|(chunk, text)| {
                    let name = if chunks > 1 { format!("Holds, chunk {chunk}") } else { "Holds".to_owned() };
                    fact(name, text.clone())
                }) }
                { fact("Peak memory".to_owned(), memory.clone()) }
            </dl>
            <ul class="relations">{ for about.relations.iter().map(relation) }</ul>
            if about.relations.is_empty() {
                <p class="soft small">{ "No partners: every parallel size is 1." }</p>
            }
        </aside>
    }
}

fn relation(relation: &Relation) -> Html {
    // Words of this panel, with a preposition; `link_name` has those for captions.
    let link = match relation.link {
        Link::Network => "over the network",
        Link::Node => "inside the node, outside NVLink",
        Link::Fast => "over NVLink",
        Link::Alone => "alone",
    };
    html! {
        <li>
            <p class="relation-name">
                <span class={classes!("dot", relation.kind.short())} aria-hidden="true"></span>
                <strong>{ named(relation.name) }</strong>
            </p>
            <p class="soft small">
                { format!("group {} of {}, {} GPUs, {link}", grouped(relation.index), grouped(relation.of), grouped(relation.members.len() as u64)) }
            </p>
            <p class="mono members" tabindex="0">{ &relation.written }</p>
        </li>
    }
}
