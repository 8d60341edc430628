//! The search in workers beside the page, one for each core, so that the page answers while it goes on. A worker runs the
//! page's own engine over its part of the space: the module that the page has compiled is handed over, and only the small
//! `worker.js` is asked for.
//!
//! Where there is no worker, as in a sandboxed frame, the page searches by itself in slices between two frames.

use std::cell::RefCell;
use std::rc::Rc;

use gloo::events::EventListener;
use gloo::timers::callback::Timeout;
use js_sys::{Object, Reflect};
use serde::{Deserialize, Serialize};
use shardscope::plan::Plan;
use shardscope::search::{Choices, Inquiry, Question, Walk};
use shardscope::session::{Asked, State, UserInput};
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{DedicatedWorkerGlobalScope, MessageEvent, Worker, WorkerOptions, WorkerType};
use yew::Callback;

use super::browser;
use super::found::Found;

/// Where `worker.js` leaves what is to be searched.
pub(super) const ASKED: &str = "asked";
/// Most workers: each holds an engine of its own, some 20 MB.
const MOST: u8 = 8;
/// What the worker is made of.
const SCRIPT: &str = "worker.js";
/// How often the worker tells what it has found. Unit: millisecond.
pub(super) const TOLD: f64 = 100.0;
/// Longest time searched at once by the page itself, so that a frame is not lost. Unit: millisecond.
pub(super) const SLICE: f64 = 12.0;
/// Things looked at between two looks at the clock: a shape with all its chunks takes a millisecond or two.
pub(super) const AT_ONCE: u64 = 1;

/// What a worker does.
#[derive(Serialize, Deserialize)]
pub(super) struct Task {
    /// What the reader gave, as [`restore`] takes it.
    pub kept: String,
    pub work: Work,
}

/// What it is to find.
#[derive(Serialize, Deserialize)]
pub(super) enum Work {
    /// Layouts of one part of the space, counted from 0.
    Layouts { part: usize, parts: usize },
    /// The answer to a question.
    Question(Asked),
}

/// Searches a part of the space around the plan of `input`.
pub(super) fn search(scope: &DedicatedWorkerGlobalScope, input: UserInput, part: usize, parts: usize) {
    let Some(shown) = State::new(input).shown else { return tell(scope, None) };
    let mut walk = Walk::new(&shown.plan).part(part, parts);
    let mut until = js_sys::Date::now() + TOLD;
    while walk.step(AT_ONCE) {
        if js_sys::Date::now() > until {
            tell(scope, Some(&walk));
            until = js_sys::Date::now() + TOLD;
        }
    }
    tell(scope, Some(&walk));
    // Where nothing fits, the next question is how many would do. One worker asks it; where another has found something the
    // page leaves its answer out.
    if part == 0
        && walk.ranked().next().is_none()
        && let Some(needs) = enough(&shown.plan)
    {
        let found = Found { needs: Some(needs), ..Found::of(&walk) };
        let _ = scope.post_message(&JsValue::from(serde_json::to_string(&found).unwrap_or_default()));
    }
}

/// The fewest accelerators of this kind that hold the run.
fn enough(plan: &Plan) -> Option<u64> {
    let mut inquiry = Inquiry::new(plan, Question::FewestGpus, Choices::default());
    while inquiry.step(u64::MAX) {}
    let chosen = inquiry.chosen()?;
    inquiry.reached().get(chosen).map(|reached| reached.gpus)
}

/// Nothing told means that the page must search by itself.
pub(super) fn tell(scope: &DedicatedWorkerGlobalScope, walk: Option<&Walk>) {
    let found = walk.and_then(|walk| serde_json::to_string(&Found::of(walk)).ok());
    let _ = scope.post_message(&JsValue::from(found.unwrap_or_default()));
}

/// A search that goes on until it is dropped.
pub(crate) struct Search {
    workers: Workers,
    slices: Slices,
}

