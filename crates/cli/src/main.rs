//! Shardscope in the terminal. Nothing is sent anywhere: no command opens a connection.

mod answer;
mod apply;
mod badge;
mod beside;
mod call_error;
mod catalog;
mod check;
mod compare;
mod contribute;
mod explain;
mod export;
mod files;
mod gate;
mod input;
mod link;
mod manual;
// Neither tokio's standard streams nor child processes are available under WASI.
#[cfg(not(target_family = "wasm"))]
mod mcp;
mod measured;
mod output;
mod report;
mod review;
mod search;
#[cfg(not(target_family = "wasm"))]
mod submit;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use output::print;

/// Whether an LLM training run fits, what it sends over which links, and how fast it will be: from its launch script.
#[derive(Parser)]
#[command(name = "shardscope", version, max_term_width = 100)]
struct Arguments {
    /// When to colour; NO_COLOR and CLICOLOR_FORCE are heeded as well.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    color: clap::ColorChoice,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print every estimate of a run: memory, communication, time, advice.
    Report(report::ReportArguments),
    /// Say in one line whether a run fits; exits with 0 where it does, 1 where not, 2 where there is no plan.
    Check(check::CheckArguments),
    /// Set two runs side by side, or one beside itself with settings changed.
    Compare(compare::CompareArguments),
    /// Write settings into the script they come from, or show the difference that makes.
    Apply(apply::ApplyArguments),
    /// Explain numbers of a run: formula, this run's values, source.
    Explain(explain::ExplainArguments),
    /// Find layouts of the same run that are faster, or that fit.
    Search(search::SearchArguments),
    /// Write the plan as another framework's command or file, and say what it cannot say.
    Export(export::ExportArguments),
    /// Set what a run's own tools measured beside what was predicted: logs, PyTorch's snapshots and profiles, nvidia-smi.
    Measured(measured::MeasuredArguments),
    /// Make a row of evidence from a run's script and log: settings and measurements, nothing of the script.
    Contribute(contribute::ContributeArguments),
    /// Make a link that opens a run in the page, or show what a link carries.
    Link(link::LinkArguments),
    /// Call sbatch with the same arguments after a look at the job; refuses only what it is asked to.
    #[cfg(not(target_family = "wasm"))]
    Submit(submit::SubmitArguments),
    /// Say what a change of a repository does to the runs it launches, as a comment for its review.
    Review(review::ReviewArguments),
    /// Print the id of the comment that `review` wrote, from the list of a pull request's comments on standard input.
    #[command(hide = true)]
    OwnComment,
    /// Serve the engine's tools to an agent over standard input and output (Model Context Protocol).
    #[cfg(not(target_family = "wasm"))]
    Mcp,
    /// Draw a badge that says whether a run fits.
    Badge(badge::BadgeArguments),
    /// List the models that are known by name.
    Models(catalog::ListArguments),
    /// List the accelerators that are known by name.
    Accelerators(catalog::ListArguments),
    /// List the settings that --set, --with and apply take, with what each is.
    Settings(catalog::ListArguments),
    /// Print completions for a shell.
    Completions {
        /// bash, elvish, fish, powershell or zsh.
        shell: clap_complete::Shell,
    },
    /// Print the manual page, for `man -l -`, or write one for each command.
    Man(manual::ManArguments),
}

fn main() -> ExitCode {
    // Before anything is read: relative paths of the arguments are the caller's.
    #[cfg(target_os = "wasi")]
    files::enter_folder_of_call();
    let arguments = Arguments::parse();
    match arguments.color {
        clap::ColorChoice::Auto => anstream::ColorChoice::Auto,
        clap::ColorChoice::Always => anstream::ColorChoice::Always,
        clap::ColorChoice::Never => anstream::ColorChoice::Never,
    }
    .write_global();
    match arguments.command {
        Command::Report(arguments) => report::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Apply(arguments) => apply::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Search(arguments) => search::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Measured(arguments) => measured::run(&arguments),
        Command::Contribute(arguments) => contribute::run(&arguments),
        Command::Link(arguments) => link::run(&arguments),
        #[cfg(not(target_family = "wasm"))]
        Command::Submit(arguments) => submit::run(&arguments),
        Command::Review(arguments) => review::run(&arguments),
        Command::OwnComment => review::own_comment(),
        #[cfg(not(target_family = "wasm"))]
        Command::Mcp => mcp::run(),
        Command::Badge(arguments) => badge::run(&arguments),
        Command::Models(arguments) => catalog::models(&arguments),
        Command::Accelerators(arguments) => catalog::accelerators(&arguments),
        Command::Settings(arguments) => catalog::settings(&arguments),
        Command::Completions { shell } => {
            let mut out = Vec::new();
            // Into memory first: clap_complete panics where the reader of standard output is gone (`| head`).
            clap_complete::generate(shell, &mut Arguments::command(), "shardscope", &mut out);
            print(&String::from_utf8_lossy(&out));
            ExitCode::SUCCESS
        }
        Command::Man(arguments) => manual::run(Arguments::command(), &arguments),
    }
}
