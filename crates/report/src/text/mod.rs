//! The report as text for a terminal and as Markdown, in the same blocks as the analysis tool of 2023, plus what that
//! leaves out.

mod groups;
mod memory;
mod sheet;
mod time;
mod tool;
mod traffic;

use shardscope_plan::Plan;
use shardscope_units::{Quantity, grouped};

use super::Report;
use sheet::Sheet;
pub use sheet::inert;

/// The report as plain text.
#[must_use]
pub fn text(plan: &Plan, report: &Report) -> String {
    let mut sheet = Sheet::plain();
    write(&mut sheet, plan, report);
    sheet.finish()
}

/// The report as Markdown.
#[must_use]
pub fn markdown(plan: &Plan, report: &Report) -> String {
    let mut sheet = Sheet::markdown();
    write(&mut sheet, plan, report);
    sheet.finish()
}

fn write(sheet: &mut Sheet, plan: &Plan, report: &Report) {
    memory::write_verdict(sheet, plan, &report.memory);
    time::write(sheet, &report.time);
    advice(sheet, report);
    cluster(sheet, plan);
    parameters(sheet, report);
    memory::write_stages(sheet, &report.memory);
    memory::write_layers(sheet, &report.memory);
    traffic::write(sheet, &report.traffic);
    groups::write(sheet, plan);
    // The tool knows neither experts nor latent attention nor an encoder, and would print figures for a different model.
    let model = plan.model();
    if model.experts.is_none() && model.latent.is_none() && model.encoder.is_none() {
        tool::write(sheet, plan, report);
    }
}

fn advice(sheet: &mut Sheet, report: &Report) {
    if report.advice.is_empty() {
        return;
    }
    sheet.heading("Advice");
    let mut items = Vec::new();
    for finding in &report.advice {
        let mut item = finding.message.clone();
        for (index, (field, value)) in finding.change.iter().enumerate() {
            item += if index == 0 { " [" } else { " " };
            item += field.name();
            item.push('=');
            item += value;
        }
        item += if finding.change.is_empty() { ": " } else { "]: " };
        item += &finding.why;
        items.push(item);
    }
    sheet.items(&items);
}

fn cluster(sheet: &mut Sheet, plan: &Plan) {
    let (cluster, layout) = (plan.cluster(), plan.layout());
    sheet.heading("Cluster");
    sheet.table(
        &["", ""],
        &[
            vec![
                "GPUs".into(),
                format!("{} x {} {}", cluster.num_nodes, cluster.gpus_per_node, cluster.accelerator.name),
            ],
            vec![
                "Layout".into(),
                format!(
                    "TP {} x PP {} x DP {} x CP {}, EP {} x ETP {}",
                    layout.tensor,
                    layout.pipeline,
                    layout.data,
                    layout.context,
                    layout.expert,
                    layout.expert_tensor
                ),
            ],
            vec!["Batch".into(), batch(plan)],
        ],
    );
}

fn batch(plan: &Plan) -> String {
    let recipe = plan.recipe();
    let [global, count, micro] =
        [recipe.global_batch_size, recipe.num_micro_batches, recipe.micro_batch_size];
    let tokens = plan.model().seq_length;
    if let Some(encoder) = plan.model().encoder {
        let source = encoder.seq_length;
        return format!(
            "{global} targets of {tokens} tokens, of sources of {source}: {count} micro-batches of {micro}"
        );
    }
    // Packed batches count packs; the number of samples depends on their lengths, which only the data determines.
    match recipe.sample_length {
        None => format!("{global} sequences of {tokens} tokens: {count} micro-batches of {micro}"),
        Some(longest) => {
            format!(
                "{global} packs of {tokens} tokens, of samples of up to {longest}: {count} on each replica"
            )
        }
    }
}

fn parameters(sheet: &mut Sheet, report: &Report) {
    sheet.heading("Parameters");
    sheet.line(&format!(
        "{} in the whole model, {} active per token",
        grouped(report.parameters.total.get()),
        grouped(report.parameters.active_per_token.get())
    ));
    // Only shown if something is frozen.
    if report.parameters.trained != report.parameters.total {
        let share = 100.0 * report.parameters.trained.number() / report.parameters.total.number().max(1.0);
        let trained = grouped(report.parameters.trained.get());
        sheet.line(&format!("{trained} train ({share:.3}% of the model), the rest is frozen"));
    }
    let mut rows = Vec::new();
    for rank in &report.parameters.ranks {
        rows.push(vec![format!("stage {}", rank.pipeline_rank), grouped(rank.count.get())]);
    }
    sheet.table(&["rank", "parameters"], &rows);
}
