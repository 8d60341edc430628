//! The verdict, the memory of every stage, and the layer tree of the whole and the sharded model.

use super::sheet::Sheet;
use shardscope_estimate::{LayerNode, Memory, PhaseKind, RlMemory, Verdict};
use shardscope_plan::Plan;
use shardscope_units::{Bytes, gib, grouped, mib, percent};

pub(super) fn write_verdict(sheet: &mut Sheet, plan: &Plan, memory: &Memory) {
    let verdict = match memory.verdict {
        Verdict::Fits => "Fits",
        Verdict::Tight => "Tight",
        Verdict::OutOfMemory => "Out of memory",
    };
    sheet.heading("Verdict");
    // Training's own verdict is only one of the phases; by itself it would read as the whole run's.
    if let Some(rl) = &memory.rl {
        return write_phases(sheet, plan, memory, rl, verdict);
    }
    let allocator = if plan.recipe().software.semantics().compiled_step { "XLA" } else { "torch" };
    sheet.line(&format!(
        "{verdict} on {}: peak rank on stage {}, {} of {} reserved ({}), {} of it allocated by {allocator}.",
        plan.cluster().accelerator.name,
        memory.worst.pipeline_rank,
        gib(memory.worst.needs.bytes),
        gib(memory.capacity),
        memory.worst.at,
        gib(memory.worst.peak_allocated),
    ));
    let over = memory.worst.peak_reserved.less(memory.capacity);
    let free = memory.capacity.less(memory.worst.peak_reserved);
    match memory.verdict {
        Verdict::Fits => {}
        // More is reserved than the device has, yet it is not out of memory, because cached blocks can be released.
        Verdict::Tight if over > Bytes::ZERO => sheet.line(&format!(
            "Tight: PyTorch must release {} of cached blocks; it would reserve {} on a larger GPU.",
            gib(memory.worst.needs.released),
            gib(memory.worst.peak_reserved)
        )),
        Verdict::Tight => sheet.line(&format!(
            "Tight: {} free, less than the headroom of {} (memory_headroom).",
            gib(free),
            percent(memory.headroom)
        )),
        Verdict::OutOfMemory => sheet.line(&format!("{} over capacity.", gib(over))),
    }
    for sentence in plan.recipe().marks.sentences() {
        sheet.line(&sentence);
    }
}

/// Reinforcement learning: the phases one by one, and the one that runs out by name.
fn write_phases(sheet: &mut Sheet, plan: &Plan, memory: &Memory, rl: &RlMemory, verdict: &str) {
    let fullest = rl.phases.iter().max_by_key(|phase| phase.breakdown.value());
    let failing: Vec<&str> = rl.failing().map(|phase| phase.kind.name()).collect();
    let card = &plan.cluster().accelerator.name;
    match (failing.as_slice(), fullest) {
        ([], Some(phase)) => sheet.line(&format!(
            "{verdict} on {card}: the peak is in the {} phase, {} of {}{}.",
            phase.kind.name(),
            gib(phase.needs.bytes),
            gib(memory.capacity),
            phase.needs.condition()
        )),
        _ => sheet.line(&format!("{verdict} on {card}: out of memory in {}.", failing.join(", "))),
    }
    let rows: Vec<Vec<String>> = rl
        .phases
        .iter()
        .map(|phase| {
            let shown = gib(phase.needs.bytes);
            vec![phase.kind.name().to_owned(), shown, phase.verdict.name().to_owned()]
        })
        .collect();
    sheet.table(&["phase", "on the device", "verdict"], &rows);
    for phase in &rl.phases {
        sheet.line(&format!("{}:", phase.kind.name()));
        let held = phase.breakdown.children().iter().filter(|part| part.value() > Bytes::ZERO);
        let parts: Vec<String> = held.map(|part| format!("{} {}", part.label(), gib(part.value()))).collect();
        sheet.items(&parts);
    }
    // Where the text starts no engine there is no phase of it.
    if rl.phases.iter().any(|phase| phase.kind == PhaseKind::Rollout) {
        let place = if rl.co_located {
            "on the accelerators of the training"
        } else {
            "on accelerators of their own"
        };
        sheet.line(&format!(
            "Rollouts run {place}; the engine's cache holds {} tokens at most, {} rollouts of full length.",
            grouped(rl.engine.cache_tokens),
            grouped(rl.cache_rollouts)
        ));
    }
    // Its peak may be well below capacity in this case, so the table alone would not explain the verdict.
    let starved = rl.cache_rollouts == 0 && failing.contains(&PhaseKind::Rollout.name());
    if starved {
        sheet.line("The engine's share of the memory leaves no room for one rollout of full length.");
    }
    for sentence in plan.recipe().marks.sentences() {
        sheet.line(&sentence);
    }
}

pub(super) fn write_stages(sheet: &mut Sheet, memory: &Memory) {
    sheet.heading("Memory on each GPU, by stage");
    let mut rows: Vec<Vec<String>> = Vec::new();
    for rank in &memory.ranks {
        let totals = &rank.totals;
        let mut row = vec![format!("stage {}", rank.pipeline_rank)];
        for bytes in totals.columns() {
            row.push(gib(bytes));
        }
        row.push(rank.at.to_owned());
        rows.push(row);
    }
    let header = [
        "rank",
        "parameters",
        "gradients",
        "optimizer",
        "activations",
        "temporaries",
        "allocated",
        "framework",
        "on the device",
        "peak at",
    ];
    sheet.table(&header, &rows);
}

pub(super) fn write_layers(sheet: &mut Sheet, memory: &Memory) {
    sheet.heading("Layers: the whole model, and what one rank holds of each");
    sheet.line("Parameter bytes, and bytes saved for backward for one micro-batch.");
    let mut rows = Vec::new();
    collect(&memory.layers, 0, &mut rows);
    let header = ["layer", "shape", "parameters", "kept", "on a rank", "parameters", "kept"];
    sheet.table(&header, &rows);
}

fn collect(node: &LayerNode, depth: usize, rows: &mut Vec<Vec<String>>) {
    let times = if node.times > 1 { format!(" x {}", node.times) } else { String::new() };
    let shape = |shape: Option<&shardscope_operators::Shape>| {
        shape.map_or_else(String::new, |shape| {
            let sizes: Vec<String> = shape.iter().map(ToString::to_string).collect();
            format!("[{}]", sizes.join(","))
        })
    };
    rows.push(vec![
        format!("{}{}{times}", "  ".repeat(depth), node.name),
        shape(node.shape.as_ref()),
        mib(node.full.parameter_bytes),
        mib(node.full.activation_bytes),
        shape(node.sharded_shape.as_ref()),
        mib(node.sharded.parameter_bytes),
        mib(node.sharded.activation_bytes),
    ]);
    for child in &node.children {
        collect(child, depth + 1, rows);
    }
}