/// The workers of a search, and what is heard of them.
type Workers = Rc<RefCell<Vec<(Worker, [EventListener; 2])>>>;

/// The next slice of a search by the page itself.
type Slices = Rc<RefCell<Option<Timeout>>>;

impl Search {
    /// Searches around `plan`, which `kept` brings back in a worker.
    pub(crate) fn begin(plan: &Plan, kept: &str, found: Callback<Rc<Found>>) -> Self {
        let (workers, slices) = (Workers::default(), Slices::default());
        // The page searches by itself where a worker is lost, and once only.
        let alone = {
            let (plan, workers, slices, found) =
                (plan.clone(), workers.clone(), slices.clone(), found.clone());
            Rc::new(move || {
                dismiss(&workers);
                if slices.borrow().is_none() {
                    slice(Rc::new(RefCell::new(Walk::new(&plan))), slices.clone(), found.clone());
                }
            })
        };
        let parts = usize::from(browser::cores(MOST));
        let told = Rc::new(RefCell::new(vec![None; parts]));
        for part in 0..parts {
            let task = Task { kept: kept.to_owned(), work: Work::Layouts { part, parts } };
            let Some(worker) = hire(&task) else {
                alone();
                break;
            };
            let (told, found, lost) = (told.clone(), found.clone(), alone.clone());
            let message = EventListener::new(&worker, "message", move |event| {
                let said = event.dyn_ref::<MessageEvent>().and_then(|event| event.data().as_string());
                match said.and_then(|said| serde_json::from_str::<Found>(&said).ok()) {
                    Some(said) => {
                        if let Some(place) = told.borrow_mut().get_mut(part) {
                            *place = Some(said);
                        }
                        let joined = Found::joined(&told.borrow());
                        found.emit(Rc::new(joined));
                    }
                    None => lost(),
                }
            });
            let lost = alone.clone();
            let error = EventListener::new(&worker, "error", move |_| lost());
            workers.borrow_mut().push((worker, [message, error]));
        }
        Self { workers, slices }
    }
}

/// Ends the workers. A listener may ask for it while it runs, so listeners go with the search.
fn dismiss(workers: &Workers) {
    for (worker, _) in &*workers.borrow() {
        worker.terminate();
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        dismiss(&self.workers);
        // What is heard of a worker holds the workers.
        self.workers.borrow_mut().clear();
        drop(self.slices.borrow_mut().take());
    }
}

/// A worker that has been told what to search; nothing where there can be none.
pub(super) fn hire(task: &Task) -> Option<Worker> {
    // What wasm-bindgen wrote: `index.html` asks for it ahead.
    let glue = browser::query("link[rel=modulepreload]")?.get_attribute("href")?;
    let glue = web_sys::Url::new_with_base(&glue, &browser::document()?.base_uri().ok()??).ok()?.href();
    let options = WorkerOptions::new();
    options.set_type(WorkerType::Module);
    let worker = Worker::new_with_options(SCRIPT, &options).ok()?;
    let task = serde_json::to_string(task).ok()?;
    let work = Object::new();
    for (name, value) in [("glue", glue.into()), ("module", wasm_bindgen::module()), (ASKED, task.into())] {
        Reflect::set(&work, &name.into(), &value).ok()?;
    }
    worker.post_message(&work).ok()?;
    Some(worker)
}

fn slice(walk: Rc<RefCell<Walk>>, slices: Slices, found: Callback<Rc<Found>>) {
    let next = slices.clone();
    let work = move || {
        let until = js_sys::Date::now() + SLICE;
        while walk.borrow_mut().step(AT_ONCE) && js_sys::Date::now() < until {}
        let so_far = Found::of(&walk.borrow());
        let more = so_far.goes_on();
        found.emit(Rc::new(so_far));
        if more {
            slice(walk, next.clone(), found);
        }
    };
    let waiting = Timeout::new(0, work);
    *slices.borrow_mut() = Some(waiting);
}
