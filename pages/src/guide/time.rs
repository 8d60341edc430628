//! The model of a step's time, its constants, and how FLOPs are counted.

use maud::{Markup, html};
use shardscope::estimate::Constant;
use shardscope::estimate::compute::{CALIBRATED_ON, CALIBRATIONS, TILES};
use shardscope::estimate::constants::{general, of_generation};
use shardscope::estimate::flops;
use shardscope::explain::anchor;
use shardscope::units::{grouped, percent};

use super::host::{felt, host};
use super::letters::expression;
use super::plans::plans;
use super::write::{Chapter, Row, code, pairs, plain, prose, table};

/// How a step's time is computed.
pub(super) fn model() -> Chapter {
    let lead = prose(
        "The engine computes each stage's kernels and messages for one micro-batch, runs them through the pipeline \
         schedule, and adds what happens once per step:",
    );
    let sum = "step = pipeline(forward and backward of every stage, m micro-batches)\n     \
               + exposed gradient reduction + optimizer + tied embeddings + iteration";
    let lead = html! { (lead) pre.sum { code { (sum) } } };
    let products = prose(
        "A GEMM of size m × n × k takes the longer of two times: reading its operands and writing its result once, or \
         2·m·n·k operations. The operations are split into [tiles|tile], one per multiprocessor at a time, which run in \
         [waves|wave]; a partial tile and a partial wave cost as much as full ones. If the tiles do not fill even one \
         wave, k may be split in 2 or 4 (split-K). Like cuBLAS, the engine picks the fastest tile shape. Each shape's \
         rate, relative to the best:",
    );
    let products = html! { (products) (tiles()) };
    let attention = prose(
        "The time of [flash attention] is proportional to its operations: half of them under a causal mask, plus the last \
         block of rows, which runs alone. Head sizes below the full width use the tensor cores less well. Unfused \
         attention is two GEMMs and several memory-bound kernels.",
    );
    let kernels = prose(
        "Norms, activation functions, dropout, casts and residual adds take the bytes they read and write, divided by the \
         share of memory bandwidth that streaming kernels reach, plus one launch each.",
    );
    let messages = prose(
        "A collective takes its base latency, the latency of each further hop, and its bytes [on the wire|wire] divided \
         by the bandwidth of the slowest link in its ring. An all-to-all has two parts, inside the NVLink (fast-link) \
         domain and across it, and takes the longer of the two. A dispatcher that sends each token to a node only once \
         sends it to the nodes that hold its experts, which are fewer under group-limited routing.",
    );
    let overlap = prose(
        "Communication that the run's flags [overlap] hides behind the computation next to it. Whatever takes longer is \
         exposed, and hidden communication still takes multiprocessors and bandwidth from the computation (`contention`). \
         With overlapped expert parallelism, all-to-alls hide behind both passes, because the forward pass of one \
         micro-batch runs beside the backward pass of another. The lower bound assumes that all communication is hidden, \
         the upper bound that none is.",
    );
    let measured = prose(
        "If you enter one measured step of your run, its ratio to the estimate can correct the estimates of the run's \
         other layouts. How much of that ratio carries over was measured on published families of runs. Where one \
         measured step does not help other layouts, as with dense models, it changes none. The evidence page shows the \
         errors with and without the correction.",
    );
    let compared = prose(
        "What the tools of your own run printed stands beside the prediction under Time, each figure in the scope of its \
         tool. A step time is the median of Megatron-LM's iterations without the first, the median of the rates that the \
         Trainer's progress shows, or the mean of its whole run; one of a profiler includes the profiler's own cost. \
         Tokens per second and MFU follow from it with the plan's own tokens and FLOPs. Of memory, what is allocated \
         (tensors: logs, snapshots, `torch.cuda.memory_summary`), what is reserved (PyTorch's allocator) and what is in use \
         on the device (nvidia-smi, with the CUDA context and other processes) are each compared with the fullest GPU's. A \
         snapshot's peak is that of its history, or of its moment if it has none. What a source does not tell is said.",
    );
    Chapter::new("time-model", "The time of a step", lead)
        .part("GEMMs", products)
        .part("Attention", attention)
        .part("Memory-bound kernels", kernels)
        .part("Host time", host())
        .part("Communication", messages)
        .part("Overlap and bounds", overlap)
        .part("Your own run", compared)
        .part("One measured step", measured)
}

fn tiles() -> Markup {
    let rows: Vec<_> = TILES
        .iter()
        .map(|tile| Row::new([format!("{} × {}", tile.rows, tile.columns), percent(tile.share)].map(plain)))
        .collect();
    table("Tiles", &["Tile", ">share of the rate"], &rows)
}

