//! The search in a worker beside the page, so that the page answers while it goes on. The worker runs the page's own
//! engine: the module that the page has compiled is handed over, and only the small `worker.js` is asked for.
//!
//! Where there is no worker, as in a sandboxed frame, the page searches by itself in slices between two frames.

use std::cell::RefCell;
use std::rc::Rc;

use gloo::events::EventListener;
use gloo::timers::callback::Timeout;
use js_sys::{Object, Reflect};
use shardscope::plan::Plan;
use shardscope::search::{Choices, Inquiry, Question, Walk};
use shardscope::session::{State, restore};
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{DedicatedWorkerGlobalScope, MessageEvent, Worker, WorkerOptions, WorkerType};
use yew::Callback;

use super::browser;
use super::found::Found;
use super::later::take_over;

/// Where `worker.js` leaves what is to be searched.
const ASKED: &str = "asked";
/// What the worker is made of.
const SCRIPT: &str = "worker.js";
/// How often the worker tells what it has found. Unit: millisecond.
const TOLD: f64 = 100.0;
/// Longest time searched at once by the page itself, so that a frame is not lost. Unit: millisecond.
const SLICE: f64 = 12.0;
/// Things looked at between two looks at the clock: a shape with all its chunks takes a millisecond or two.
const AT_ONCE: u64 = 1;

/// This side of the engine in a worker; none in a page.
pub(crate) fn scope() -> Option<DedicatedWorkerGlobalScope> {
    js_sys::global().dyn_into().ok()
}

/// Searches what the page left, and tells it what is found on the way and at the end.
pub(crate) fn serve(scope: &DedicatedWorkerGlobalScope) {
    take_over(scope);
    let asked = Reflect::get(scope, &ASKED.into()).ok().and_then(|asked| asked.as_string());
    let kept = asked.and_then(|asked| restore(&asked));
    let Some(shown) = kept.and_then(|kept| State::new(kept.input).shown) else { return tell(scope, None) };
    let mut walk = Walk::new(&shown.plan);
    let mut until = js_sys::Date::now() + TOLD;
    while walk.step(AT_ONCE) {
        if js_sys::Date::now() > until {
            tell(scope, Some(&walk));
            until = js_sys::Date::now() + TOLD;
        }
    }
    tell(scope, Some(&walk));
    // Where nothing fits, the next question is how many would do.
    if walk.ranked().next().is_none()
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
fn tell(scope: &DedicatedWorkerGlobalScope, walk: Option<&Walk>) {
    let found = walk.and_then(|walk| serde_json::to_string(&Found::of(walk)).ok());
    let _ = scope.post_message(&JsValue::from(found.unwrap_or_default()));
}

/// A search that goes on until it is dropped.
pub(crate) struct Search {
    worker: Option<Worker>,
    _heard: Vec<EventListener>,
    slices: Slices,
}

/// The next slice of a search by the page itself.
type Slices = Rc<RefCell<Option<Timeout>>>;

impl Search {
    /// Searches around `plan`, which `kept` brings back in a worker.
    pub(crate) fn begin(plan: &Plan, kept: &str, found: Callback<Rc<Found>>) -> Self {
        let slices = Slices::default();
        let alone = {
            let (plan, slices, found) = (plan.clone(), slices.clone(), found.clone());
            move || slice(Rc::new(RefCell::new(Walk::new(&plan))), slices.clone(), found.clone())
        };
        let Some(worker) = hire(kept) else {
            alone();
            return Self { worker: None, _heard: Vec::new(), slices };
        };
        let lost = alone.clone();
        let heard = vec![
            EventListener::new(&worker, "message", move |event| {
                let told = event.dyn_ref::<MessageEvent>().and_then(|event| event.data().as_string());
                match told.and_then(|told| serde_json::from_str(&told).ok()) {
                    Some(told) => found.emit(Rc::new(told)),
                    None => alone(),
                }
            }),
            EventListener::new(&worker, "error", move |_| lost()),
        ];
        Self { worker: Some(worker), _heard: heard, slices }
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        if let Some(worker) = &self.worker {
            worker.terminate();
        }
        drop(self.slices.borrow_mut().take());
    }
}

/// A worker that has been told what to search; nothing where there can be none.
fn hire(kept: &str) -> Option<Worker> {
    // What wasm-bindgen wrote: `index.html` asks for it ahead.
    let glue = browser::query("link[rel=modulepreload]")?.get_attribute("href")?;
    let glue = web_sys::Url::new_with_base(&glue, &browser::document()?.base_uri().ok()??).ok()?.href();
    let options = WorkerOptions::new();
    options.set_type(WorkerType::Module);
    let worker = Worker::new_with_options(SCRIPT, &options).ok()?;
    let work = Object::new();
    for (name, value) in [("glue", glue.into()), ("module", wasm_bindgen::module()), (ASKED, kept.into())] {
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
