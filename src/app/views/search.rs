//! Other layouts for the same model on the same machines, tried in slices so that the page stays quick.

use std::cell::RefCell;
use std::rc::Rc;

use gloo::timers::callback::Timeout;
use shardscope::estimate::compute::Measured;
use shardscope::quantity::{gib, grouped, seconds};
use shardscope::search::{Outcome, Walk};
use yew::prelude::*;

use super::advice::{try_it, written};
use crate::app::desk::Desk;
use crate::app::parts::{Cell, Row, table};

/// Longest time spent at once. Unit: millisecond.
const SLICE: f64 = 12.0;
/// Combinations tried between two looks at the clock.
const AT_ONCE: u64 = 16;
/// Layouts shown.
const SHOWN: usize = 12;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub desk: Desk,
}

#[component]
pub(crate) fn Search(props: &Props) -> Html {
    let walk = use_state(|| None::<Rc<RefCell<Walk>>>);
    let tick = use_state(|| 0_u64);
    {
        // Another plan is another search.
        let walk = walk.clone();
        use_effect_with(props.desk.shown.clone(), move |_| walk.set(None));
    }
    let stopped = use_state(|| false);
    let more = !*stopped
        && walk.as_ref().is_some_and(|walk| {
            let (tried, all) = walk.borrow().progress();
            tried < all
        });
    {
        let (walk, tick) = (walk.clone(), tick.clone());
        use_effect_with((*tick, more), move |(now, more)| {
            let slice = more.then(|| {
                let next = *now + 1;
                Timeout::new(0, move || {
                    if let Some(walk) = walk.as_ref() {
                        let until = js_sys::Date::now() + SLICE;
                        while walk.borrow_mut().step(AT_ONCE) && js_sys::Date::now() < until {}
                    }
                    tick.set(next);
                })
            });
            move || drop(slice)
        });
    }
    let onclick = {
        let (walk, stopped, shown) = (walk.clone(), stopped.clone(), props.desk.shown.clone());
        move |_: MouseEvent| {
            stopped.set(more);
            if !more {
                walk.set(Some(Rc::new(RefCell::new(Walk::new(&shown.plan, Measured::default())))));
            }
        }
    };
    let label = match (more, walk.is_some()) {
        (true, _) => "Stop",
        (false, true) => "Search again",
        (false, false) => "Search",
    };
    html! {
        <section class="panel" id="search" aria-labelledby="search-title">
            <header>
                <h2 id="search-title">{ "Other layouts" }</h2>
                <p>{ "Every way to cut the same model over the same GPUs that Megatron accepts, with micro-batch, recomputation and sharding; the fastest that fit." }</p>
            </header>
            <button type="button" class="button" {onclick}>{ label }</button>
            if let Some(walk) = walk.as_ref() { { results(&walk.borrow(), more, &props.desk) } }
        </section>
    }
}

fn results(walk: &Walk, more: bool, desk: &Desk) -> Html {
    let (tried, all) = walk.progress();
    let rows: Vec<Row> = walk.best().iter().take(SHOWN).map(|found| row(found, desk)).collect();
    let found = match (rows.is_empty(), more) {
        (true, true) => Html::default(),
        (true, false) => html! { <p>{ "None of them fits." }</p> },
        _ => table("Layouts found", "", &[">step", ">fullest GPU", "Changes", ""], rows),
    };
    html! {
        <>
            <p class="small soft searched" role="status">
                { format!("{}{} of {} combinations, {} refused by Megatron, {} too large", if more { "Searching: " } else { "" },
                    grouped(tried), grouped(all), grouped(walk.refused()), grouped(walk.too_large())) }
            </p>
            if more { <progress class="progress" aria-label="Search" max={all.to_string()} value={tried.to_string()} /> }
            { found }
        </>
    }
}

fn row(found: &Outcome, desk: &Desk) -> Row {
    let changes = if found.changes.is_empty() { "as it is".to_owned() } else { written(&found.changes) };
    Row::of(vec![
        Cell::Number(seconds(found.step)),
        Cell::Number(gib(found.peak)),
        Cell::Drawn(html! { <span class="changes">{ changes }</span> }),
        Cell::Drawn(try_it(desk, &found.changes)),
    ])
}
