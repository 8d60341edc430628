//! What only a settings file's name says.

use crate::{Effect, Found, NotModelled, Origin, Reading};
use shardscope_bash::base_name;
use shardscope_plan::{Field, Software};

/// verl's example of a critic beside the policy (`examples/split_placement`): its program gives either half of the accelerators.
const SPLIT: &str = "ppo_trainer_split.yaml";

/// Takes it.
pub(crate) fn take(reading: &mut Reading, file: &str) {
    let torchtune = matches!(reading.software, Some((Software::Torchtune | Software::Torchtune06, _)));
    // torchtune's files for single-device recipes have this in their name, and say it nowhere else (`recipes/configs/`).
    if torchtune && file.contains("_single_device") {
        reading.take(Found::new(Field::WorldSize, "1", Origin::Derived).note("named for a single device"));
    }
    if reading.value(Field::RlFramework).is_some() && base_name(file) == SPLIT {
        let what = "policy and critic on a half of the accelerators each (split_placement)";
        reading.not_modelled.push(NotModelled::new("main_ppo_split.py", "", Effect::Memory, what));
    }
}
