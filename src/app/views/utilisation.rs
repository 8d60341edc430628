//! Every matrix product before and after sharding, and what sharding does to it.

use shardscope::estimate::compute::Bound;
use shardscope::estimate::{Sizes, Utilisation};
use shardscope::quantity::{Quantity, decimal, grouped, mib, percent};
use shardscope::session::Shown;

use crate::app::desk::Desk;
use crate::app::parts::{Tag, group, section, table, tag, with_remark};

const HEADINGS: [&str; 7] = [
    "Product",
    "m × n × k on one GPU, whole below",
    ">GFLOP",
    ">moved",
    ">FLOP/byte",
    ">of peak",
    "bound by",
];

pub(crate) fn utilisation(_: &Desk, shown: &Shown) -> Tag {
    let about = "The sizes of each product of a layer before and after sharding, and how much of the accelerator's dense peak they reach.";
    let rows = group().each(&shown.report.utilisation, row);
    section("section.panel#matmuls", "matmuls-title", "Matrix products", about).child(table(
        "Table of matrix products".to_owned(),
        "table.figures",
        &HEADINGS,
        rows,
    ))
}

fn row(product: &Utilisation) -> Tag {
    let bound = match product.bound {
        Bound::Compute => "arithmetic",
        Bound::Memory => "memory",
    };
    let stage = if product.stage > 0 { format!("stage {}", product.stage) } else { String::new() };
    let row = tag("tr")
        .two(product.name.to_owned(), stage)
        .two(sizes(product.sharded), sizes(product.full))
        .number(decimal(product.flops.number() / 1e9, 1))
        .number(mib(product.bytes))
        .number(decimal(product.intensity, 0))
        .two_figures(percent(product.efficiency), percent(product.full_efficiency))
        .words(bound.to_owned());
    match product.note() {
        Some(note) => with_remark(row, HEADINGS.len() as u64, note),
        None => row,
    }
}

fn sizes(sizes: Sizes) -> String {
    let product = format!("{} × {} × {}", grouped(sizes.m), grouped(sizes.n), grouped(sizes.k));
    if sizes.batch > 1 { format!("{} × [{product}]", grouped(sizes.batch)) } else { product }
}
