//! Where `from_pretrained` puts a model (`device_map`), which decides what several GPUs do.
//!
//! transformers spreads its layers over all GPUs that the process sees (`integrations/accelerate.py:_get_device_map`), its
//! Trainer then runs them as they lie, one GPU after the other (`trainer.py`: `is_model_parallel` sets `n_gpu` to 1), and
//! accelerate starts no distributed run with such a model (`accelerator.py:Accelerator.prepare_model`).

use super::dialect::Dialect;
use crate::leaves::Leaves;
use shardscope_plan::{Field, Word, word};
use shardscope_python::value::Value;

/// The key, and a model's device in groups of a settings file.
pub(super) const KEY: &str = "device_map";
/// A custom program's `device` in its model's group, where "auto" is the first GPU: no map.
const DEVICE: &str = "model_device";
/// Groups whose map places the trained model; others load models that generate, judge or are merged.
const GROUPS: [&str; 6] =
    ["model", "base_model", "training", "quantization", "model_kwargs", "model_init_kwargs"];
/// Values that spread layers (`integrations/accelerate.py:check_and_set_device_map`).
const SPREAD: [&str; 4] = ["auto", "balanced", "balanced_low_0", "sequential"];
/// unsloth's own default fills the first GPU (`unsloth/models/loader_utils.py:DEFAULT_DEVICE_MAP`), as does its name.
const UNSLOTHS: &str = "sequential";
/// Places that are no GPU.
const ELSEWHERE: [&str; 2] = ["cpu", "disk"];

/// What a value in a settings file's notation means; none for a process's own GPU (`cuda`) and for what is not known.
fn meant(value: &str) -> Option<word::DeviceMap> {
    let number = value.strip_prefix("cuda:").unwrap_or(value);
    match value {
        _ if SPREAD.contains(&value) => Some(word::DeviceMap::Layers),
        _ => number.parse::<u32>().ok().map(|_| word::DeviceMap::Numbered),
    }
}

/// The same of a program's object in that notation: of a dictionary, whether its modules lie on one GPU.
pub(super) fn written(map: &Value) -> Option<String> {
    let Value::Dictionary(pairs) = map else { return map.setting() };
    let mut places: Vec<String> = Vec::new();
    for (_, place) in pairs {
        let place = place.as_ref()?.setting()?;
        if !ELSEWHERE.contains(&place.as_str()) && !places.contains(&place) {
            places.push(place);
        }
    }
    match places.as_slice() {
        [only] => Some(only.clone()),
        [] => None,
        _ => Some(SPREAD[0].to_owned()),
    }
}

/// Other trainers replace it for each process (axolotl's `choose_device`, oumi's `build_huggingface_model`), or never hand it on.
pub(super) fn read(leaves: &mut Leaves<'_>, dialect: Dialect) {
    let own = matches!(dialect, Dialect::Transformers | Dialect::Trl);
    let unsloth = dialect.is_unsloth();
    leaves.pass(DEVICE);
    for leaf in leaves.all() {
        let mut parts = leaf.path.rsplit('.');
        if parts.next() != Some(KEY) {
            continue;
        }
        leaf.used.set(true);
        let trained = parts.next().is_none_or(|group| GROUPS.contains(&group));
        let spread = unsloth && leaf.value != UNSLOTHS && SPREAD.contains(&leaf.value.as_str());
        if let Some(map) = meant(&leaf.value).filter(|_| (own || spread) && trained) {
            leaves.say(Field::DeviceMap, map.word(), leaf);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Value, meant, written};
    use shardscope_plan::word::DeviceMap;

    #[test]
    fn maps_tell_layers_from_one_gpu() {
        for (value, expected) in [
            ("auto", Some(DeviceMap::Layers)),
            ("balanced_low_0", Some(DeviceMap::Layers)),
            ("cuda:0", Some(DeviceMap::Numbered)),
            ("0", Some(DeviceMap::Numbered)),
            ("cuda", None),
            ("cpu", None),
        ] {
            assert_eq!(meant(value), expected, "{value}");
        }
    }

    #[test]
    fn a_dictionary_with_several_gpus_spreads() {
        let of = |places: &[&str]| {
            let pairs = places.iter().map(|place| (String::new(), Some(Value::Number((*place).to_owned()))));
            written(&Value::Dictionary(pairs.collect()))
        };
        assert_eq!(of(&["0"]).as_deref(), Some("0"));
        assert_eq!(of(&["0", "0", "1"]).as_deref(), Some("auto"));
        assert_eq!(of(&[]), None);
        assert_eq!(written(&Value::Dictionary(vec![(String::new(), None)])), None);
        assert_eq!(written(&Value::Text("balanced".to_owned())).as_deref(), Some("balanced"));
    }
}
