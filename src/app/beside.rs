//! Searches, questions and files in the background, while the page stays responsive. They run in a separate module
//! (src/worker/main.rs), which `search.js` loads when the first one begins: in workers, one per core, or, if there
//! are no workers, as in a sandboxed frame, in the page itself, in slices between frames.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use gloo::events::EventListener;
use js_sys::{Function, Promise, Reflect};
use shardscope::session::beside::{
    EvidenceRow, Found, Measurement, PlanFile, Progress, Provenance, Reply, Task,
};
use shardscope::session::{Asked, UserInput, Varied};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{Blob, MessageEvent, Worker, WorkerOptions, WorkerType};

use super::browser;

/// Maximum number of workers: each has its own engine, some 20 MB.
const MOST: u8 = 8;
/// Script of a worker.
const SCRIPT: &str = "worker.js";
/// How `index.html` loads `search.js` into the page.
const LOADER: &str = "loadSearch";
/// Longest slice of work in the page itself, so that no frame is dropped. Unit: millisecond.
const SLICE: f64 = 12.0;
/// Largest file that is read in the page itself, which stands still meanwhile: some 200 ms. Unit: byte.
const MOST_HERE: f64 = 4_194_304.0;

/// Workers with their listeners.
type Workers = Rc<RefCell<Vec<(Worker, [EventListener; 2])>>>;

/// Work that continues until it is dropped.
pub(crate) struct Work {
    workers: Workers,
    /// False once this is dropped.
    wanted: Rc<Cell<bool>>,
}

/// Receives the results of a task's parts: of a part by its index, or `None` if the work cannot be done at all.
type Hears = Rc<dyn Fn(usize, Option<Progress>)>;

/// Searches around the plan of `input`, with its dimensions varied according to `vary`; `report` receives what is
/// found, or `None` if the search cannot be loaded.
pub(crate) fn search(input: &UserInput, vary: &Varied, report: impl Fn(Option<Rc<Found>>) + 'static) -> Work {
    // As many workers as cores: each takes one part of the space.
    let parts = usize::from(browser::cores(MOST));
    let tasks = (0..parts).map(|part| Task::layouts(input, vary, part, parts)).collect();
    let heard = RefCell::new(vec![None; parts]);
    let hears = move |part: usize, said: Option<Progress>| match said {
        Some(Progress::Found(said)) => {
            let mut heard = heard.borrow_mut();
            // In the page itself one search is over the whole space.
            if part == WHOLE {
                // Parts arrive in any order, and each report replaces that part's previous one.
                *heard = vec![Some(*said)];
            } else if let Some(place) = heard.get_mut(part) {
                *place = Some(*said);
            }
            report(Some(Rc::new(Found::joined(&heard))));
        }
        _ => report(None),
    };
    Work::begin(tasks, Task::layouts(input, vary, 0, 1), Rc::new(hears))
}

/// Works on a question; `report` receives the answer so far.
pub(crate) fn question(input: &UserInput, asked: &Asked, report: impl Fn(Rc<Reply>) + 'static) -> Work {
    let task = Task::question(input, asked);
    let hears = move |_, said| {
        report(Rc::new(match said {
            Some(Progress::Reply(reply)) => reply,
            _ => Reply { goes_on: false, sentence: LOST.to_owned(), lines: Vec::new() },
        }));
    };
    // A question is one search after another; its steps depend on each other, so it has one worker.
    Work::begin(vec![task.clone()], task, Rc::new(hears))
}

/// Writes a file of the plan of `input`; `report` receives `None` if the module that writes it cannot be loaded.
pub(crate) fn file(input: &UserInput, file: PlanFile, report: impl Fn(Option<String>) + 'static) -> Work {
    let task = Task::file(input, file);
    let hears = move |_, said| {
        report(match said {
            Some(Progress::File(text)) => Some(text),
            _ => None,
        });
    };
    Work::begin(vec![task.clone()], task, Rc::new(hears))
}

/// Makes a row of evidence from the run of `input`; `report` receives `None` if the module for it cannot be loaded.
pub(crate) fn row(
    input: &UserInput,
    provenance: &Provenance,
    report: impl Fn(Option<EvidenceRow>) + 'static,
) -> Work {
    let task = Task::row(input, provenance);
    let hears = move |_, said| {
        report(match said {
            Some(Progress::Row(row)) => Some(row),
            _ => None,
        });
    };
    Work::begin(vec![task.clone()], task, Rc::new(hears))
}