/// What is taken as given.
pub(super) fn constants() -> Chapter {
    let lead = prose(
        "What a data sheet does not tell: the share of its peak that kernels reach, and fixed costs. There is one set per \
         accelerator generation, pooled over parts with the same silicon, and none per model, run or paper. Where every kernel of \
         the software is counted (modules of transformers), Hopper has shares measured one kernel at a time instead. An \
         accelerator without a set of its own takes another's shares, which the table of accelerators names, with its own \
         data sheet, and its plans say that it is not calibrated. You can enter your own measurements for the first constants under Time.",
    );
    let mut chapter = Chapter::new("constants", "Constants", lead)
        .part("By generation", generations())
        .part("Sensitivity of published runs", felt());
    for (title, constants) in general() {
        chapter = chapter.part(title, listed(title, &constants));
    }
    chapter
}

fn generations() -> Markup {
    let sets: Vec<Vec<Constant>> = CALIBRATIONS.iter().map(of_generation).collect();
    let mut headings = vec!["Constant".to_owned(), "Unit".to_owned()];
    headings.extend(CALIBRATIONS.iter().map(|set| format!(">{}", set.generation.name())));
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    // Every set has the same constants in the same order.
    let names = sets.first().map_or(&[][..], Vec::as_slice);
    let mut rows = Vec::new();
    for (place, constant) in names.iter().enumerate() {
        let mut cells = vec![code(constant.name), plain(constant.unit)];
        cells.extend(sets.iter().map(|set| plain(set.get(place).map_or(String::new(), written))));
        rows.push(Row::at(format!("constant-{}", anchor(constant.name)), cells));
    }
    let meaning = |constant: &Constant| {
        let about = html! { (first_up(constant.meaning)) ". " span.source { (constant.source) } };
        (code(constant.name), about)
    };
    let meanings: Vec<_> = names.iter().map(meaning).collect();
    let sets: Vec<_> =
        CALIBRATED_ON.iter().map(|on| (code(on.generation.name()), html! { (on.runs) "." })).collect();
    html! {
        (table("Constants by generation", &headings, &rows))
        h4 { "What they are" }
        (pairs(&meanings))
        h4 { "What each set was found on" }
        (pairs(&sets))
    }
}

/// A value, marked if it is assumed.
fn written(of: &Constant) -> String {
    value(of.value) + if of.assumed { " (assumed)" } else { "" }
}

fn listed(title: &str, constants: &[Constant]) -> Markup {
    let rows: Vec<_> = constants
        .iter()
        .map(|of| {
            let unit = if of.unit.is_empty() { String::new() } else { format!(" {}", of.unit) };
            let about = html! { (of.meaning) " " span.source { (of.source) } };
            Row::new([code(of.name), html! { (value(of.value)) (unit) }, about])
        })
        .collect();
    table(&format!("Constants: {title}"), &["Constant", ">value", "Meaning and source"], &rows)
}

fn first_up(text: &str) -> String {
    let mut text = text.to_owned();
    // A multi-byte first letter is left unchanged.
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}

/// A value in its shortest form; thousands in groups.
fn value(value: f64) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    if value >= 1e4 && value.fract() == 0.0 {
        return grouped(value as u64);
    }
    // Rounded, so that sums of binary fractions, such as 4e-6 s in µs, appear as intended.
    ((value * 1e9).round() / 1e9).to_string()
}

/// How FLOPs are counted.
pub(super) fn flops_conventions() -> Chapter {
    let example = &plans()[0];
    let rows: Vec<_> = flops(&example.plan)
        .conventions()
        .iter()
        .map(|of| {
            let count = of.flops.map_or("does not apply".to_owned(), |count| format!("{:.4e}", count.get()));
            let about = html! {
                (expression(of.formula.expression)) br; (of.formula.meaning) br; span.source { (of.formula.source) }
            };
            Row::at(format!("flops-{}", anchor(of.name)), [plain(of.name), about, plain(count)])
        })
        .collect();
    let lead = prose(&format!(
        "A multiply-add counts as two operations. Utilizations can be compared only within one convention: [MFU] counts \
         the model's FLOPs, [HFU] those the hardware executes. In the closed forms, B is the global batch size, s the \
         full sequence length, L the number of layers, and a·d and f the full widths. The last column gives one step of \
         {} under each convention.",
        example.name
    ));
    let headings = ["Convention", "What it counts", ">FLOP"];
    let body = html! { (lead) (table("FLOPs per step by convention", &headings, &rows)) };
    Chapter::new("flops", "How FLOPs are counted", body)
}
