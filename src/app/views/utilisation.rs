//! Every matrix product before and after sharding, and what sharding does to it.

use shardscope::estimate::compute::Bound;
use shardscope::estimate::{Sizes, Utilisation};
use shardscope::quantity::{Quantity, decimal, grouped, mib, percent};
use yew::prelude::*;

use crate::app::desk::Desk;
use crate::app::parts::{Cell, Row, table};

pub(crate) fn utilisation(desk: &Desk) -> Html {
    let rows = desk.shown.report.utilisation.iter().map(row).collect();
    let headings = [
        "Product",
        "m × n × k on one GPU, whole below",
        ">GFLOP",
        ">moved",
        ">FLOP/byte",
        ">of peak",
        "bound by",
    ];
    html! {
        <section class="panel" id="matmuls" aria-labelledby="matmuls-title">
            <header>
                <h2 id="matmuls-title">{ "Matrix products" }</h2>
                <p>{ "The sizes of each product of a layer before and after sharding, and how much of the accelerator's dense peak they reach." }</p>
            </header>
            { table("Table of matrix products", "", &headings, rows) }
        </section>
    }
}

fn row(product: &Utilisation) -> Row {
    let bound = match product.bound {
        Bound::Compute => "arithmetic",
        Bound::Memory => "memory",
    };
    let stage = if product.stage > 0 { format!("stage {}", product.stage) } else { String::new() };
    let cells = vec![
        Cell::Two(product.name.to_owned(), stage),
        Cell::Two(sizes(product.sharded), sizes(product.full)),
        Cell::Number(decimal(product.flops.number() / 1e9, 1)),
        Cell::Number(mib(product.bytes)),
        Cell::Number(decimal(product.intensity, 0)),
        Cell::DrawnNumber(
            html! { <>{ percent(product.efficiency) }<span class="before">{ percent(product.full_efficiency) }</span></> },
        ),
        Cell::Text(bound.to_owned()),
    ];
    Row { cells, note: product.note(), class: "" }
}

fn sizes(sizes: Sizes) -> String {
    let product = format!("{} × {} × {}", grouped(sizes.m), grouped(sizes.n), grouped(sizes.k));
    if sizes.batch > 1 { format!("{} × [{product}]", grouped(sizes.batch)) } else { product }
}
