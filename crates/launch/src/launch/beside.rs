//! Programs that a text starts beside the training, on the same accelerators.

use crate::{Effect, Found, NotModelled, Origin, Reading};
use shardscope_bash::{Command, CommandKind, Script, Word};
use shardscope_plan::Field;

/// Options of such programs, and what they hold there: a search index of faiss, of Search-R1's and verl-tool's retrieval servers,
/// which is spread over all accelerators that the process sees (`retrieval_server.py:DenseRetriever`,
/// `faiss.index_cpu_to_all_gpus`).
const HOLD: [(&str, &str); 1] =
    [("--faiss_gpu", "a search index on the same accelerators, which another program of the text holds")];

/// The settings of ms-swift's server of rollouts, each with its option (`swift/arguments/deploy_args.py:RolloutArguments`).
const SERVED: [(&str, Field); 3] = [
    (TENSOR, Field::RolloutTensorParallelSize),
    ("vllm_gpu_memory_utilization", Field::RolloutMemoryFraction),
    ("vllm_max_num_seqs", Field::RolloutSequences),
];
const TENSOR: &str = "vllm_tensor_parallel_size";

/// The server of rollouts that the text itself starts (`swift rollout`), whose accelerators are not among those that train.
fn server(reading: &mut Reading, script: &Script) {
    if reading.value(Field::RlFramework) != Some("swift") || reading.value(Field::RolloutGpus) != Some("0") {
        return;
    }
    let serves = |command: &&Command| {
        let pair = |pair: &[Word]| pair[0].text() == "swift" && pair[1].text() == "rollout";
        command.kind == CommandKind::Run && command.words.windows(2).any(pair)
    };
    let mut servers = script.commands.iter().filter(serves);
    let (Some(command), None) = (servers.next(), servers.next()) else { return };
    let option = |name: &str| {
        command.words.iter().enumerate().find_map(|(at, word)| {
            let (own, inline) =
                word.text().split_once('=').map_or((word.text(), None), |(own, value)| (own, Some(value)));
            let named = own.strip_prefix("--").is_some_and(|own| own.replace('-', "_") == name);
            let value = inline.or_else(|| command.words.get(at + 1).map(Word::text)).filter(|_| named)?;
            Some((value.to_owned(), word.origin()))
        })
    };
    let whole = |name: &str| option(name).and_then(|(value, _)| value.parse::<u64>().ok()).unwrap_or(1);
    // Devices beyond that product stay unused (`swift/arguments/deploy_args.py`).
    let gpus = whole(TENSOR).saturating_mul(whole("vllm_data_parallel_size"));
    let found = Found::new(Field::RolloutGpus, gpus.to_string(), Origin::Derived);
    reading.take(found.by("swift rollout", Some(command.span)).note("the server that the text starts"));
    for (name, field) in SERVED {
        match option(name) {
            Some((value, span)) => {
                reading.take(Found::new(field, value, Origin::Script).by(format!("--{name}"), Some(span)));
            }
            None => reading.keep(&|found| found.field != field),
        }
    }
}

/// Stops the verdict at them, and takes what a server of rollouts among them says.
pub(super) fn tell(reading: &mut Reading, script: &Script) {
    server(reading, script);
    let runs = script.commands.iter().filter(|command| command.kind == CommandKind::Run);
    for word in runs.flat_map(|command| &command.words) {
        let Some((option, what)) = HOLD.iter().find(|(option, _)| word.text() == *option) else { continue };
        let item = NotModelled::new(option, "", Effect::Memory, what).at_some(Some(word.origin()));
        if !reading.not_modelled.iter().any(|known| known.is_called(option)) {
            reading.not_modelled.push(item);
        }
    }
}
