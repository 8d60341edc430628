//! Everything about the picked GPU.

use shardscope::session::map::{About, Relation};
use shardscope::topology::Link;
use yew::prelude::*;

/// The panel about the picked GPU.
pub(crate) fn about_gpu(about: &About, memory: Option<String>, onclose: &Callback<()>) -> Html {
    let About { rank, label, stage, holds, relations } = about;
    let onclick = onclose.reform(|_: MouseEvent| ());
    html! {
        <aside class="about-gpu" aria-label="The picked GPU">
            <header>
                <h3 class="mono">{ label }</h3>
                <span class="soft">{ format!("rank {}", rank.get()) }</span>
                <button type="button" class="button quiet" {onclick}>{ "Clear" }</button>
            </header>
            <dl class="facts">
                <div><dt>{ "Pipeline stage" }</dt><dd>{ stage.to_string() }</dd></div>
                { for holds.iter().enumerate().map(|(chunk, text)| html! {
                    <div>
                        <dt>{ if holds.len() > 1 { format!("Holds, chunk {chunk}") } else { "Holds".to_owned() } }</dt>
                        <dd>{ text }</dd>
                    </div>
                }) }
                if let Some(memory) = memory {
                    <div><dt>{ "Memory at the peak" }</dt><dd>{ memory }</dd></div>
                }
            </dl>
            <ul class="relations">{ for relations.iter().map(relation) }</ul>
            if relations.is_empty() {
                <p class="soft small">{ "It works alone: every parallel size is 1." }</p>
            }
        </aside>
    }
}

fn relation(relation: &Relation) -> Html {
    let link = match relation.link {
        Link::Network => "over the network",
        Link::Node => "inside the node, beyond NVLink",
        Link::Fast => "over NVLink",
        Link::Alone => "alone",
    };
    html! {
        <li>
            <p class="relation-name">
                <span class={format!("dot {}", relation.kind.short())} aria-hidden="true"></span>
                <strong>{ relation.name }</strong>
            </p>
            <p class="soft small">{ format!("group {} of {}, {} GPUs, {link}", relation.index, relation.of, relation.members.len()) }</p>
            <p class="mono members">{ &relation.written }</p>
        </li>
    }
}