/// Reads a file of the run's own tools. The worker is handed the file itself and takes its bytes; `report` receives `None` if
/// the module that reads it cannot be loaded, or breaks on it.
pub(crate) fn measured(file: &Blob, report: impl Fn(Option<Measurement>) + 'static) -> Work {
    let work = Work { workers: Workers::default(), wanted: Rc::new(Cell::new(true)) };
    if let Some(refused) = Measurement::too_large(file.size()) {
        report(Some(refused));
        return work;
    }
    let hears: Hears = Rc::new(move |_, said| {
        report(match said {
            Some(Progress::Measured(found)) => Some(found),
            _ => None,
        });
    });
    match hire(file) {
        Some(worker) => {
            // What broke a worker (memory, mostly) must not be tried in the page as well.
            let lost = hears.clone();
            work.listen(worker, 0, hears, Rc::new(move || lost(0, None)));
        }
        None if file.size() > MOST_HERE => {
            let why =
                "this browser lets the page have no workers, and without one files of at most 4 MiB are read";
            hears(WHOLE, Some(Progress::Measured(Measurement::Refused(why.to_owned()))));
        }
        None => do_here(file.clone().into(), work.wanted.clone(), hears),
    }
    work
}

/// The message if the module did not arrive.
pub(crate) const LOST: &str = "Part of the page could not be loaded. Check the connection and try again.";
/// The index of the whole task, if it runs in the page.
const WHOLE: usize = usize::MAX;

impl Work {
    /// One worker for each of `tasks`; `whole` runs in the page if a worker is not available or is lost.
    fn begin(tasks: Vec<Task>, whole: Task, hears: Hears) -> Self {
        let (workers, wanted) = (Workers::default(), Rc::new(Cell::new(true)));
        // Workers fail individually; only the first failure starts the work in the page.
        let is_alone = Rc::new(Cell::new(false));
        let alone: Rc<dyn Fn()> = {
            let (workers, wanted, hears) = (workers.clone(), wanted.clone(), hears.clone());
            Rc::new(move || {
                dismiss(&workers);
                // The workers' parts are discarded: the page does the whole task.
                if !is_alone.replace(true) {
                    do_here(whole.written().into(), wanted.clone(), hears.clone());
                }
            })
        };
        let work = Self { workers, wanted };
        for (part, task) in tasks.iter().enumerate() {
            let Some(worker) = hire(&task.written().into()) else {
                // A browser that refuses one worker refuses all (a sandboxed frame, a policy).
                alone();
                break;
            };
            work.listen(worker, part, hears.clone(), alone.clone());
        }
        work
    }

    /// Hears what a worker tells of its part; `lost` is called if it tells nothing that can be read.
    fn listen(&self, worker: Worker, part: usize, hears: Hears, lost: Rc<dyn Fn()>) {
        let failed = lost.clone();
        let message = EventListener::new(&worker, "message", move |event| {
            let said = event.dyn_ref::<MessageEvent>().and_then(|event| event.data().as_string());
            // Text of another version after an update, or a panic's last word.
            match said.and_then(|said| Progress::read(&said)) {
                Some(said) => hears(part, Some(said)),
                None => lost(),
            }
        });
        let error = EventListener::new(&worker, "error", move |_| failed());
        self.workers.borrow_mut().push((worker, [message, error]));
    }
}

/// Ends the workers. A listener may call this while it runs, so listeners are dropped with the work.
fn dismiss(workers: &Workers) {
    // `borrow`, not `borrow_mut`: this may run inside a listener that the list owns.
    for (worker, _) in &*workers.borrow() {
        worker.terminate();
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.wanted.set(false);
        dismiss(&self.workers);
        // A worker's listeners keep the workers alive.
        self.workers.borrow_mut().clear();
    }
}

/// A worker with its task, a text or a file; `None` if workers are not available.
fn hire(task: &JsValue) -> Option<Worker> {
    // The worker's glue is an ES module.
    let options = WorkerOptions::new();
    options.set_type(WorkerType::Module);
    let worker = Worker::new_with_options(SCRIPT, &options).ok()?;
    worker.post_message(task).ok()?;
    Some(worker)
}

/// Runs `task` in the page itself while it is `wanted`.
fn do_here(task: JsValue, wanted: Rc<Cell<bool>>, hears: Hears) {
    let tell = {
        let (wanted, hears) = (wanted.clone(), hears.clone());
        // The return value tells the module whether to continue.
        move |said: String| {
            // Messages from dropped work may still be in flight.
            if wanted.get() {
                hears(WHOLE, Progress::read(&said));
            }
            wanted.get()
        }
    };
    let tell = Closure::<dyn Fn(String) -> bool>::new(tell).into_js_value();
    wasm_bindgen_futures::spawn_local(async move {
        if begin_here(&task, &tell).await.is_none() && wanted.get() {
            hears(WHOLE, None);
        }
    });
}

/// Loads `search.js` and begins; `None` if it cannot be loaded.
async fn begin_here(task: &JsValue, tell: &JsValue) -> Option<()> {
    let window = browser::window()?;
    let load: Function = Reflect::get(&window, &LOADER.into()).ok()?.dyn_into().ok()?;
    let loaded: Promise = load.call0(&window).ok()?.dyn_into().ok()?;
    let search = JsFuture::from(loaded).await.ok()?;
    let begin: Function = Reflect::get(&search, &"begin".into()).ok()?.dyn_into().ok()?;
    let begun: Promise = begin.call3(&search, task, &SLICE.into(), tell).ok()?.dyn_into().ok()?;
    JsFuture::from(begun).await.ok().map(|_| ())
}
