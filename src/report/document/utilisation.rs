//! `report.utilisation`.

use crate::estimate::compute::Bound;
use crate::estimate::{Sizes, Utilisation};
use crate::json::Writer;

pub(super) fn utilisation(w: &mut Writer, products: &[Utilisation]) {
    w.list("utilisation");
    for product in products {
        w.object("");
        w.text("name", product.name);
        w.count("stage", product.stage);
        sizes(w, "full", product.full);
        sizes(w, "sharded", product.sharded);
        w.real("flops", product.flops.get());
        w.count("bytes", product.bytes.get());
        w.real("arithmetic_intensity", product.intensity);
        w.real("ridge", product.ridge);
        w.real("efficiency", product.efficiency);
        w.real("full_efficiency", product.full_efficiency);
        w.real("tile_fill", product.tile_fill);
        w.real("wave_fill", product.wave_fill);
        w.text(
            "bound",
            match product.bound {
                Bound::Compute => "compute",
                Bound::Memory => "memory",
            },
        );
        w.some_text("note", product.note().as_deref());
        w.close();
    }
    w.close();
}

fn sizes(w: &mut Writer, name: &str, sizes: Sizes) {
    w.object(name);
    w.count("m", sizes.m);
    w.count("n", sizes.n);
    w.count("k", sizes.k);
    w.count("batch", sizes.batch);
    w.close();
}
