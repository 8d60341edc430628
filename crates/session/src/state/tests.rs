//! What events do to a state.

use super::*;

fn after(events: Vec<Event>) -> State {
    events.into_iter().fold(State::default(), apply)
}

#[test]
fn the_example_is_a_plan_of_sixteen() {
    let state = State::default();
    let plan = state.shown.map(|shown| shown.plan.layout().world_size);
    assert_eq!(plan, Some(16), "{:?}", state.answer.resolution.diagnostics);
}

#[test]
fn what_was_measured_changes_no_answer_and_is_undone_like_anything() {
    let log = " iteration 1/ 9 | elapsed time per iteration (ms): 5000.0 |";
    let found = shardscope_measured::read(log.as_bytes()).expect("figures");
    let first = State::default();
    let own = |state: &State| Event::Own(Box::new(state.input.own.with_log(log)));
    let pasted = apply(first.clone(), own(&first));
    assert!(pasted.is_settled() && pasted.shown == first.shown, "the same answer, not one like it");
    assert_eq!((pasted.entries, pasted.input.own.is_unread()), (0, true));
    let read = apply(pasted.clone(), Event::Measured(log.into(), found.clone()));
    assert!(read.is_settled() && !read.input.own.is_unread());
    // The figures of a text that is gone are nobody's.
    let gone = apply(apply(pasted, Event::Undo), Event::Measured(log.into(), found));
    assert!(gone.input.own.is_empty() && gone.input.own.read.is_none());
    let again = apply(apply(read.clone(), Event::Undo), Event::Redo);
    assert_eq!(again.input.own, read.input.own);
    // Another layout of a search that began before it, and the form for a model, leave it where it is.
    let before = Box::new(first.input.clone());
    let tried = Event::TryOn(before, vec![("tensor_model_parallel_size".into(), "4".into())]);
    assert_eq!(apply(read.clone(), tried).input.own, read.input.own);
    let started = apply(
        read.clone(),
        Event::Start(Box::new(UserInput::of_settings(vec![("num_nodes".into(), "4".into())]))),
    );
    assert_eq!(started.input.own, read.input.own);
}

#[test]
fn figures_come_first_where_they_are_wanted_and_the_advice_behind_them() {
    let input = UserInput::from_text(EXAMPLE);
    let first = State::figures_first(input.clone());
    let advice = |state: &State| state.shown.as_ref().map(|shown| shown.report.advice.clone());
    assert_eq!(advice(&first), Some(Vec::new()));
    let whole = State::new(input);
    let advised = apply(first.clone(), Event::Advise);
    assert!(advice(&whole).is_some_and(|advice| !advice.is_empty()));
    assert_eq!(advice(&advised), advice(&whole));
    // A link followed meanwhile is answered the same way, and nothing after that waits.
    let opened = apply(first, Event::Open(Box::new(UserInput::from_text(&EXAMPLE.replace("TP=2", "TP=1")))));
    assert_eq!(advice(&opened), Some(Vec::new()));
    let turned = apply(apply(opened, Event::Advise), set("num_nodes", "4"));
    assert!(advice(&turned).is_some_and(|advice| !advice.is_empty()));
}

#[test]
fn a_link_followed_from_an_input_without_an_answer_is_answered_like_any_other() {
    let own = UserInput::from_text(EXAMPLE);
    let link = "/1?layers=4&hidden=256&heads=4&seq=128&vocab_size=1000&mbs=1&gbs=8&gpus_per_node=8&nodes=1"
        .to_owned();
    let from = |state: State| apply(state, Event::Follow(link.clone()));
    let (quick, whole) = (from(State::unanswered(own.clone())), from(State::figures_first(own.clone())));
    assert!(quick.shown.is_some(), "{:?}", quick.answer.resolution.diagnostics);
    assert_eq!((&quick.input, quick.is_another), (&whole.input, whole.is_another));
    assert!(quick.answer.resolution.plan == whole.answer.resolution.plan);
    // The user's own text is one step back, with its answer.
    let back = apply(quick, Event::Undo);
    assert!(back.input == own && back.shown.is_some());
    assert!(State::unanswered(own).shown.is_none());
}

#[test]
fn a_text_without_a_plan_shows_no_other_plan() {
    let state = after(vec![Event::Edit("prose, not a script".into())]);
    assert!(state.shown.is_some() && !state.is_settled(), "the answer waits for the pause");
    let state = apply(state, Event::Settle);
    assert!(state.shown.is_none() && state.is_settled());
    let state = apply(state, Event::Open(Box::new(UserInput::from_text(EXAMPLE))));
    assert!(state.shown.is_some());
}

#[test]
fn a_refused_value_leaves_the_plan_and_says_why() {
    let before = State::default();
    let state = apply(before.clone(), set("tensor_model_parallel_size", "16"));
    let refused = state.refused.clone().expect("TP 16 × PP 2 needs 32 GPUs");
    assert_eq!(refused.values, [("tensor_model_parallel_size".to_owned(), "16".to_owned())]);
    assert!(refused.reason.contains("32"), "{}", refused.reason);
    assert_eq!((&state.input, &state.shown), (&before.input, &before.shown));
    assert!(!state.steps.can_undo(), "nothing happened that could be undone");
    let state = apply(state, set("num_nodes", "4"));
    assert!(state.refused.is_none() && world(&state) == Some(32));
}

