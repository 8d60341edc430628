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

/// How a step's time comes about.
pub(super) fn model() -> Chapter {
    let lead = prose(
        "Each stage's arithmetic and messages for one micro-batch are worked out, then played through the schedule, and what comes \
         once per step is added:",
    );
    let sum = "step = pipeline(forward and backward of every stage, m micro-batches)\n     \
               + gradient reduction that nothing hides + optimizer + tied embeddings + iteration";
    let lead = html! { (lead) pre.sum { code { (sum) } } };
    let products = prose(
        "A product of sizes m, n, k takes the longer of two times: moving its operands and result once through the memory, or \
         2·m·n·k operations. These come in [tiles|tile], one for each multiprocessor at a time, in [waves|wave]; a tile that reaches \
         over the edge and a wave that is not full cost as much as full ones. Where not even one wave is full the inner dimension \
         may be split in 2 or 4. The tile of least time is taken, as libraries do. The share is that of the rate of the best tile:",
    );
    let products = html! { (products) (tiles()) };
    let attention = prose(
        "[Flash attention] is linear in its operations, of which a causal mask leaves half, plus the last block of rows that is left \
         to run alone. Heads narrower than full width fill the tensor cores less. Attention that is not fused is two products \
         and memory-bound kernels.",
    );
    let kernels = prose(
        "Norms, activations, dropouts, casts, residual sums: bytes read and written, over the share of the memory bandwidth that \
         streaming kernels reach, plus a launch for each.",
    );
    let messages = prose(
        "A collective takes its start, what every further hop adds, and its bytes [on the wire|wire] over the bandwidth of the slowest \
         link that its ring crosses. All-to-alls split into what stays inside the fast-link domain and what leaves it, of which the \
         longer counts. A dispatcher that sends a token once to a node sends it to the nodes of its experts, fewer where routing is \
         limited to groups of them.",
    );
    let overlap = prose(
        "What the run's flags let [overlap] hides behind the arithmetic beside it; what is longer is exposed, and what is hidden \
         still takes a share of multiprocessors and bandwidth (`contention`). Overlapped exchanges of experts hide behind both passes, \
         for the forward pass of one micro-batch runs beside the backward pass of another. The lower bound lets everything hide, the \
         upper bound nothing.",
    );
    let measured = prose(
        "One measured step of the run, over its estimate, corrects its other layouts by the part that layouts of a run have in common \
         in published runs: all with routed experts, six tenths with sharded weights, nothing for dense models, where scaling makes \
         the others worse. The evidence page shows the errors with and without.",
    );
    Chapter::new("time-model", "The time of a step", lead)
        .part("Matrix products", products)
        .part("Attention", attention)
        .part("Memory-bound kernels", kernels)
        .part("Waiting for the host", host())
        .part("Messages", messages)
        .part("Overlap and bounds", overlap)
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
        "What a data sheet does not say: the share of its figures that kernels reach, and fixed costs. One set for each generation \
         of accelerators, those of one silicon pooled; none for a model, a row or a paper. An accelerator without a set of its own \
         is taken as an A100 with its own data sheet, and its plans say that it is not calibrated. Your own measurements can take the place of the first ones, on the page under Time.",
    );
    let mut chapter = Chapter::new("constants", "Constants", lead)
        .part("By generation", generations())
        .part("Which rows tell them", felt());
    for (title, constants) in general() {
        chapter = chapter.part(title, listed(title, &constants));
    }
    chapter
}

fn generations() -> Markup {
    let sets: Vec<Vec<Constant>> = CALIBRATIONS.iter().map(of_generation).collect();
    let mut headings = vec!["Constant".to_owned(), "Unit".to_owned()];
    headings.extend(CALIBRATIONS.iter().map(|set| format!(">{}", set.generation)));
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let names = sets.first().map_or(&[][..], Vec::as_slice);
    let mut rows = Vec::new();
    for (place, constant) in names.iter().enumerate() {
        let mut cells = vec![code(constant.name), plain(constant.unit)];
        cells
            .extend(sets.iter().map(|set| plain(set.get(place).map_or(String::new(), |of| value(of.value)))));
        rows.push(Row::at(format!("constant-{}", anchor(constant.name)), cells));
    }
    let meaning = |constant: &Constant| {
        let about = html! { (first_up(constant.meaning)) ". " span.source { (constant.source) } };
        (code(constant.name), about)
    };
    let meanings: Vec<_> = names.iter().map(meaning).collect();
    let sets: Vec<_> =
        CALIBRATED_ON.iter().map(|(generation, on)| (code(generation), html! { (on) "." })).collect();
    html! {
        (table("Constants by generation", &headings, &rows))
        h4 { "What they are" }
        (pairs(&meanings))
        h4 { "What each set was found on" }
        (pairs(&sets))
    }
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
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}

/// A value as short as it can be written; thousands in groups.
fn value(value: f64) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    if value >= 1e4 && value.fract() == 0.0 {
        return grouped(value as u64);
    }
    // Sums of binary fractions, such as 4e-6 s in µs, are written as they are meant.
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
        "A multiplication with its addition counts as two. Shares of the peak compare only within one convention: \
         [MFU] divides the model's FLOPs, [HFU] the hardware's. In the closed forms \
         B is the global batch, s the whole sequence, L the layers, a·d and f whole widths. The last column is a step of {}, by each.",
        example.name
    ));
    let headings = ["Convention", "What it counts", ">FLOP"];
    let body = html! { (lead) (table("FLOPs of a step by convention", &headings, &rows)) };
    Chapter::new("flops", "How FLOPs are counted", body)
}
