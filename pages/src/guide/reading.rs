//! How the page is read.

use maud::{Markup, html};
use shardscope::launch::Origin;
use shardscope::plan::HEADROOM;
use shardscope::session::Use;
use shardscope::units::percent;

use super::write::{Chapter, inline, pairs, plain, prose};

/// How the page is read.
pub(super) fn chapter() -> Chapter {
    let headroom = percent(HEADROOM);
    let first = prose(
        "Paste a launch script, or begin from the gallery. The first screen answers three questions: whether the peak rank \
         [fits], how long a step takes and between which [bounds|step time], and where the memory of each [stage|pipeline \
         stage] goes. Below it each panel answers one more: memory to the tensor, time, the schedule, every collective, every \
         group, every GEMM, and other layouts.",
    );
    let why = prose(
        "Every figure in a table is a button: it opens the formula behind it, the values of its symbols in this plan, and the \
         paper or the framework file it is from. The same formulas stand on [one page|formulas.html] with the numbers of a \
         published run put in.",
    );
    let verdict = prose(&format!(
        "It fits if the peak rank stays within what the driver shows as total memory, at the peak of the step. Where \
         less than {headroom} of it stays free (`memory_headroom`) the verdict is tight: [fragmentation] differs from run to run. What is needed is never \
         cut at what there is."
    ));
    Chapter::new("reading", "How to read the page", first)
        .part("Every figure says why", why)
        .part("The verdict", verdict)
        .part("Six kinds of memory", pairs(&uses()))
        .part("Where a setting comes from", html! { (origins_lead()) (pairs(&origins())) })
        .part("How sure a figure is", html! { (pairs(&certainty())) (proof()) })
}

fn uses() -> Vec<(Markup, Markup)> {
    let about = |kind: Use| match kind {
        Use::Parameters => "The [weights|parameters] of the layers on the GPU, as layers use them.",
        Use::Gradients => "The buffer in which [gradients] of all micro-batches accumulate.",
        Use::Optimizer => {
            "[Optimizer states], with the [master weights]; the GPU's own part where they are sharded."
        }
        Use::Activations => "What forward passes keep for backward, for every micro-batch [in flight].",
        Use::Temporaries => "Short-lived tensors [at the peak|temporaries].",
        Use::Framework => "What the device holds [beside torch's tensors|framework memory].",
    };
    Use::ALL.iter().map(|kind| (plain(kind.name()), inline(about(*kind)))).collect()
}

fn origins_lead() -> Markup {
    prose(
        "Every setting that counts is listed with its value and where it is from; what was assumed can be changed beside it.",
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
        Origin::Script => "Stated by the pasted text; the line is a link into it.",
        Origin::Environment => "A variable that the script leaves to its environment, filled in by you.",
        Origin::Catalog => "Known of a model, a tokenizer or a machine that the text names.",
        Origin::Default => "A default of the framework in the release that the text looks like.",
        Origin::Derived => "A rule of the framework, from other settings.",
        Origin::User => "Changed by you on the page; the script stays as it is.",
    };
    ALL.iter().map(|origin| (plain(origin.name()), inline(about(*origin)))).collect()
}

fn certainty() -> Vec<(Markup, Markup)> {
    let all = [
        (
            "counted",
            "Parameters, groups, collectives, schedules, FLOPs: equal to what the frameworks themselves count or run.",
        ),
        (
            "worked out tensor by tensor",
            "Memory that torch allocates: what is kept is equal to the byte; the peak rests on the order in which a framework frees.",
        ),
        (
            "measured elsewhere",
            "What the device holds beside it: context, buffers of communicators, the allocator's slack.",
        ),
        (
            "estimated",
            "Time: shares of the data sheet that a generation of accelerators reaches in published runs.",
        ),
    ];
    all.iter().map(|(name, about)| (plain(name), inline(about))).collect()
}

fn proof() -> Markup {
    prose("Each is held against published and measured runs, row by row: [the evidence|evidence.html].")
}
