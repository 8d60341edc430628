//! Every matrix product before and after sharding, and what sharding does to it.

use shardscope::estimate::compute::Bound;
use shardscope::estimate::{Sizes, Utilisation};
use shardscope::quantity::{Quantity, decimal, grouped, mib, percent};
use shardscope::session::Shown;

use crate::app::desk::Desk;
use crate::app::parts::{Tag, group, section, table, tag, with_remark};
use crate::app::words::{fill, matmuls as words, numbered};

pub(crate) fn utilisation(desk: &Desk, shown: &Shown) -> Tag {
    let rows = group().each(&shown.report.utilisation, row);
    let products = table(words::TABLE, "table.figures", &words::HEADS, rows);
    section(desk, "section.panel#matmuls", "matmuls-title", &words::PANEL).child(products)
}

fn row(product: &Utilisation) -> Tag {
    let bound = match product.bound {
        Bound::Compute => words::ARITHMETIC,
        Bound::Memory => words::MEMORY,
    };
    let stage = if product.stage > 0 { numbered(words::STAGE, &[product.stage]) } else { String::new() };
    let row = tag("tr")
        .two(product.name, &stage)
        .two(&sizes(product.sharded), &sizes(product.full))
        .number(decimal(product.flops.number() / 1e9, 1))
        .number(mib(product.bytes))
        .number(decimal(product.intensity, 0))
        .two_figures(percent(product.efficiency), percent(product.full_efficiency))
        .words(bound);
    match product.note() {
        Some(note) => with_remark(row, words::HEADS.len() as u64, note),
        None => row,
    }
}

fn sizes(sizes: Sizes) -> String {
    let product = fill("{0} × {1} × {2}", [grouped(sizes.m), grouped(sizes.n), grouped(sizes.k)]);
    if sizes.batch > 1 { fill("{0} × [{1}]", [grouped(sizes.batch), product]) } else { product }
}
