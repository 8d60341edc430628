//! How to read the page.

use maud::{Markup, html};
use shardscope::launch::Origin;
use shardscope::plan::HEADROOM;
use shardscope::session::Use;
use shardscope::units::percent;

use super::write::{Chapter, inline, pairs, plain, prose};

/// How to read the page.
pub(super) fn chapter() -> Chapter {
    let headroom = percent(HEADROOM);
    let first = prose(
        "Paste a launch script or start from an example. The first screen answers three questions: does the peak rank \
         [fit|fits], how long does a step take and within which [bounds|step time], and where does the memory of each \
         [stage|pipeline stage] go. The panels beneath go into detail: memory down to each tensor, time, the schedule, \
         every collective, every process group, every GEMM, and other layouts.",
    );
    let why = prose(
        "Every number in a table is a button that opens the formula behind it, the value of each symbol in this plan, and \
         the paper or framework file the formula comes from. [Formulas|formulas.html] lists all of them, worked out for a \
         published run.",
    );
    let verdict = prose(&format!(
        "A run fits if its peak rank stays within the total memory that the driver reports. If less \
         than {headroom} of it stays free (`memory_headroom`), the verdict is tight, because [fragmentation] varies from \
         run to run. It is tight too where the peak exceeds the device only by blocks that PyTorch caches and can release: the verdict then says what remains and what must be released. Tables and bars are never clamped to the size of the device: you see by how much they overshoot."
    ));
    Chapter::new("reading", "How to read the page", first)
        .part("Every number explains itself", why)
        .part("The verdict", verdict)
        .part("Six kinds of memory", pairs(&uses()))
        .part("Where a setting comes from", html! { (origins_lead()) (pairs(&origins())) })
        .part("How certain a number is", html! { (pairs(&certainty())) (proof()) })
}

fn uses() -> Vec<(Markup, Markup)> {
    let about = |kind: Use| match kind {
        Use::Parameters => {
            "The [weights|parameters] of the layers on this GPU, in the format in which the layers use them."
        }
        Use::Gradients => "The buffer in which the [gradients] of all micro-batches accumulate.",
        Use::Optimizer => "[Optimizer states] and [master weights]; this GPU's shard where they are sharded.",
        Use::Activations => "What forward passes save for backward, for every micro-batch [in flight].",
        Use::Temporaries => "Short-lived tensors [at the peak|temporaries].",
        Use::Framework => "What the device holds [beside torch's tensors|framework memory].",
    };
    Use::ALL.iter().map(|kind| (plain(kind.name()), inline(about(*kind)))).collect()
}

fn origins_lead() -> Markup {
    prose(
        "Every setting that matters is listed with its value and its origin. Assumed values can be changed right there.",
    )
}

fn origins() -> Vec<(Markup, Markup)> {
    const ALL: [Origin; 6] = [
        Origin::Script,
        Origin::Environment,
        Origin::Catalog,
        Origin::Default,
        Origin::Derived,
        Origin::User,
    ];
    let about = |origin: Origin| match origin {
        Origin::Script => "Stated in the pasted text; the link leads to the line.",
        Origin::Environment => "A variable that the script takes from its environment; you filled it in.",
        Origin::Catalog => "Known for the model, tokenizer or machine that the text names.",
        Origin::Default => "The framework's default, in the release that the text appears to be written for.",
        Origin::Derived => "Derived from other settings by a rule of the framework.",
        Origin::User => "Changed by you on the page; your script is not touched.",
    };
    ALL.iter().map(|origin| (plain(origin.name()), inline(about(*origin)))).collect()
}

fn certainty() -> Vec<(Markup, Markup)> {
    let all = [
        (
            "counted",
            "Parameters, process groups, collectives, schedules and FLOPs equal what the frameworks themselves count or run.",
        ),
        (
            "worked out tensor by tensor",
            "Memory allocated by torch: saved activations are exact to the byte; the peak also depends on the order in which \
         a framework frees tensors.",
        ),
        (
            "measured elsewhere",
            "What the device holds besides: the CUDA context, communicator buffers, and the allocator's fragmentation.",
        ),
        (
            "estimated",
            "Time: based on the shares of data sheet peaks that each accelerator generation reaches in published runs.",
        ),
    ];
    all.iter().map(|(name, about)| (plain(name), inline(about))).collect()
}

fn proof() -> Markup {
    prose(
        "All of these are compared with published and measured runs, one by one, under [Evidence|evidence.html].",
    )
}
