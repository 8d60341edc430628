//! `report.utilisation`.

use serde_json::{Value, json};

use crate::estimate::compute::Bound;
use crate::estimate::{Sizes, Utilisation};

pub(super) fn utilisation(products: &[Utilisation]) -> Value {
    products
        .iter()
        .map(|product| {
            json!({
                "name": product.name,
                "stage": product.stage,
                "full": sizes(product.full),
                "sharded": sizes(product.sharded),
                "flops": product.flops.get(),
                "bytes": product.bytes.get(),
                "arithmetic_intensity": product.intensity,
                "ridge": product.ridge,
                "efficiency": product.efficiency,
                "full_efficiency": product.full_efficiency,
                "tile_fill": product.tile_fill,
                "wave_fill": product.wave_fill,
                "bound": match product.bound { Bound::Compute => "compute", Bound::Memory => "memory" },
                "note": product.note(),
            })
        })
        .collect()
}

fn sizes(sizes: Sizes) -> Value {
    json!({ "m": sizes.m, "n": sizes.n, "k": sizes.k, "batch": sizes.batch })
}
