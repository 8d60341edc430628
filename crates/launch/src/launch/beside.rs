//! Programs that a text starts beside the training, on the same accelerators.

use crate::{Effect, NotModelled, Reading};
use shardscope_bash::{CommandKind, Script};

/// Options of such programs, and what they hold there: a search index of faiss, of Search-R1's and verl-tool's retrieval servers,
/// which is spread over all accelerators that the process sees (`retrieval_server.py:DenseRetriever`,
/// `faiss.index_cpu_to_all_gpus`).
const HOLD: [(&str, &str); 1] =
    [("--faiss_gpu", "a search index on the same accelerators, which another program of the text holds")];

/// Stops the verdict at them.
pub(super) fn tell(reading: &mut Reading, script: &Script) {
    let runs = script.commands.iter().filter(|command| command.kind == CommandKind::Run);
    for word in runs.flat_map(|command| &command.words) {
        let Some((option, what)) = HOLD.iter().find(|(option, _)| word.text() == *option) else { continue };
        let item = NotModelled::new(option, "", Effect::Memory, what).at_some(Some(word.origin()));
        if !reading.not_modelled.iter().any(|known| known.is_called(option)) {
            reading.not_modelled.push(item);
        }
    }
}
