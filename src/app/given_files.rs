//! Files given to the page: launch texts, and output of the run's own tools. They are told apart by what they hold.

use shardscope::session::{File, is_launch_text, is_pickle, may_hold};
use wasm_bindgen_futures::spawn_local;

use super::action::Action;
use super::browser;
use super::context::Dispatch;
use super::measuring::{Batch, Candidate};
use super::ui::InputTab;

/// Largest file that is taken for a launch text, as in the terminal. Unit: byte.
pub(super) const LARGEST_TEXT: f64 = 4_194_304.0;
/// Bytes that tell a pickle.
const HEAD: i32 = 2;

/// The files become the run or are added to it, as launch texts or as measurements.
pub(crate) fn take(dispatch: &Dispatch, files: &[gloo::file::File]) {
    let (dispatch, files) = (dispatch.clone(), files.to_vec());
    spawn_local(async move {
        let mut batch = Batch::default();
        // One by one, in the order given: it decides which text comes first in the box.
        for file in &files {
            sort(file.as_ref(), &mut batch).await;
        }
        if !batch.candidates.is_empty() {
            dispatch.emit(Action::Measure(batch));
        } else if !batch.texts.is_empty() {
            dispatch.emit(Action::Files(batch.texts));
            dispatch.emit(Action::Input(InputTab::Script));
        }
    });
}

/// The files are output of the run's own tools, whatever they look like.
pub(crate) fn measure(dispatch: &Dispatch, files: &[gloo::file::File]) {
    let candidate = |file: &gloo::file::File| Candidate {
        file: AsRef::<web_sys::File>::as_ref(file).clone(),
        text: None,
    };
    let candidates = files.iter().map(candidate).collect();
    dispatch.emit(Action::Measure(Batch { candidates, texts: Vec::new() }));
}

async fn sort(file: &web_sys::File, batch: &mut Batch) {
    // A snapshot may have hundreds of megabytes, which the page itself must not read.
    let is_other = file.size() > LARGEST_TEXT
        || browser::beginning_of(file, HEAD).await.is_some_and(|bytes| is_pickle(&bytes));
    if is_other {
        batch.candidates.push(Candidate { file: file.clone(), text: None });
        return;
    }
    let Some(text) = browser::text_of(file).await else { return };
    let name = file.name();
    let is_candidate = may_hold(&text) && !is_launch_text(&name, &text);
    let text = File { name, text: text.into() };
    if is_candidate {
        batch.candidates.push(Candidate { file: file.clone(), text: Some(text) });
    } else {
        batch.texts.push(text);
    }
}
