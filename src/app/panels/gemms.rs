//! Every GEMM before and after sharding, and what sharding does to it.

use shardscope::estimate::compute::Bound;
use shardscope::estimate::{Sizes, Utilisation};
use shardscope::session::{PtrEq, Shown};
use shardscope::units::{Count, Quantity, decimal, grouped, percent, size};
use yew::prelude::*;

use super::panel::Panel;
use crate::app::panel_id::PanelId;
use crate::app::widgets::{Term, heads, pair, remark, section, wide};

pub(super) const PANEL: Panel =
    Panel { id: PanelId::Gemms, tab: Some("GEMMs"), view: |shown| gemms(&shown), story: None };

const HEADS: [&str; 7] =
    ["GEMM", "m × n × k per rank, unsharded below", ">GFLOP", ">moved", ">FLOP/byte", ">of peak", "bound by"];

fn gemms(shown: &PtrEq<Shown>) -> Html {
    let about = html! {
        <>
            { "GEMM shapes of a layer before and after sharding, and the share of dense peak each reaches. " }
            <Term name="tile">{ "Tiles" }</Term>{ ", " }<Term name="wave">{ "waves" }</Term>{ " and " }
            <Term name="FLOP/byte" />{ " explain the rest." }
        </>
    };
    section(
        "gemms",
        "",
        "GEMMs",
        about,
        html! { <>{ wide("Table of GEMMs", html! { <table class="figures">
            <thead>{ heads(&HEADS) }</thead>
            <tbody>{ for shown.report.utilisation.iter().map(row) }</tbody>
        </table> }) }</> },
    )
}

fn row(product: &Utilisation) -> Html {
    let bound = match product.bound {
        Bound::Compute => "compute",
        Bound::Memory => "memory",
    };
    // Stage 0 has all products of a layer, and need not be named in each line.
    let stage = if product.stage > 0 { format!("stage {}", product.stage) } else { String::new() };
    html! {
        <>
            <tr>
                <th scope="row">{ pair(product.name, stage) }</th>
                <td>{ pair(sizes(product.sharded), sizes(product.full)) }</td>
                <td class="number">{ rounded(product.flops.number() / 1e9, 1) }</td>
                <td class="number">{ size(product.bytes) }</td>
                <td class="number">{ rounded(product.intensity, 0) }</td>
                <td class="number">{ pair(percent(product.efficiency), percent(product.full_efficiency)) }</td>
                <td>{ bound }</td>
            </tr>
            { product.note().map(|note| remark(HEADS.len(), note)) }
        </>
    }
}

/// A figure with grouped thousands, and with decimals only below a thousand.
fn rounded(figure: f64, places: usize) -> String {
    // Below a thousand decimals matter, above it they are noise.
    if figure < 1e3 { decimal(figure, places) } else { grouped(Count::rounded_up(figure.round()).get()) }
}

fn sizes(sizes: Sizes) -> String {
    let product = format!("{} × {} × {}", grouped(sizes.m), grouped(sizes.n), grouped(sizes.k));
    if sizes.batch > 1 { format!("{} × [{product}]", grouped(sizes.batch)) } else { product }
}
