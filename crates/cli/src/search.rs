//! `shardscope search`: other layouts of the same run, from the terminal.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use shardscope::quantity::{gib, seconds};
use shardscope::search::{Choices, Dimension, Outcome, Space, Values, Walk, exhaust};

use crate::input;
use crate::output::{NO_PLAN, print, refuse};

/// `search`.
#[derive(Args)]
pub(crate) struct SearchArguments {
    #[command(flatten)]
    input: input::Input,
    /// Keep a dimension as in the plan: tp, pp, vpp, split, schedule, cp, ep, etp, mbs, sp, sharding, recompute, overlap, rank-order, precision.
    #[arg(long, value_name = "DIMENSION", value_parser = dimension)]
    fix: Vec<Dimension>,
    /// Try sizes of a dimension between two bounds only, for example tp=1..4.
    #[arg(long, value_name = "DIMENSION=LEAST..MOST", value_parser = range)]
    range: Vec<(Dimension, u64, u64)>,
    /// Vary a dimension that is kept unless asked for: precision.
    #[arg(long, value_name = "DIMENSION", value_parser = dimension)]
    open: Vec<Dimension>,
    /// Layouts shown.
    #[arg(long, default_value_t = 10)]
    limit: usize,
    /// Work out every layout instead of leaving out by bounds: for comparing, slow.
    #[arg(long)]
    exhaustive: bool,
    /// How the answer is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// For reading in a terminal.
    Text,
}

fn dimension(text: &str) -> Result<Dimension, String> {
    Dimension::named(text).ok_or_else(|| {
        let names: Vec<&str> = Dimension::NAMED.iter().map(|(_, name)| *name).collect();
        format!("one of {}", names.join(", "))
    })
}

fn range(text: &str) -> Result<(Dimension, u64, u64), String> {
    let form = || "it is not DIMENSION=LEAST..MOST".to_owned();
    let (name, sizes) = text.split_once('=').ok_or_else(form)?;
    let (least, most) = sizes.split_once("..").unwrap_or((sizes, sizes));
    let size = |text: &str| text.trim().parse::<u64>().map_err(|_| form());
    Ok((dimension(name)?, size(least)?, size(most)?))
}

/// Prints the answer, and diagnostics to standard error.
pub(crate) fn run(arguments: &SearchArguments) -> ExitCode {
    let answer = match arguments.input.answer() {
        Ok(answer) => answer,
        Err(problem) => return refuse(&problem),
    };
    eprint!("{}", answer.problems());
    let Some(plan) = &answer.resolution.plan else { return ExitCode::from(NO_PLAN) };
    let mut choices = Choices::default();
    for dimension in &arguments.open {
        choices = choices.with(*dimension, Values::Open);
    }
    for dimension in &arguments.fix {
        choices = choices.with(*dimension, Values::Stated);
    }
    for (dimension, least, most) in &arguments.range {
        choices = choices.with(*dimension, Values::Between(*least, *most));
    }
    let space = Space::with(plan, choices);
    let started = std::time::Instant::now();
    if arguments.exhaustive {
        let found = exhaust(&space);
        let mut text = format!("{:?} {:?}\n", found.tally, started.elapsed());
        for one in found.best.iter().chain(&found.tight) {
            text.push_str(&line(one));
        }
        print(&text);
        return ExitCode::SUCCESS;
    }
    let mut walk = Walk::over(space, arguments.limit.max(1));
    while walk.step(1024) {}
    let mut text = format!("{:?} {:?} {:?}\n", walk.tally(), walk.progress(), started.elapsed());
    for one in walk.ranked().take(arguments.limit) {
        text.push_str(&line(one));
    }
    print(&text);
    ExitCode::SUCCESS
}

fn line(one: &Outcome) -> String {
    let changes: Vec<String> =
        one.changes.iter().map(|(field, value)| format!("{}={value}", field.name())).collect();
    let tight = if one.tight { " (headroom)" } else { "" };
    format!("{} {}{tight} {}\n", seconds(one.step), gib(one.peak), changes.join(" "))
}