#[test]
fn an_answered_question_is_open_no_more() {
    let script = "deepspeed --num_gpus 8 finetune.py --deepspeed ds/my_zero.json --model_name_or_path \
        meta-llama/Llama-3.1-8B-Instruct --per_device_train_batch_size 1 --max_seq_length 4096 --bf16";
    let asked = |state: &State| -> Vec<String> {
        state.answer.resolution.questions.iter().map(|question| question.name().to_owned()).collect()
    };
    let state = after(vec![Event::Open(Box::new(UserInput::from_text(script)))]);
    assert_eq!((asked(&state), state.shown.is_some()), (vec!["zero_stage".to_owned()], false));
    let answered = apply(state.clone(), set("zero_stage", "3"));
    assert_eq!((asked(&answered), answered.shown.is_some()), (vec![], true));
    let unreadable = apply(state, set("zero_stage", "three"));
    assert_eq!(asked(&unreadable), ["zero_stage"], "what cannot be read answers nothing");
}

#[test]
fn layouts_of_a_list_are_tried_on_the_plan_that_it_was_searched_from() {
    let first = State::default();
    let tried = |state: State, name: &str, value: &str| {
        let values = vec![(name.to_owned(), value.to_owned())];
        apply(state, Event::TryOn(Box::new(first.input.clone()), values))
    };
    let one = tried(first.clone(), "tensor_model_parallel_size", "4");
    let two = tried(one, "micro_batch_size", "2");
    let shown = two.shown.clone().expect("a plan");
    assert_eq!(shown.plan.layout().tensor, 2, "nothing of the first is left");
    assert_eq!(shown.plan.recipe().micro_batch_size, 2);
    let back = apply(apply(two, Event::Undo), Event::Undo);
    assert_eq!(back.input, first.input);
}

#[test]
fn a_value_given_by_hand_counts_until_taken_back() {
    let set = Event::Set { name: "num_nodes".into(), value: "4".into() };
    let state = after(vec![set, Event::Pick(Some(Rank::new(20)))]);
    assert_eq!(state.shown.as_ref().map(|shown| shown.plan.layout().world_size), Some(32));
    assert_eq!(state.picked, Some(Rank::new(20)));
    let state = apply(state, Event::Unset("num_nodes".into()));
    assert_eq!(state.shown.as_ref().map(|shown| shown.plan.layout().world_size), Some(16));
    assert_eq!(state.picked, None, "it is no more");
}

fn set(name: &str, value: &str) -> Event {
    Event::Set { name: name.into(), value: value.into() }
}

fn world(state: &State) -> Option<u64> {
    state.shown.as_ref().map(|shown| shown.plan.layout().world_size)
}

#[test]
fn a_text_pasted_over_another_is_no_change_of_it() {
    let own = EXAMPLE.replace("--num-layers 24", "--num-layers 12");
    let state = after(vec![Event::Edit(own), Event::Settle]);
    assert!(!state.is_another, "one value is a change");
    let config = "{\"model_type\": \"llama\"}".to_owned();
    let state = apply(apply(state, Event::Edit(config)), Event::Settle);
    assert!(state.is_another);
    let state = apply(state, Event::Undo);
    assert!(state.is_another, "the way back leads to another text too");
    assert!(!apply(state, set("num_nodes", "4")).is_another);
}

#[test]
fn every_change_can_be_undone_and_done_again() {
    let input = UserInput::of_settings(vec![("num_layers".into(), "2".into())]);
    let events =
        vec![set("num_nodes", "4"), Event::Edit("x".into()), Event::Settle, Event::Open(Box::new(input))];
    let state = after(events);
    let last = state.input.clone();
    let state = apply(apply(state, Event::Undo), Event::Undo);
    assert_eq!(world(&state), Some(32));
    let state = apply(apply(state, Event::Undo), Event::Undo);
    assert_eq!((world(&state), state.steps.can_undo()), (Some(16), false));
    let state = (0..4).fold(state, |state, _| apply(state, Event::Redo));
    assert_eq!(state.input, last);
}

#[test]
fn a_link_is_taken_up_and_a_broken_one_leaves_everything() {
    let state = after(vec![Event::Follow("#z1:AAAA".into())]);
    assert!(state.broken_link.is_some());
    assert_eq!(&*state.input.text, EXAMPLE);
    let state = apply(
        state,
        Event::Follow(
            "#/1?layers=2&hidden=64&heads=4&seq=32&mbs=1&nodes=1&gpus_per_node=8&colour=red&bf16".into(),
        ),
    );
    assert_eq!(world(&state), Some(8), "{:?}", state.answer.resolution.diagnostics);
    assert!(state.broken_link.is_none() && state.input.is_settings_alone());
    let has_code = |code| state.answer.resolution.diagnostics.iter().any(|said| said.code.name() == code);
    assert!(has_code("unknown-setting"), "a newer version's setting is told");
    let state = apply(state, Event::Follow("#memory".into()));
    assert!(state.input.is_settings_alone(), "an anchor is no link");
    assert_eq!(&*apply(state, Event::Undo).input.text, EXAMPLE);
}

#[test]
fn a_pinned_plan_stays_and_changes_places() {
    let state = after(vec![Event::Pin, set("num_nodes", "4")]);
    let pinned = |state: &State| state.pinned.as_ref().map(|pinned| pinned.shown.plan.layout().world_size);
    assert_eq!((pinned(&state), world(&state)), (Some(16), Some(32)));
    let state = apply(state, Event::Swap);
    assert_eq!((pinned(&state), world(&state)), (Some(32), Some(16)));
    let prose = apply(apply(state.clone(), Event::Edit("prose".into())), Event::Swap);
    assert_eq!((pinned(&prose), world(&prose)), (Some(32), None), "nothing to change places with");
    assert_eq!(pinned(&apply(prose, Event::Pin)), Some(32), "nor to hold in its place");
    assert_eq!(pinned(&apply(state, Event::Unpin)), None);
}
