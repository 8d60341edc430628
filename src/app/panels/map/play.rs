//! One training step as shown on the map: the groups that communicate, one kind after the other, in the order in
//! which a step needs them.

use gloo::timers::callback::Timeout;
use shardscope::session::Shown;
use shardscope::session::map::relations;
use shardscope::topology::GroupKind;
use yew::prelude::*;

/// How long each kind of group is shown: long enough to read its sentence. Unit: millisecond.
const LONG: u32 = 3_500;

/// The kinds in the order of a step: inside every layer, between stages, at its end.
pub(super) fn scenes(shown: &Shown) -> Vec<GroupKind> {
    let place = |kind: &GroupKind| match kind {
        GroupKind::Tensor => 0,
        GroupKind::Context => 1,
        GroupKind::ExpertTensor => 2,
        GroupKind::Expert => 3,
        GroupKind::Pipeline => 4,
        GroupKind::ExpertData => 6,
        GroupKind::Embedding => 7,
        // All groups of data parallelism, which reduce at the end of backward.
        _ => 5,
    };
    let mut kinds = relations(&shown.plan);
    // Stable, so kinds at the same moment keep the order of `relations`.
    kinds.sort_by_key(place);
    kinds
}

/// When in a step a kind of group communicates.
pub(super) const fn moment(kind: GroupKind) -> &'static str {
    match kind {
        GroupKind::Tensor | GroupKind::ExpertTensor => "In every layer, forward and backward",
        GroupKind::Context => "In the attention of every layer",
        GroupKind::Expert => "Before and after the experts of every MoE layer",
        GroupKind::Pipeline => "After every micro-batch of a stage",
        GroupKind::Embedding => "At the end of the step, for the tied embedding",
        _ => "At the end of the step, overlapped with the last backward passes where the plan says so",
    }
}

/// The scene that is played, and the button's callback, which starts and stops.
#[hook]
pub(super) fn use_play(scenes: usize) -> (Option<usize>, Callback<MouseEvent>) {
    let scene = use_state_eq(|| None::<usize>);
    {
        let setter = scene.setter();
        use_effect_with((*scene, scenes), move |(now, scenes)| {
            let scenes = *scenes;
            // `None` after the last one ends playback.
            let timer = now.map(|now| {
                Timeout::new(LONG, move || setter.set(Some(now + 1).filter(|next| *next < scenes)))
            });
            move || drop(timer)
        });
    }
    let toggle = {
        let (now, setter) = (*scene, scene.setter());
        Callback::from(move |_| setter.set(if now.is_some() { None } else { Some(0) }))
    };
    (*scene, toggle)
}
