//! The name of a plan's model, for files that name one instead of giving its sizes.

use std::sync::OnceLock;

use crate::round::written;
use shardscope_catalog as catalog;
use shardscope_launch::Resolution;
use shardscope_launch::quantized_word;
use shardscope_plan::Field;

/// A model's name with its settings.
type Named = (&'static str, Vec<(Field, String)>);

/// Whether every setting of a model of the catalog has the plan's value.
pub(crate) fn is_shape(resolution: &Resolution, settings: &[(Field, String)]) -> bool {
    let differs = |(field, value): &(Field, String)| written(resolution, *field) != *value;
    !settings.is_empty() && !settings.iter().any(differs)
}

/// The first catalog name, on the Hub if it is there, whose model is the plan's.
pub(crate) fn model_name(resolution: &Resolution) -> Option<&'static str> {
    // Hundreds of configurations, each evaluated: once is enough.
    static ALL: OnceLock<Vec<Named>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let names = catalog::hub_names().chain(catalog::model_names());
        names.filter_map(|name| Some((name, catalog::model(name)?.1))).collect()
    });
    // Checkpoints quantized by another library have the shape of the original.
    let plain = |name: &str| quantized_word(name).is_none();
    all.iter().find(|(name, settings)| plain(name) && is_shape(resolution, settings)).map(|(name, _)| *name)
}
