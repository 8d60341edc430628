//! Every matrix product before and after sharding, and what sharding does to it.

use shardscope::estimate::compute::Bound;
use shardscope::estimate::{Sizes, Utilisation as Product};
use shardscope::quantity::{Quantity, decimal, grouped, mib, percent};
use shardscope::session::{Held, Shown};
use yew::prelude::*;

use crate::app::parts::Wide;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub shown: Held<Shown>,
}

#[component]
pub(crate) fn Utilisation(props: &Props) -> Html {
    let products = &props.shown.report.utilisation;
    html! {
        <section class="panel" id="matmuls" aria-labelledby="matmuls-title">
            <header>
                <h2 id="matmuls-title">{ "Matrix products" }</h2>
                <p>{ "The sizes of each product of a layer before and after sharding, and how much of the accelerator's dense peak they reach." }</p>
            </header>
            <Wide label="Table of matrix products">
                <table class="figures">
                    <thead><tr>
                        <th scope="col">{ "Product" }</th>
                        <th scope="col">{ "m × n × k: whole, then on one GPU" }</th>
                        <th scope="col" class="number">{ "GFLOP" }</th>
                        <th scope="col" class="number">{ "moved" }</th>
                        <th scope="col" class="number">{ "FLOP/byte" }</th>
                        <th scope="col" class="number">{ "of peak" }</th>
                        <th scope="col">{ "bound by" }</th>
                    </tr></thead>
                    <tbody>{ for products.iter().map(row) }</tbody>
                </table>
            </Wide>
        </section>
    }
}

fn row(product: &Product) -> Html {
    let bound = match product.bound {
        Bound::Compute => "arithmetic",
        Bound::Memory => "memory",
    };
    let stage = if product.stage > 0 { format!(" (stage {})", product.stage) } else { String::new() };
    html! {
        <>
            <tr>
                <th scope="row" class="mono">{ product.name }<span class="soft">{ stage }</span></th>
                <td class="mono"><span class="before">{ sizes(product.full) }</span>{ sizes(product.sharded) }</td>
                <td class="number">{ decimal(product.flops.number() / 1e9, 1) }</td>
                <td class="number">{ mib(product.bytes) }</td>
                <td class="number">{ decimal(product.intensity, 0) }</td>
                <td class="number"><span class="before">{ percent(product.full_efficiency) }</span>{ percent(product.efficiency) }</td>
                <td>{ bound }</td>
            </tr>
            if let Some(note) = product.note() {
                <tr class="remark"><td colspan="7">{ note }</td></tr>
            }
        </>
    }
}

fn sizes(sizes: Sizes) -> String {
    let product = format!("{} × {} × {}", grouped(sizes.m), grouped(sizes.n), grouped(sizes.k));
    if sizes.batch > 1 { format!("{} × [{product}]", grouped(sizes.batch)) } else { product }
}
