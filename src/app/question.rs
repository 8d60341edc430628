//! A question about other machines, lengths, batches or models, answered in a worker beside the page.

use std::cell::RefCell;
use std::rc::Rc;

use gloo::events::EventListener;
use gloo::timers::callback::Timeout;
use serde::{Deserialize, Serialize};
use shardscope::session::{Asked, AskedLine, Asking, PtrEq, UserInput, keep_input};
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{DedicatedWorkerGlobalScope, MessageEvent, Worker};
use yew::Callback;

use super::beside::{AT_ONCE, SLICE, TOLD, Task, Work, hire};
use super::found::Layout;

/// A question that the reader asked, and what is known of its answer.
#[derive(Clone, PartialEq)]
pub(crate) struct Inquired {
    /// What it was asked of.
    pub base: PtrEq<UserInput>,
    pub asked: Asked,
    pub going: bool,
    pub reply: Option<Rc<Reply>>,
    /// The changes of the line that is shown.
    pub chosen: Option<Vec<(String, String)>>,
}

/// What is known of the answer, in a form that goes from the worker to the page.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Reply {
    /// Whether more is looked at.
    pub goes_on: bool,
    /// The answer, or what is missing to ask.
    pub sentence: String,
    pub lines: Vec<Line>,
}

/// One size, kind or model that was looked at.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Line {
    pub name: String,
    /// Whether it is the answer.
    pub is_answer: bool,
    pub reached: Option<Reached>,
}

/// The best layout found there.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Reached {
    pub gpus: u64,
    pub layout: Layout,
    pub tokens_per_second: f64,
    pub days: Option<f64>,
    pub cost: Option<f64>,
}

/// Lines that are told at most.
const TOLD_LINES: usize = 40;

impl Line {
    fn of(line: AskedLine) -> Self {
        let reached = line.reached.and_then(|reached| {
            Some(Reached {
                gpus: reached.gpus,
                layout: Layout::of(reached.outcome.as_ref()?),
                tokens_per_second: reached.tokens_per_second,
                days: reached.days,
                cost: reached.cost,
            })
        });
        Self { name: line.name, is_answer: line.chosen, reached }
    }
}

impl Reply {
    fn of(asking: &Asking, goes_on: bool) -> Self {
        let lines = asking.lines();
        // Of many models that do not fit the last tell enough.
        let untold = lines.len().saturating_sub(TOLD_LINES);
        let lines = lines.into_iter().skip(untold).map(Line::of).collect();
        Self { goes_on, sentence: asking.answer(), lines }
    }

    fn refused(why: &impl ToString) -> Self {
        Self { goes_on: false, sentence: why.to_string(), lines: Vec::new() }
    }
}

/// In a worker: answers, and tells what is known on the way.
pub(super) fn serve(scope: &DedicatedWorkerGlobalScope, input: &UserInput, asked: &Asked) {
    let tell = |reply: &Reply| {
        let reply = serde_json::to_string(reply).unwrap_or_default();
        let _ = scope.post_message(&JsValue::from(reply));
    };
    let mut asking = match Asking::of(input, asked) {
        Ok(asking) => asking,
        Err(why) => return tell(&Reply::refused(&why)),
    };
    let mut until = js_sys::Date::now() + TOLD;
    while asking.step(AT_ONCE) {
        if js_sys::Date::now() > until {
            tell(&Reply::of(&asking, true));
            until = js_sys::Date::now() + TOLD;
        }
    }
    tell(&Reply::of(&asking, false));
}

/// A question that is worked on until this is dropped.
pub(crate) struct Questioned {
    worker: Option<(Worker, [EventListener; 2])>,
    slices: Slices,
}

/// The next slice of work by the page itself.
type Slices = Rc<RefCell<Option<Timeout>>>;

impl Questioned {
    /// Asks, and tells `told` what is known.
    pub(crate) fn begin(input: &UserInput, asked: &Asked, told: Callback<Rc<Reply>>) -> Self {
        let slices = Slices::default();
        // Where there is no worker, as in a sandboxed frame, or it is lost, the page works between two frames.
        let alone = {
            let (input, asked, slices, told) = (input.clone(), asked.clone(), slices.clone(), told.clone());
            move || match Asking::of(&input, &asked) {
                Ok(asking) if slices.borrow().is_none() => {
                    slice(Rc::new(RefCell::new(asking)), slices.clone(), told.clone());
                }
                Ok(_) => {}
                Err(why) => told.emit(Rc::new(Reply::refused(&why))),
            }
        };
        let task = Task { kept: keep_input(input), work: Work::Question(asked.clone()) };
        let Some(worker) = hire(&task) else {
            alone();
            return Self { worker: None, slices };
        };
        let lost = alone.clone();
        let message = EventListener::new(&worker, "message", move |event| {
            let said = event.dyn_ref::<MessageEvent>().and_then(|event| event.data().as_string());
            match said.and_then(|said| serde_json::from_str::<Reply>(&said).ok()) {
                Some(reply) => told.emit(Rc::new(reply)),
                None => lost(),
            }
        });
        let error = EventListener::new(&worker, "error", move |_| alone());
        Self { worker: Some((worker, [message, error])), slices }
    }
}

impl Drop for Questioned {
    fn drop(&mut self) {
        if let Some((worker, _)) = &self.worker {
            worker.terminate();
        }
        drop(self.slices.borrow_mut().take());
    }
}

fn slice(asking: Rc<RefCell<Asking>>, slices: Slices, told: Callback<Rc<Reply>>) {
    let next = slices.clone();
    let work = move || {
        let until = js_sys::Date::now() + SLICE;
        let mut more = true;
        while more && js_sys::Date::now() < until {
            more = asking.borrow_mut().step(AT_ONCE);
        }
        told.emit(Rc::new(Reply::of(&asking.borrow(), more)));
        if more {
            slice(asking, next.clone(), told);
        }
    };
    let waiting = Timeout::new(0, work);
    *slices.borrow_mut() = Some(waiting);
}
